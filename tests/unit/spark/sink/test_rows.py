"""Arrow rows as record batches: every row once, where it belongs, however the columns are made."""

from random import Random
from typing import Any

import pyarrow as pa
import pytest

from odradek.client.partitioner import partition_of_key
from odradek.records.batch import iter_batches, iter_records
from odradek.records.header import pack_header
from odradek.spark.sink.rows import Encoded, RowEncoder, RowError, check_columns

HEADERS = pa.list_(pa.struct([("key", pa.string()), ("value", pa.binary())]))


def frame(**columns: Any) -> pa.RecordBatch:
    types = {"partition": pa.int32(), "headers": HEADERS, "topic": pa.string()}
    arrays = [pa.array(values, types.get(name, pa.binary())) for name, values in columns.items()]
    return pa.RecordBatch.from_arrays(arrays, names=list(columns))


def encoded(
    rows: pa.RecordBatch, topic: str | None = "t", counts: int = 3, limit: int = 900_000
) -> list[Encoded]:
    encoder = RowEncoder(topic, limit, Random(1))
    return list(encoder.encode(rows, dict.fromkeys(encoder.topics_of(rows), counts)))


def records(found: list[Encoded]) -> list[tuple[str, int, Any, Any, Any]]:
    out = []
    for tp, data, count in found:
        pack_header(
            data,
            base_offset=0,
            leader_epoch=0,
            attributes=0,
            last_offset_delta=count - 1,
            base_timestamp=5,
            max_timestamp=5,
            producer_id=-1,
            producer_epoch=-1,
            base_sequence=-1,
            record_count=count,
        )
        for batch in iter_batches(data):
            out += [(*tp, r.key, r.value, r.headers) for r in iter_records(data, batch)]
    return out


def test_keys_decide_and_order_is_kept() -> None:
    keys = [str(i % 7).encode() for i in range(200)]
    values = [str(i).encode() for i in range(200)]
    found = records(encoded(frame(key=keys, value=values)))
    assert len(found) == 200
    for _, partition, key, _, _ in found:
        assert partition == partition_of_key(key, 3)
    for key in set(keys):
        assert [v for _, _, k, v, _ in found if k == key] == [
            v for k, v in zip(keys, values, strict=True) if k == key
        ]


def test_a_partition_that_is_asked_for_goes_before_the_key() -> None:
    found = records(encoded(frame(key=[b"k"] * 3, value=[b"0", b"1", b"2"], partition=[2, 0, None])))
    places = {value: partition for _, partition, _, value, _ in found}
    assert places == {b"0": 2, b"1": 0, b"2": partition_of_key(b"k", 3)}


def test_a_partition_that_is_not_there_is_told() -> None:
    for bad in (3, -1):
        with pytest.raises(RowError, match=f"there is no partition {bad} in t: it has 3"):
            encoded(frame(value=[b"x"], partition=[bad]))


def test_nulls_and_headers_go_along() -> None:
    headers = [None, [], [{"key": "a", "value": b"1"}, {"key": "b", "value": None}]]
    rows = frame(key=[None, b"", b"k"], value=[b"v", None, b""], headers=headers, partition=[0, 0, 0])
    found = [found[2:] for found in records(encoded(rows))]
    assert found == [(None, b"v", ()), (b"", None, ()), (b"k", b"", (("a", b"1"), ("b", None)))]


def test_a_slice_is_as_good_as_a_whole() -> None:
    headers = [[{"key": str(i), "value": str(i).encode()}] for i in range(10)]
    whole = frame(key=[str(i).encode() for i in range(10)], value=[None] * 5 + [b"x"] * 5, headers=headers)
    part = whole.slice(3, 5)
    assert [r[2:] for r in records(encoded(part, counts=1))] == [
        (str(i).encode(), None if i < 5 else b"x", ((str(i), str(i).encode()),)) for i in range(3, 8)
    ]


def test_texts_are_bytes() -> None:
    rows = pa.RecordBatch.from_arrays([pa.array(["ü", None]), pa.array(["a", "b"])], names=["key", "value"])
    assert [r[2:4] for r in records(encoded(rows, counts=1))] == [("ü".encode(), b"a"), (None, b"b")]


def test_large_partitions_become_several_batches() -> None:
    found = encoded(frame(value=[b"x" * 100] * 1_000), counts=1, limit=10_000)
    assert len(found) >= 10
    assert all(len(data) <= 10_100 for _, data, _ in found)
    assert sum(count for _, _, count in found) == 1_000


def test_rows_without_keys_take_turns() -> None:
    encoder = RowEncoder("t", 900_000, Random(1))
    places = [next(iter(encoder.encode(frame(value=[b"x"]), {"t": 3}))).tp.partition for _ in range(6)]
    assert sorted(places) == [0, 0, 1, 1, 2, 2]


def test_every_row_goes_to_its_topic() -> None:
    rows = frame(value=[b"1", b"2", b"3"], topic=["a", "b", "a"])
    found = [(topic, value) for topic, _, _, value, _ in records(encoded(rows, topic=None, counts=1))]
    assert sorted(found) == [("a", b"1"), ("a", b"3"), ("b", b"2")]
    with pytest.raises(RowError, match="topic is null"):
        encoded(frame(value=[b"1"], topic=[None]), topic=None)


@pytest.mark.parametrize("headers", [[[None]], [[{"key": None, "value": b"x"}]]])
def test_half_a_header_is_told(headers: list[Any]) -> None:
    with pytest.raises(RowError, match="a header"):
        encoded(frame(value=[b"x"], headers=headers))


def test_columns_are_checked_before_anything_is_written() -> None:
    check_columns(["value"], {"value": "string"}, "t")
    check_columns(["value", "key"], {"value": "binary", "key": "void"}, "t")
    check_columns(["value", "amount"], {"value": "binary", "amount": "decimal(10,2)"}, "t")
    for names, types, topic, told in [
        (["valu"], {}, "t", "there is no column value"),
        (["key"], {}, "t", "there is no column value"),
        (["value"], {}, None, "no topic: give the option topic"),
        (["value"], {"value": "bigint"}, "t", "the column value is bigint: it must be string or binary"),
        (["value", "partition"], {"partition": "bigint"}, "t", "the column partition is bigint"),
    ]:
        with pytest.raises(RowError) as refusal:
            check_columns(names, types, topic)
        assert told in str(refusal.value)
