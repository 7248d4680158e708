"""Fetch by hand, against kio's reader and writer."""

import io
import random
from typing import Any
from uuid import UUID

import pytest
from kio.index import load_request_schema
from kio.serial import entity_writer

from odradek.core.errors import ProtocolError
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchPartition, FetchRequest, PartitionFetched, encode_fetch_response
from odradek.wire.headers import parse_response_header
from odradek.wire.messages import response_codec
from odradek.wire.produce import NodeEndpoint
from tests.unit.wire.kio_random import plain, random_message

VERSIONS = range(4, 19)


def kio_request(version: int, rng: random.Random) -> tuple[bytes, dict[str, Any]]:
    message = random_message(load_request_schema(ApiKey.FETCH, version), rng)
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue(), plain(message)


def topic_of(fields: dict[str, Any], version: int) -> Any:
    return fields["topic_id"] if version >= 13 else fields["topic"]


@pytest.mark.parametrize("version", VERSIONS)
def test_requests_of_every_version_are_read_as_kio_wrote_them(version: int) -> None:
    rng = random.Random(version)
    for _ in range(100):
        data, expected = kio_request(version, rng)
        request = FetchRequest.parse(memoryview(b"head" + data), 4, version)
        replica = expected.get(
            "replica_state", {"replica_id": expected.get("replica_id"), "replica_epoch": -1}
        )
        assert (request.replica_id, request.replica_epoch) == (
            replica["replica_id"],
            replica["replica_epoch"],
        )
        assert request.cluster_id == expected.get("cluster_id")
        assert request.rack_id == expected.get("rack_id", "")
        assert request.max_wait_ms == expected["max_wait"]
        for name, default in (
            ("min_bytes", None),
            ("max_bytes", None),
            ("isolation_level", None),
            ("session_id", 0),
            ("session_epoch", -1),
        ):
            assert getattr(request, name) == expected.get(name, default)
        assert [t for t, _ in request.topics] == [topic_of(t, version) for t in expected["topics"]]
        for (_, partitions), fields in zip(request.topics, expected["topics"], strict=True):
            assert partitions == [
                FetchPartition(
                    p["partition"],
                    p.get("current_leader_epoch", -1),
                    p["fetch_offset"],
                    p.get("last_fetched_epoch", -1),
                    p.get("log_start_offset", -1),
                    p["partition_max_bytes"],
                    p.get("replica_directory_id", UUID(int=0)),
                    p.get("high_watermark", (1 << 63) - 1),
                )
                for p in fields["partitions"]
            ]
        assert request.forgotten == [
            (topic_of(t, version), t["partitions"]) for t in expected.get("forgotten_topics_data", [])
        ]


@pytest.mark.parametrize("version", VERSIONS)
def test_garbage_gives_protocol_error_only(version: int) -> None:
    rng = random.Random(version)
    data, _ = kio_request(version, rng)
    while len(data) < 100:
        data, _ = kio_request(version, rng)
    for cut in range(0, len(data) - 1, 2):
        with pytest.raises(ProtocolError):
            FetchRequest.parse(data[:cut], 0, version)
    for _ in range(2000):
        damaged = bytearray(data)
        for _ in range(rng.randint(1, 4)):
            damaged[rng.randrange(min(len(damaged), 80))] = rng.getrandbits(8)
        try:
            FetchRequest.parse(damaged, 0, version)
        except ProtocolError:
            pass


class Slice:
    """Stands for records in a file."""

    def __init__(self, data: bytes) -> None:
        self.data = data


def answers(version: int, rng: random.Random) -> list[tuple[str | UUID, list[PartitionFetched]]]:
    topics: list[tuple[str | UUID, list[PartitionFetched]]] = []
    for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
        partitions = []
        for index in range(rng.choice((1, 1, 1, 2, 130))):
            data = rng.randbytes(rng.choice((0, 10, 126, 127, 20_000)))
            more: dict[str, Any] = {}
            if version >= 12 and rng.random() < 0.3:
                more = {
                    "diverging_epoch": (3, 1 << 40),
                    "current_leader": (1, 2),
                    "snapshot_id": (1 << 41, 5),
                }
            partitions.append(
                PartitionFetched(
                    index, rng.choice((0, 1)), 1 << 33, 1 << 32, 7,
                    rng.choice((None, None, [], [(5, 6), (7, 8)])), Slice(data), len(data),
                    rng.choice((-1, 3)), **more,
                )
            )  # fmt: skip
        name: str | UUID = rng.choice(("t", "ü" * 20, "x" * 200))
        topics.append((UUID(bytes=rng.randbytes(16), version=4) if version >= 13 else name, partitions))
    return topics


def pair(value: tuple[int, int] | None) -> tuple[int, int]:
    return value or (-1, -1)


@pytest.mark.parametrize("version", VERSIONS)
def test_responses_of_every_version_are_those_of_the_schema(version: int) -> None:
    codec = response_codec(ApiKey.FETCH)
    types = codec.types
    rng = random.Random(version)
    for _ in range(100):
        topics = answers(version, rng)
        endpoints = rng.choice(([], [], [NodeEndpoint(2, "host", 9092), NodeEndpoint(3, "h", 1, "rack")]))
        pieces = encode_fetch_response(
            version,
            99,
            topics,
            throttle_time_ms=12,
            error_code=5,
            session_id=6,
            node_endpoints=endpoints,
        )
        frame = b"".join(piece.data if isinstance(piece, Slice) else piece for piece in pieces)
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        correlation_id, position = parse_response_header(frame, 4, ApiKey.FETCH, version)
        assert correlation_id == 99
        expected = types.FetchResponse(
            throttle_time=12,
            error_code=5,
            session_id=6,
            responses=[
                types.FetchableTopicResponse(
                    topic="" if version >= 13 else topic,
                    topic_id=topic if version >= 13 else None,
                    partitions=[
                        types.PartitionData(
                            partition_index=p.partition_index,
                            error_code=p.error_code,
                            high_watermark=p.high_watermark,
                            last_stable_offset=p.last_stable_offset,
                            log_start_offset=p.log_start_offset,
                            aborted_transactions=None
                            if p.aborted is None
                            else [
                                types.AbortedTransaction(producer_id=i, first_offset=o) for i, o in p.aborted
                            ],
                            preferred_read_replica=p.preferred_read_replica,
                            records=p.records.data,
                            diverging_epoch=types.EpochEndOffset(
                                epoch=pair(p.diverging_epoch)[0], end_offset=pair(p.diverging_epoch)[1]
                            ),
                            current_leader=types.LeaderIdAndEpoch(
                                leader_id=pair(p.current_leader)[0], leader_epoch=pair(p.current_leader)[1]
                            ),
                            snapshot_id=types.SnapshotId(
                                end_offset=pair(p.snapshot_id)[0], epoch=pair(p.snapshot_id)[1]
                            ),
                        )
                        for p in partitions
                    ],
                )
                for topic, partitions in topics
            ],
            node_endpoints=[
                types.NodeEndpoint(node_id=e.node_id, host=e.host, port=e.port, rack=e.rack)
                for e in endpoints
            ],
        )
        assert frame[position:] == codec.encoder(version)(expected)
