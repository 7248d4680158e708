"""Arrow rows as record batches for partitions, without a Python object per row."""

from collections.abc import Iterator
from random import Random
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from odradek.core.types import Buffer, TopicPartition
from odradek.records import kernel
from odradek.records.header import HEADER_BYTES

_COLUMNS = ("key", "value", "headers", "topic", "partition")


class RowError(ValueError):
    """Rows that cannot become records."""


class Encoded(NamedTuple):
    """The records of a batch behind room for its header."""

    tp: TopicPartition
    batch: bytearray
    records: int


def check_columns(names: list[str], types: dict[str, str], topic: str | None) -> None:
    """Raise where the columns of a DataFrame cannot be records. `types` are Spark's names of types. Columns
    that a record does not have are left out, as the official connector does."""
    if "value" not in names:
        raise RowError(f"there is no column value: a record has {', '.join(_COLUMNS)}")
    if topic is None and "topic" not in names:
        raise RowError("no topic: give the option topic or a column topic")
    allowed = {
        "key": ("string", "binary", "void"),
        "value": ("string", "binary", "void"),
        "topic": ("string",),
        "partition": ("int",),
        "headers": ("array<struct<key:string,value:binary>>",),
    }
    for name, kind in types.items():
        if name in allowed and kind not in allowed[name]:
            raise RowError(f"the column {name} is {kind}: it must be {' or '.join(allowed[name])}")


class RowEncoder:
    """`partition_counts` of the topics that rows have gone to so far are kept by the caller."""

    def __init__(
        self, topic: str | None, batch_bytes: int, rng: Random, *, with_headers: bool = True
    ) -> None:
        self._topic = topic
        self._batch_bytes = batch_bytes
        self._with_headers = with_headers
        self._turn = rng.randrange(1 << 30)

    def topics_of(self, rows: pa.RecordBatch) -> list[str]:
        """The topics that rows go to."""
        if self._topic is not None:
            return [self._topic]
        column = rows.column("topic")
        if column.null_count:
            raise RowError("a row has no topic: the column topic is null")
        found: list[str] = pc.unique(column).to_pylist()
        return found

    def encode(self, rows: pa.RecordBatch, partition_counts: dict[str, int]) -> Iterator[Encoded]:
        if not rows.num_rows:
            return
        topics = self.topics_of(rows)
        for topic in topics:
            chosen = rows if len(topics) == 1 else rows.filter(pc.equal(rows.column("topic"), topic))
            yield from self._encode(chosen, topic, partition_counts[topic])

    def _encode(self, rows: pa.RecordBatch, topic: str, partition_count: int) -> Iterator[Encoded]:
        key, value = _variable(rows, "key"), _variable(rows, "value")
        headers = _headers(rows) if self._with_headers else None
        starts, order = kernel.group_rows(self._places(rows, key, topic, partition_count), partition_count)
        cuts = memoryview(starts).cast("i")
        for partition in range(partition_count):
            start, stop = cuts[partition], cuts[partition + 1]
            while start < stop:
                batch, following = kernel.build_columns(
                    order, start, stop, 0, key, value, headers, 0, self._batch_bytes, HEADER_BYTES
                )
                yield Encoded(TopicPartition(topic, partition), batch, following - start)
                start = following

    def _places(self, rows: pa.RecordBatch, key: Any, topic: str, partition_count: int) -> Buffer:
        """The partition of every row: the one it asks for, that of its key, or the one whose turn it is."""
        count = rows.num_rows
        self._turn += 1
        turn = pa.scalar(self._turn % partition_count, pa.int32())
        if key is None:
            places = pa.repeat(turn, count)
        else:
            offsets, data, valid = key
            by_key = kernel.place_keys(offsets, data, valid, 0, count, partition_count)
            places = pa.Array.from_buffers(pa.int32(), count, [None, pa.py_buffer(by_key)])
            places = pc.if_else(pc.less(places, 0), turn, places)
        if "partition" in rows.schema.names:
            places = pc.coalesce(rows.column("partition"), places)
            bad = pc.filter(places, pc.or_(pc.less(places, 0), pc.greater_equal(places, partition_count)))
            if len(bad):
                raise RowError(f"there is no partition {bad[0].as_py()} in {topic}: it has {partition_count}")
        return memoryview(places.buffers()[1])[4 * places.offset : 4 * (places.offset + count)]


def _variable(rows: pa.RecordBatch, name: str) -> tuple[Buffer, Buffer, Buffer | None] | None:
    """Offsets, data and validity of a column of texts or bytes, from its first row on."""
    if name not in rows.schema.names:
        return None
    column = rows.column(name)
    if pa.types.is_null(column.type):
        return None
    if not (pa.types.is_string(column.type) or pa.types.is_binary(column.type)):
        column = column.cast(pa.binary())
    return _whole(column)


def _whole(column: Any) -> tuple[Buffer, Buffer, Buffer | None]:
    if column.offset:
        column = pa.concat_arrays([column])  # a slice: taken as it were a column of its own
    valid, offsets, data = column.buffers()
    return (
        memoryview(offsets) if offsets is not None else b"\0\0\0\0",
        memoryview(data) if data is not None else b"",
        None if valid is None else memoryview(valid),
    )


def _headers(rows: pa.RecordBatch) -> Any:
    if "headers" not in rows.schema.names:
        return None
    column = rows.column("headers")
    if column.offset:
        column = pa.concat_arrays([column])
    valid, offsets = column.buffers()[:2]
    pairs = column.values
    if pairs.null_count:
        raise RowError("a header is null")
    if pairs.field("key").null_count:
        raise RowError("a header has no key")
    names = _whole(pairs.field("key"))
    values = _whole(pairs.field("value"))
    return (
        memoryview(offsets),
        None if valid is None else memoryview(valid),
        names[0],
        names[1],
        values[0],
        values[1],
        values[2],
    )
