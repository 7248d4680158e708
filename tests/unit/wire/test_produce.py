"""Produce by hand, against kio's reader and writer."""

import io
import random
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.serial import entity_writer

from odradek.core.errors import ProtocolError
from odradek.runtime.slices import at_once
from odradek.wire.api_keys import ApiKey
from odradek.wire.headers import parse_response_header
from odradek.wire.messages import request_encoder, request_types, response_codec
from odradek.wire.produce import (
    NodeEndpoint,
    PartitionProduced,
    ProduceRequest,
    encode_partitions,
    encode_produce_response,
    produce_response_in_slices,
)
from tests.unit.wire.kio_random import plain, random_message

VERSIONS = range(3, 14)


def kio_request(version: int, rng: random.Random) -> tuple[bytes, dict[str, Any]]:
    message = random_message(load_request_schema(ApiKey.PRODUCE, version), rng)
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue(), plain(message)


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_of_every_version_are_read_as_kio_wrote_them(version: int) -> None:
    rng = random.Random(version)
    for _ in range(100):
        data, expected = kio_request(version, rng)
        request = ProduceRequest.parse(b"head" + data, 4, version)
        assert request.transactional_id == expected["transactional_id"]
        assert (request.acks, request.timeout_ms) == (expected["acks"], expected["timeout"])
        assert [topic for topic, _ in request.topics] == [
            t["topic_id"] if version >= 13 else t["name"] for t in expected["topic_data"]
        ]
        assert [
            [(index, None if records is None else bytes(records)) for index, records in partitions]
            for _, partitions in request.topics
        ] == [[(p["index"], p["records"]) for p in t["partition_data"]] for t in expected["topic_data"]]


def test_records_are_views_of_the_received_bytes() -> None:
    types = request_types(ApiKey.PRODUCE)
    partition = types.PartitionProduceData(index=0, records=b"abc")
    topic = types.TopicProduceData(name="t", partition_data=[partition, partition])
    buffer = bytearray(request_encoder(ApiKey.PRODUCE, 9)(types.ProduceRequest(topic_data=[topic])))
    request = ProduceRequest.parse(memoryview(buffer), 0, 9)
    views = [records for _, partitions in request.topics for _, records in partitions if records]
    assert views == [b"abc", b"abc"]
    assert all(view.obj is buffer for view in views)


def test_unknown_tagged_fields_are_skipped() -> None:
    tags = b"\x01\x05\x02hi"
    data = b"\0" + b"\xff\xff" + b"\0\0\0\1" + b"\x02" + b"\x02t" + b"\x02"
    data += b"\0\0\0\x07" + b"\x04abc" + tags + tags + tags
    assert ProduceRequest.parse(data, 0, 9).topics == [("t", [(7, b"abc")])]


@pytest.mark.parametrize("version", VERSIONS)
def test_garbage_gives_protocol_error_only(version: int) -> None:
    rng = random.Random(version)
    data, _ = kio_request(version, rng)
    while len(data) < 60:
        data, _ = kio_request(version, rng)
    for cut in range(0, len(data) - 1, 2):
        with pytest.raises(ProtocolError):
            ProduceRequest.parse(data[:cut], 0, version)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(min(len(damaged), 80))] = rng.getrandbits(8)
        try:
            ProduceRequest.parse(damaged, 0, version)
        except ProtocolError:
            pass


def answers(version: int, rng: random.Random) -> list[tuple[str | UUID, list[PartitionProduced]]]:
    topics: list[tuple[str | UUID, list[PartitionProduced]]] = []
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        partitions = []
        for index in range(rng.choice((1, 1, 1, 2, 130))):
            particulars: dict[str, Any] = {}
            if rng.random() < 0.3:
                particulars["record_errors"] = [(3, "bad"), (4, None)]
            if rng.random() < 0.3:
                particulars["error_message"] = "no"
            if rng.random() < 0.3:
                particulars["current_leader"] = (2, 7)
            partitions.append(PartitionProduced(index, rng.choice((0, 87)), 1 << 40, 5, 6, **particulars))
        name: str | UUID = rng.choice(("t", "ü" * 20, "x" * 200))
        topics.append((UUID(bytes=rng.randbytes(16), version=4) if version >= 13 else name, partitions))
    return topics


@pytest.mark.parametrize("version", VERSIONS)
def test_responses_of_every_version_are_those_of_the_schema(version: int) -> None:
    codec = response_codec(ApiKey.PRODUCE)
    types = codec.types
    rng = random.Random(version)
    for _ in range(100):
        topics = answers(version, rng)
        endpoints = rng.choice(([], [], [NodeEndpoint(2, "host", 9092), NodeEndpoint(3, "h", 1, "rack")]))
        frame = encode_produce_response(version, 99, topics, 12, endpoints)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        correlation_id, position = parse_response_header(frame, 4, ApiKey.PRODUCE, version)
        assert correlation_id == 99
        expected = types.ProduceResponse(
            responses=[
                types.TopicProduceResponse(
                    name="" if version >= 13 else topic,
                    topic_id=topic if version >= 13 else None,
                    partition_responses=[
                        types.PartitionProduceResponse(
                            index=p.partition_index,
                            error_code=p.error_code,
                            base_offset=p.base_offset,
                            log_append_time=p.log_append_time_ms,
                            log_start_offset=p.log_start_offset,
                            record_errors=[
                                types.BatchIndexAndErrorMessage(batch_index=i, batch_index_error_message=m)
                                for i, m in p.record_errors
                            ],
                            error_message=p.error_message,
                            current_leader=types.LeaderIdAndEpoch(
                                leader_id=(p.current_leader or (-1, -1))[0],
                                leader_epoch=(p.current_leader or (-1, -1))[1],
                            ),
                        )
                        for p in partitions
                    ],
                )
                for topic, partitions in topics
            ],
            throttle_time=12,
            node_endpoints=[
                types.NodeEndpoint(node_id=e.node_id, host=e.host, port=e.port, rack=e.rack)
                for e in endpoints
            ],
        )
        assert frame[position:] == codec.encoder(version)(expected)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_in_pieces_is_the_same_frame(version: int) -> None:
    rng = random.Random(version)
    for _ in range(50):
        topics = [*answers(version, rng), *answers(version, rng)]
        topics.insert(1, (topics[0][0], []))
        whole = encode_produce_response(version, 99, topics)
        rows = []
        for topic, partitions in topics:
            parts = [partitions[i : i + 7] for i in range(0, max(len(partitions), 1), 7)]
            rows.append((topic, len(partitions), [encode_partitions(version, part) for part in parts]))
        assert b"".join(at_once(produce_response_in_slices(version, 99, rows, len(rows)))) == whole
