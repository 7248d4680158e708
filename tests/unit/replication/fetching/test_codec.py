"""A follower's Fetch by hand, against kio's reader and writer."""

import io
import random
import uuid
from typing import Any

import pytest
from kio.index import load_request_schema, load_response_schema
from kio.serial import entity_reader, entity_writer

from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID
from odradek.replication.fetching.requests import (
    Fetching,
    FetchLimits,
    encode_fetch_request,
    encode_partition,
)
from odradek.replication.fetching.responses import parse_fetch_response
from odradek.replication.fetching.versions import fetch_version, list_offsets_version
from odradek.runtime.slices import at_once
from odradek.wire.api_keys import ApiKey
from tests.unit.wire.kio_random import plain, random_message

VERSIONS = range(13, 19)
A, B = uuid.UUID(int=0xA << 100), uuid.UUID(int=0xB << 100)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_says_what_was_meant(version: int) -> None:
    body = encode_fetch_request(
        version,
        Fetching(3, 77),
        FetchLimits(500, 1, 10 << 20, 1 << 20),
        (41, 5),
        {A.bytes: [encode_partition(0, 7, 100, 6, 50, 1 << 20), encode_partition(200, 8, 0, -1, 0, 10)]},
        [(B.bytes, 1), (B.bytes, 2), (A.bytes, 3)],
    )
    message, size = entity_reader(load_request_schema(ApiKey.FETCH, version))(body, 0)
    assert size == len(body)
    fields = plain(message)
    replica = fields["replica_state"] if version >= 15 else fields
    assert replica["replica_id"] == 3 and replica.get("replica_epoch", 77) == 77
    assert [fields[name] for name in ("max_wait", "min_bytes", "max_bytes")] == [500, 1, 10 << 20]
    assert (fields["session_id"], fields["session_epoch"]) == (41, 5)
    assert (fields["isolation_level"], fields["rack_id"], fields["cluster_id"]) == (0, "", None)
    (topic,) = fields["topics"]
    assert topic["topic_id"] == A
    names = ("partition", "current_leader_epoch", "fetch_offset", "last_fetched_epoch", "log_start_offset")
    rows = [[row[name] for name in (*names, "partition_max_bytes")] for row in topic["partitions"]]
    assert rows == [[0, 7, 100, 6, 50, 1 << 20], [200, 8, 0, -1, 0, 10]]
    forgotten = [(row["topic_id"], row["partitions"]) for row in fields["forgotten_topics_data"]]
    assert forgotten == [(B, [1, 2]), (A, [3])]


def random_response(version: int, rng: random.Random) -> tuple[bytes, dict[str, Any]]:
    message = random_message(load_response_schema(ApiKey.FETCH, version), rng)
    out = io.BytesIO()
    entity_writer(type(message))(out, message)
    return out.getvalue(), plain(message)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_response_is_read_as_kio_wrote_it(version: int) -> None:
    rng = random.Random(version)
    for _ in range(200):
        data, expected = random_response(version, rng)
        answer = at_once(parse_fetch_response(memoryview(b"head" + data), 4))
        assert (answer.error_code, answer.session_id) == (expected["error_code"], expected["session_id"])
        rows = [(topic["topic_id"], row) for topic in expected["responses"] for row in topic["partitions"]]
        for found, (topic_id, row) in zip(answer.partitions, rows, strict=True):
            assert found.key == ((topic_id or ZERO_UUID).bytes, row["partition_index"])
            assert found.error_code == row["error_code"]
            assert (found.high_watermark, found.log_start_offset) == (
                row["high_watermark"],
                row["log_start_offset"],
            )
            diverging = row["diverging_epoch"]
            is_diverging = diverging["epoch"] != -1 or diverging["end_offset"] != -1
            assert found.diverging == (
                (diverging["epoch"], diverging["end_offset"]) if is_diverging else found.diverging
            )
            assert bytes(found.records or b"") == (row["records"] or b"")


def test_a_response_that_is_cut_anywhere_is_refused_or_cut_between_tags() -> None:
    data, _ = random_response(18, random.Random(3))
    for size in range(len(data) - 1):
        with pytest.raises(ProtocolError):
            at_once(parse_fetch_response(memoryview(data[:size]), 0))


def test_versions_follow_the_metadata_version() -> None:
    """The table that Apache Kafka's fetchers use."""
    levels = [7, 9, 10, 17, 19, 21, 23, 25, 27, 29, 30]
    assert [fetch_version(level) for level in levels] == [13, 14, 15, 15, 16, 17, 17, 17, 18, 18, 18]
    assert [list_offsets_version(level) for level in levels] == [7, 8, 8, 8, 8, 9, 9, 10, 10, 11, 11]
