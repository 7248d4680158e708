"""The content of a partition, read with raw fetches: the batches as they are in the log."""

import struct
import uuid
from typing import NamedTuple

from tests.support.raw import Connection

FETCH, LIST_OFFSETS, METADATA = 1, 2, 3
_HEADER = struct.Struct(">qiibIhiqqqhii")


class StoredBatch(NamedTuple):
    base_offset: int
    last_offset_delta: int
    codec: int
    log_append_time: bool
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    base_sequence: int
    count: int
    size: int


def topic_id(connection: Connection, topic: str) -> uuid.UUID:
    found: uuid.UUID = (
        connection.call(METADATA, 12, {"topics": [{"name": topic, "topic_id": None}]}).topics[0].topic_id
    )
    return found


def split(records: bytes) -> list[StoredBatch]:
    out, at = [], 0
    while len(records) - at >= _HEADER.size:
        base, length, _, _, _, attributes, delta, first, last, pid, _, sequence, count = _HEADER.unpack_from(
            records, at
        )
        if at + 12 + length > len(records):
            break
        out.append(
            StoredBatch(
                base,
                delta,
                attributes & 7,
                bool(attributes & 8),
                first,
                last,
                pid,
                sequence,
                count,
                12 + length,
            )
        )
        at += 12 + length
    return out


def fetch(
    connection: Connection,
    topic: str,
    offset: int = 0,
    *,
    partition: int = 0,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 50 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
) -> tuple[int, bytes]:
    """(error code, record bytes) of one partition, by Fetch v12 outside any session."""
    answer = connection.call(
        FETCH,
        12,
        fetch_values(
            [(topic, partition, offset)],
            max_bytes=max_bytes,
            partition_max_bytes=partition_max_bytes,
            max_wait_ms=max_wait_ms,
            min_bytes=min_bytes,
        ),
    )
    assert answer.error_code == 0
    row = answer.responses[0].partitions[0]
    return int(row.error_code), bytes(row.records or b"")


def fetch_values(
    wanted: list[tuple[str, int, int]],
    *,
    max_bytes: int = 50 << 20,
    partition_max_bytes: int = 50 << 20,
    max_wait_ms: int = 0,
    min_bytes: int = 0,
    session_id: int = 0,
    session_epoch: int = -1,
    forgotten: list[tuple[str, int]] | None = None,
    isolation_level: int = 0,
) -> dict[str, object]:
    return {
        "replica_id": -1,
        "max_wait": max_wait_ms,
        "min_bytes": min_bytes,
        "max_bytes": max_bytes,
        "isolation_level": isolation_level,
        "session_id": session_id,
        "session_epoch": session_epoch,
        "rack_id": "",
        "topics": [
            {
                "topic": name,
                "partitions": [
                    {
                        "partition": partition,
                        "current_leader_epoch": -1,
                        "fetch_offset": offset,
                        "last_fetched_epoch": -1,
                        "log_start_offset": -1,
                        "partition_max_bytes": partition_max_bytes,
                    }
                ],
            }
            for name, partition, offset in wanted
        ],
        "forgotten_topics_data": [{"topic": t, "partitions": [p]} for t, p in forgotten or []],
    }
