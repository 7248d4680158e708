"""Fetched bytes as Arrow columns: those of the official connector, without a Python object per record."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import pyarrow as pa

from odradek.client.visibility import visible_batches
from odradek.core.types import Buffer, TopicPartition
from odradek.records import kernel
from odradek.records.batch import BatchMeta, Record, iter_records, records_of
from odradek.records.header import HEADER_BYTES, LOG_APPEND_TIME
from odradek.records.kernel import Part
from odradek.records.scanning import Scanned

HEADERS = pa.list_(pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())]))
SCHEMA = pa.schema(
    [
        pa.field("key", pa.binary()),
        pa.field("value", pa.binary()),
        pa.field("topic", pa.string()),
        pa.field("partition", pa.int32()),
        pa.field("offset", pa.int64()),
        pa.field("timestamp", pa.timestamp("us", "UTC")),
        pa.field("timestampType", pa.int32()),
    ]
)
SCHEMA_WITH_HEADERS = SCHEMA.append(pa.field("headers", HEADERS))

_PART_BYTES = 64 << 20
"""Columns are made of about this much at a time: compressed batches may hold a lot more than was fetched."""


def arrow_batches(
    tp: TopicPartition,
    data: Buffer,
    aborted: Sequence[tuple[int, int]] | None,
    first_offset: int,
    last_offset: int,
    *,
    with_headers: bool,
    scanned: Scanned | None = None,
) -> Iterator[pa.RecordBatch]:
    """The records of fetched bytes that a reader is shown, between two offsets."""
    shown = (batch for batch, is_shown in visible_batches(data, aborted, scanned) if is_shown)
    return arrow_of(tp, data, shown, first_offset, last_offset, with_headers=with_headers)


def arrow_of(
    tp: TopicPartition,
    data: Buffer,
    batches: Iterable[BatchMeta],
    first_offset: int,
    last_offset: int,
    *,
    with_headers: bool,
) -> Iterator[pa.RecordBatch]:
    """The records of some batches of a buffer, between two offsets."""
    parts: list[Any] = []
    stamps: list[tuple[int, int]] = []
    size = 0
    for batch in batches:
        if batch.last_offset < first_offset or batch.base_offset > last_offset:
            continue
        for part in _parts(data, batch):
            stamps.append((part[3], batch.timestamp_type))
            parts.append(part)
            size += part[2] - part[1]
        if size >= _PART_BYTES:
            yield _arrow(tp, parts, stamps, first_offset, last_offset, with_headers)
            parts, stamps, size = [], [], 0
    if parts:
        yield _arrow(tp, parts, stamps, first_offset, last_offset, with_headers)


def _parts(data: Buffer, batch: BatchMeta) -> Iterator[Part]:
    """Where the records of a batch are, and what their deltas count from."""
    append_time = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else -1
    if batch.magic < 2:
        yield from _legacy_parts(list(iter_records(data, batch)), append_time)
        return
    told = (batch.record_count, batch.base_offset, batch.base_timestamp, append_time)
    if batch.compression:
        section = records_of(data, batch)
        yield (section, 0, len(section), *told)
    else:
        yield (data, batch.position + HEADER_BYTES, batch.position + batch.size, *told)


def _legacy_parts(records: Sequence[Record], append_time: int) -> Iterator[Part]:
    """Records of magic 0 or 1, encoded again. Each part has records with offsets without a gap."""
    start = 0
    for i in range(1, len(records) + 1):
        if i < len(records) and records[i].offset == records[i - 1].offset + 1:
            continue
        run = records[start:i]
        base = run[0].timestamp
        encoded = kernel.encode([(r.timestamp, r.key, r.value, r.headers) for r in run], base)
        yield (encoded, 0, len(encoded), len(run), run[0].offset, base, append_time)
        start = i


def _arrow(
    tp: TopicPartition,
    parts: list[Any],
    stamps: list[tuple[int, int]],
    first_offset: int,
    last_offset: int,
    with_headers: bool,
) -> pa.RecordBatch:
    rows, offsets, times, key_offsets, keys, key_valid, value_offsets, values, value_valid, headers = (
        kernel.columns(parts, first_offset, last_offset, with_headers)
    )
    types = {kind for _, kind in stamps}
    arrays = [
        _variable(pa.binary(), rows, key_valid, key_offsets, keys),
        _variable(pa.binary(), rows, value_valid, value_offsets, values),
        _repeated_text(tp.topic, rows),
        _repeated(pa.int32(), tp.partition, rows),
        pa.Array.from_buffers(pa.int64(), rows, [None, pa.py_buffer(offsets)]),
        pa.Array.from_buffers(pa.timestamp("us", "UTC"), rows, [None, pa.py_buffer(times)]),
        _repeated(pa.int32(), types.pop(), rows) if len(types) == 1 else _kinds(parts, stamps, offsets, rows),
    ]
    if headers is None:
        return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA)
    arrays.append(_headers(rows, *headers))
    return pa.RecordBatch.from_arrays(arrays, schema=SCHEMA_WITH_HEADERS)


def _variable(kind: Any, rows: int, valid: Buffer | None, offsets: Buffer, data: Buffer) -> Any:
    bitmap = None if valid is None else pa.py_buffer(valid)
    return pa.Array.from_buffers(kind, rows, [bitmap, pa.py_buffer(offsets), pa.py_buffer(data)])


def _headers(
    rows: int,
    list_offsets: Buffer,
    list_valid: Buffer | None,
    name_offsets: Buffer,
    names: Buffer,
    value_offsets: Buffer,
    values: Buffer,
    value_valid: Buffer | None,
) -> Any:
    count = len(name_offsets) // 4 - 1
    name = _variable(pa.string(), count, None, name_offsets, names)
    value = _variable(pa.binary(), count, value_valid, value_offsets, values)
    pairs = pa.StructArray.from_arrays([name, value], fields=list(HEADERS.value_type))
    bitmap = None if list_valid is None else pa.py_buffer(list_valid)
    return pa.Array.from_buffers(HEADERS, rows, [bitmap, pa.py_buffer(list_offsets)], children=[pairs])


def _repeated(kind: Any, value: int, rows: int) -> Any:
    return pa.Array.from_buffers(
        kind, rows, [None, pa.py_buffer(value.to_bytes(4, "little", signed=True) * rows)]
    )


def _repeated_text(text: str, rows: int) -> Any:
    return pa.repeat(pa.scalar(text), rows)


def _kinds(parts: list[Any], stamps: list[tuple[int, int]], offsets: Buffer, rows: int) -> Any:
    """Timestamp types where batches have different ones: found by the offset, since rows may be left out."""
    kinds: list[int] = []
    found = memoryview(offsets).cast("q")
    at = 0
    for number, (_, kind) in enumerate(stamps):
        following = parts[number + 1][4] if number + 1 < len(parts) else None
        while at < rows and (following is None or found[at] < following):
            kinds.append(kind)
            at += 1
    return pa.array(kinds, pa.int32())
