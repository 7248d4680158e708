"""The columns of the record kernel in Python: the twin of native/py_columns.h and native/py_rows.h.

A column has Apache Arrow's layout: 32-bit offsets in the machine's byte order, the bytes end to end, and a
validity bitmap, lowest bit first. This file does not use Arrow, and does not know the columns of tables.
"""

from array import array
from collections.abc import Sequence
from itertools import accumulate, pairwise
from typing import Final, TypeAlias

from odradek.core.types import Buffer
from odradek.records.twins import kernel as kernel_py
from odradek.records.twins.kernel import (
    HEADER_COUNT,
    HEADERS_POSITION,
    KEY_LENGTH,
    KEY_POSITION,
    OFFSET_DELTA,
    TIMESTAMP_DELTA,
    VALUE_LENGTH,
    VALUE_POSITION,
    wrap64,
)

Part: TypeAlias = tuple[Buffer, int, int, int, int, int, int]
"""(data, position, end, count, base offset, base timestamp, append time): the records of a batch.

They are not compressed, and lie between two positions of a buffer. An append time of 0 or more replaces the
timestamps of all records.
"""

Column: TypeAlias = tuple[Buffer, Buffer, Buffer | None]
"""(offsets, bytes, validity). Without a bitmap nothing is null."""

HeaderColumns: TypeAlias = tuple[Buffer, Buffer | None, Buffer, Buffer, Buffer, Buffer, Buffer | None]
"""(list offsets, list validity, name offsets, names, value offsets, values, value validity).

A null list is a record without headers. The offsets of the lists count headers from the buffers' start.
"""

Rows: TypeAlias = tuple[
    int,
    bytes,
    bytes,
    bytes,
    bytes,
    bytes | None,
    bytes,
    bytes,
    bytes | None,
    tuple[bytes, bytes | None, bytes, bytes, bytes, bytes, bytes | None] | None,
]
"""(rows, offsets, timestamps, *key column, *value column, header columns).

Offsets and timestamps (in microseconds) are 64-bit numbers. A bitmap is None if nothing is null.
"""

_MAX: Final = 0x7FFFFFFF
_MAX_US: Final = (1 << 63) - 1
_MURMUR_SEED = 0x9747B28C
_MURMUR_M = 0x5BD1E995
_MASK = 0xFFFFFFFF


class _Filling:
    """A column under construction. It keeps views until the end, so that it checks its size before any
    copy."""

    def __init__(self) -> None:
        self._items: list[memoryview | None] = []
        self._size = 0

    def add(self, data: memoryview, start: int, length: int) -> None:
        if length < 0:
            self._items.append(None)
            return
        self._size += length
        if self._size > _MAX:
            raise ValueError(f"a column is larger than {_MAX} bytes")
        self._items.append(data[start : start + length])

    def __len__(self) -> int:
        return len(self._items)

    def finish(self) -> tuple[bytes, bytes, bytes | None]:
        lengths = (0 if item is None else len(item) for item in self._items)
        offsets = array("i", accumulate(lengths, initial=0)).tobytes()
        data = b"".join(item for item in self._items if item is not None)
        return offsets, data, _bitmap([item is not None for item in self._items])


def _bitmap(valid: list[bool]) -> bytes | None:
    if all(valid):
        return None
    bitmap = bytearray((len(valid) + 7) // 8)
    for i, one in enumerate(valid):
        bitmap[i >> 3] |= one << (i & 7)
    return bytes(bitmap)


def columns(parts: Sequence[Part], first_offset: int, last_offset: int, with_headers: bool) -> Rows:
    """The records of many batches between two offsets (inclusive) as columns. Timestamps are clamped to what
    64 bits of microseconds hold.

    Raises ValueError if a part does not contain exactly its count of valid records, or if a column is too
    large for 32-bit offsets.
    """
    offsets, timestamps = array("q"), array("q")
    keys, values, names, contents = _Filling(), _Filling(), _Filling(), _Filling()
    list_offsets = array("i", [0])
    for data, position, end, count, base_offset, base_timestamp, append_time in parts:
        view = memoryview(data).cast("B")
        if not 0 <= position <= end <= len(view) or count < 0:
            raise ValueError(f"{count} records at {position} to {end} are not in {len(view)} bytes")
        for index in range(count):
            try:
                record, position = kernel_py._record(view, position, end)
            except kernel_py._MalformedError:
                raise ValueError(f"record {index} of {count} is malformed") from None
            offset = wrap64(base_offset + record[OFFSET_DELTA])
            if not first_offset <= offset <= last_offset:
                continue
            time_ms = append_time if append_time >= 0 else wrap64(base_timestamp + record[TIMESTAMP_DELTA])
            offsets.append(offset)
            timestamps.append(max(-_MAX_US - 1, min(_MAX_US, time_ms * 1000)))
            keys.add(view, record[KEY_POSITION], record[KEY_LENGTH])
            values.add(view, record[VALUE_POSITION], record[VALUE_LENGTH])
            if with_headers:
                _add_headers(view, record, end, names, contents)
                list_offsets.append(len(names))
        if position != end:
            raise ValueError(f"{end - position} bytes after the last of {count} records")
    headers = None
    if with_headers:
        listed = [a != b for a, b in pairwise(list_offsets)]
        headers = (list_offsets.tobytes(), _bitmap(listed), *names.finish()[:2], *contents.finish())
    return (
        len(offsets),
        offsets.tobytes(),
        timestamps.tobytes(),
        *keys.finish(),
        *values.finish(),
        headers,
    )


def _add_headers(
    view: memoryview, record: tuple[int, ...], end: int, names: _Filling, contents: _Filling
) -> None:
    position = record[HEADERS_POSITION]
    for _ in range(record[HEADER_COUNT]):
        for column in (names, contents):
            start, length, position = kernel_py._bytes_span(view, position, end)
            column.add(view, start, length)


class _Spans:
    """The position of each element: in the bytes of a column, or in the headers of a column of lists."""

    def __init__(self, offsets: Buffer, size: int, validity: Buffer | None) -> None:
        self._offsets = _numbers(offsets)
        self._size = size
        self._validity = None if validity is None else memoryview(validity).cast("B")
        self.elements = max(0, len(self._offsets) - 1)
        if self._validity is not None:
            self.elements = min(self.elements, 8 * len(self._validity))

    def at(self, element: int) -> tuple[int, int] | None:
        if element >= self.elements:
            raise ValueError(f"element {element} of {self.elements}")
        start, stop = self._offsets[element], self._offsets[element + 1]
        if not 0 <= start <= stop <= self._size:
            raise ValueError(f"an element at {start} to {stop} of {self._size}")
        if self._validity is not None and not self._validity[element >> 3] >> (element & 7) & 1:
            return None
        return start, stop


class _Strings:
    """A column of byte strings. A column of None has only nulls."""

    def __init__(self, column: Column | None) -> None:
        self._spans = None
        if column is not None:
            offsets, data, validity = column
            self._data = memoryview(data).cast("B")
            self._spans = _Spans(offsets, len(self._data), validity)

    @property
    def elements(self) -> int:
        return 0 if self._spans is None else self._spans.elements

    def at(self, element: int) -> memoryview | None:
        span = None if self._spans is None else self._spans.at(element)
        return None if span is None else self._data[span[0] : span[1]]


class _HeaderLists:
    """A column of header lists. A column of None has no headers."""

    def __init__(self, given: HeaderColumns | None) -> None:
        self._lists = None
        if given is not None:
            list_offsets, list_validity, name_offsets, names, value_offsets, values, value_validity = given
            self._names = _Strings((name_offsets, names, None))
            self._contents = _Strings((value_offsets, values, value_validity))
            size = min(self._names.elements, self._contents.elements)
            self._lists = _Spans(list_offsets, size, list_validity)

    def at(self, element: int) -> list[tuple[memoryview | None, memoryview | None]]:
        span = None if self._lists is None else self._lists.at(element)
        return [] if span is None else [(self._names.at(i), self._contents.at(i)) for i in range(*span)]


def _numbers(data: Buffer) -> memoryview:
    view = memoryview(data).cast("B")
    return view[: len(view) // 4 * 4].cast("i")


def _check_between(number: int, least: int, most: int) -> None:
    if not least <= number <= most:
        raise ValueError(f"{number} is not between {least} and {most}")


def murmur2(data: Buffer) -> int:
    """Murmur2 as Kafka's Java client computes it for keys, as an unsigned 32-bit number."""
    length = len(data)
    h = _MURMUR_SEED ^ length
    whole = length & ~3
    for i in range(0, whole, 4):
        k = int.from_bytes(data[i : i + 4], "little") * _MURMUR_M & _MASK
        k = (k ^ k >> 24) * _MURMUR_M & _MASK
        h = h * _MURMUR_M & _MASK ^ k
    if whole < length:
        h = (h ^ int.from_bytes(data[whole:], "little")) * _MURMUR_M & _MASK
    h = (h ^ h >> 13) * _MURMUR_M & _MASK
    return h ^ h >> 15


def place_keys(
    key_offsets: Buffer,
    keys: Buffer,
    key_validity: Buffer | None,
    first: int,
    rows: int,
    partition_count: int,
) -> bytes:
    """The partition of each key from element `first`, by the rule of Kafka's Java client, as 32-bit numbers.

    -1 for a null key: the caller chooses its partition.
    """
    _check_between(first, 0, _MAX)
    _check_between(rows, 0, _MAX)
    _check_between(partition_count, 1, _MAX)
    column = _Strings((key_offsets, keys, key_validity))
    places = array("i")
    for element in range(first, first + rows):
        key = column.at(element)
        places.append(-1 if key is None else (murmur2(key) & 0x7FFFFFFF) % partition_count)
    return places.tobytes()


def group_rows(places: Buffer, partition_count: int) -> tuple[bytes, bytes]:
    """Group rows by partition, each group in row order: (start of each group, row numbers).

    `places` has one 32-bit number per row, its partition. The starts have one more entry, for the end.
    """
    _check_between(partition_count, 1, _MAX)
    numbers = _numbers(places)
    if numbers.nbytes != memoryview(places).nbytes:
        raise ValueError(f"{memoryview(places).nbytes} bytes are no 32-bit places")
    amounts = [0] * partition_count
    for place in numbers:
        _check_between(place, 0, partition_count - 1)
        amounts[place] += 1
    starts = array("i", accumulate(amounts, initial=0))
    return starts.tobytes(), array("i", sorted(range(len(numbers)), key=numbers.__getitem__)).tobytes()


def build_columns(
    order: Buffer | None,
    start: int,
    stop: int,
    first: int,
    key_column: Column | None,
    value_column: Column | None,
    header_columns: HeaderColumns | None,
    timestamp_delta: int,
    limit: int,
    room: int,
) -> tuple[bytearray, int]:
    """Rows as records at offset deltas 0, 1, … after `room` zero bytes: (the records, the next start).

    The rows are order[start:stop], or start to stop without an order. Row r is element `first` + r of every
    column, as in a slice of an array. It stops before the record that would exceed `limit` bytes, but has at
    least one record. A column of None has only nulls.

    Raises ValueError if the columns do not have a row, or if it is too large for a record.
    """
    numbers = None if order is None else _numbers(order)
    _check_between(stop, 0, _MAX if numbers is None else len(numbers))
    _check_between(start, 0, stop)
    _check_between(first, 0, _MAX)
    keys, values, headers = _Strings(key_column), _Strings(value_column), _HeaderLists(header_columns)
    out = bytearray(room)
    for index in range(start, stop):
        row = index if numbers is None else numbers[index]
        _check_between(row, 0, _MAX)
        record = bytearray(1)
        kernel_py._put_varint(record, timestamp_delta)
        kernel_py._put_varint(record, index - start)
        kernel_py._put_bytes(record, keys.at(first + row))
        kernel_py._put_bytes(record, values.at(first + row))
        pairs = headers.at(first + row)
        kernel_py._put_varint(record, len(pairs))
        for name, content in pairs:
            kernel_py._put_bytes(record, name)
            kernel_py._put_bytes(record, content)
        _check_between(len(record), 0, _MAX)
        before = len(out)
        kernel_py._put_bytes(out, record)
        if index > start and len(out) - room > limit:
            del out[before:]
            return out, index
    return out, stop
