"""Fetched bytes as Arrow columns: what a reader is shown, of every kind of batch."""

from typing import Any

import pyarrow as pa
import pytest

from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.records.control import ControlType, EndTransactionMarker, marker_record
from odradek.spark.source.columns import SCHEMA, SCHEMA_WITH_HEADERS, arrow_batches

TP = TopicPartition("t", 3)


def rows(
    *data: bytes, first: int = 0, last: int = 1 << 40, aborted: Any = (), headers: bool = False
) -> list[Any]:
    found = list(arrow_batches(TP, b"".join(data), aborted, first, last, with_headers=headers))
    for batch in found:
        batch.validate(full=True)
        assert batch.schema.equals(SCHEMA_WITH_HEADERS if headers else SCHEMA)
    return [row for batch in found for row in batch.to_pylist()]


def batch(base: int, *values: str | None, **options: Any) -> bytes:
    records = [
        (1_000 + i, None if v is None else f"k{v}".encode(), None if v is None else v.encode(), ())
        for i, v in enumerate(values)
    ]
    return bytes(build_batch(records, base_offset=base, **options))


def marker(base: int, kind: ControlType, producer_id: int) -> bytes:
    key, value = marker_record(EndTransactionMarker(kind, 0))
    return bytes(
        build_batch(
            [(1_000, key, value, ())],
            base_offset=base,
            producer_id=producer_id,
            producer_epoch=0,
            transactional=True,
            control=True,
        )
    )


def test_a_record_is_a_row() -> None:
    (row,) = rows(batch(7, "a"))
    assert row == {
        "key": b"ka",
        "value": b"a",
        "topic": "t",
        "partition": 3,
        "offset": 7,
        "timestamp": pa.scalar(1_000_000, pa.timestamp("us", "UTC")).as_py(),
        "timestampType": 0,
    }


@pytest.mark.parametrize("codec", range(5))
def test_batches_of_every_codec_follow_each_other(codec: int) -> None:
    found = rows(batch(0, "a", None, "c", codec=codec), batch(5, "d", codec=codec), first=1)
    assert [(r["offset"], r["value"]) for r in found] == [(1, None), (2, b"c"), (5, b"d")]


def test_rows_end_where_the_range_ends() -> None:
    found = rows(batch(0, "a", "b"), batch(2, "c", "d"), first=1, last=2)
    assert [r["offset"] for r in found] == [1, 2]


def test_what_was_aborted_and_markers_are_not_shown() -> None:
    transactional = {"producer_id": 9, "producer_epoch": 0, "base_sequence": 0, "transactional": True}
    data = [
        batch(0, "gone", **transactional),
        batch(1, "kept", **{**transactional, "producer_id": 8}),
        marker(2, ControlType.ABORT, 9),
        batch(3, "again", **transactional),
        marker(4, ControlType.COMMIT, 9),
    ]
    assert [r["value"] for r in rows(*data, aborted=[(9, 0)])] == [b"kept", b"again"]
    assert [r["value"] for r in rows(*data, aborted=None)] == [b"gone", b"kept", b"again"]


def test_the_times_of_the_broker_are_shown_as_such() -> None:
    stamped = batch(1, "b", timestamp_type=1)
    found = rows(batch(0, "a"), stamped, batch(2, "c"))
    assert [r["timestampType"] for r in found] == [0, 1, 0]
    assert [r["timestampType"] for r in rows(stamped)] == [1]


def test_headers_are_lists_and_none_is_null() -> None:
    records = [(0, None, b"x", ()), (0, None, b"y", (("a", b"1"), ("ü", None)))]
    found = rows(bytes(build_batch(records)), headers=True)
    assert [r["headers"] for r in found] == [
        None,
        [{"key": "a", "value": b"1"}, {"key": "ü", "value": None}],
    ]


def test_a_damaged_batch_is_not_shown_as_data() -> None:
    data = bytearray(batch(0, "a"))
    data[-1] ^= 1
    with pytest.raises(Exception, match="CRC"):
        rows(bytes(data))


def test_nothing_is_nothing() -> None:
    assert rows() == []
    assert rows(batch(0, "a"), first=5) == []
