"""The record kernel in Python: the twin of _kernel.c, function by function, for machines without a compiler.

It checks the structure of bytes only. check.py turns findings into Kafka errors, decompresses, and applies
the configuration. tests/property checks that both kernels give the same answers.
"""

import functools
from array import array
from collections.abc import Callable, Sequence
from struct import Struct
from typing import Final, TypeAlias, TypeVar

from odradek.core.types import Buffer

# What validate and scan_segment find about a batch. _kernel.c has the same numbers.
OK: Final = 0
COMPRESSED: Final = 1  # header and CRC are valid, the records are not checked yet
LEGACY: Final = 2  # magic 0 or 1, not checked
BAD_LENGTH: Final = 3
BAD_MAGIC: Final = 4
BAD_CRC: Final = 5
BAD_COUNT: Final = 6
MALFORMED: Final = 7  # lengths, varints or bytes left over: `index` is the record
BAD_OFFSET_DELTA: Final = 8
NO_KEY: Final = 9
BAD_TIMESTAMP: Final = 10
PARTIAL: Final = 11  # the buffer ends inside a batch
# Why the functions of twins/compaction.py stop before a batch.
TRANSACTIONAL: Final = 12  # it is transactional, or a marker
FULL: Final = 13  # the offset map is full
NO_ROOM: Final = 14  # the output is too small for the batch

# The columns of a walk, each `count` signed 64-bit numbers; positions are into the walked buffer, a length
# of -1 is null. The header section starts after the header count.
(
    OFFSET_DELTA,
    TIMESTAMP_DELTA,
    KEY_POSITION,
    KEY_LENGTH,
    VALUE_POSITION,
    VALUE_LENGTH,
    HEADERS_POSITION,
    HEADERS_LENGTH,
    HEADER_COUNT,
) = range(9)
COLUMNS: Final = 9

Headers: TypeAlias = Sequence[tuple[str, bytes | None]]
M = TypeVar("M", bound=tuple[int, ...])

RecordTuple: TypeAlias = tuple[int, bytes | None, bytes | None, Headers]

SLOT_BYTES: Final = 24  # of an offset map: a 128-bit hash and an offset
RetentionRules: TypeAlias = tuple[Buffer, Buffer, int, int, int, Buffer]
"""(offset map, its secret, latest offset, now, horizon of new tombstones, last offsets as sorted int64).

The rules of a compaction. Records above the latest offset are not in the map, and all are kept. A batch whose
last offset is one of the last offsets is kept even without records.
"""

_HEADER = Struct(">qiibIhiqqqhii")
_LENGTH = Struct(">i")
_NO_TIMESTAMP = -1
_LOG_APPEND_TIME_FLAG = 0x08
_CONTROL_FLAG = 0x20
_MAX_COUNT = 0x7FFFFFFF


@functools.cache
def _load_crc32c() -> Callable[[Buffer, int], int]:
    """CRC-32C, imported at the first checksum: the import takes 40 ms, and the native kernel does not need
    it."""
    from crc32c import crc32c as loaded

    function: Callable[[Buffer, int], int] = loaded
    return function


def crc32c(data: Buffer, value: int = 0) -> int:
    return _load_crc32c()(data, value)


class _MalformedError(Exception):
    pass


def _varint(data: Buffer, position: int, end: int, most_bytes: int = 5) -> tuple[int, int]:
    """A zigzag number and the position after it: 32 bits in up to 5 bytes, 64 in up to 10. More are cut
    off."""
    shift = raw = 0
    for _ in range(most_bytes):
        if position >= end:
            raise _MalformedError
        byte = data[position]
        position += 1
        raw |= (byte & 0x7F) << shift
        if byte < 0x80:
            raw &= 0xFFFFFFFF if most_bytes == 5 else 0xFFFFFFFFFFFFFFFF
            return (raw >> 1) ^ -(raw & 1), position
        shift += 7
    raise _MalformedError


def _bytes_span(data: Buffer, position: int, end: int) -> tuple[int, int, int]:
    """(start, length, position after) of a length-prefixed byte string; every negative length is null."""
    length, position = _varint(data, position, end)
    if length < 0:
        return position, -1, position
    if length > end - position:
        raise _MalformedError
    return position, length, position + length


def _record(data: Buffer, position: int, end: int) -> tuple[tuple[int, ...], int]:
    """One record as the nine numbers of a walk, and the position after it."""
    size, position = _varint(data, position, end)
    if size < 1 or size > end - position:
        raise _MalformedError
    end = position + size
    timestamp_delta, position = _varint(data, position + 1, end, 10)
    offset_delta, position = _varint(data, position, end)
    key, key_length, position = _bytes_span(data, position, end)
    value, value_length, position = _bytes_span(data, position, end)
    count, position = _varint(data, position, end)
    if count < 0 or count > end - position:
        raise _MalformedError
    headers = position
    for _ in range(count):
        _, header_key_length, position = _bytes_span(data, position, end)
        if header_key_length < 0:
            raise _MalformedError
        _, _, position = _bytes_span(data, position, end)
    if position != end:
        raise _MalformedError
    return (
        offset_delta,
        timestamp_delta,
        key,
        key_length,
        value,
        value_length,
        headers,
        position - headers,
        count,
    ), end


def wrap64(value: int) -> int:
    """A sum of two 64-bit numbers as C and Java compute it."""
    if -(1 << 63) <= value < 1 << 63:
        return value
    value &= 0xFFFFFFFFFFFFFFFF
    return value - (1 << 64) if value >> 63 else value


def check_records(
    data: Buffer,
    count: int,
    base_timestamp: int,
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    position: int = 0,
) -> tuple[int, int, int]:
    """Check `count` records that fill the buffer from a position.

    Returns (finding, index of the record, largest timestamp). MALFORMED comes before all other findings, at
    whichever record. Otherwise it is the finding of the first record that has one.
    """
    finding, found_at = OK, -1
    largest = _NO_TIMESTAMP
    end = len(data)
    for index in range(count):
        try:
            record, position = _record(data, position, end)
        except _MalformedError:
            return MALFORMED, index, largest
        timestamp = wrap64(base_timestamp + record[TIMESTAMP_DELTA])
        largest = max(largest, timestamp)
        if finding == OK:
            if record[OFFSET_DELTA] != index:
                finding = BAD_OFFSET_DELTA
            else:
                finding = _outside(record, timestamp, min_timestamp, max_timestamp, need_keys)
            if finding != OK:
                found_at = index
    if position != end:
        return MALFORMED, count, largest
    return finding, found_at, largest


def _outside(
    record: tuple[int, ...], timestamp: int, min_timestamp: int, max_timestamp: int, need_keys: bool
) -> int:
    if need_keys and record[KEY_LENGTH] < 0:
        return NO_KEY
    if timestamp != _NO_TIMESTAMP and not min_timestamp <= timestamp <= max_timestamp:
        return BAD_TIMESTAMP
    return OK


def find_outsiders(
    data: Buffer,
    count: int,
    base_timestamp: int,
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    most: int,
    least_delta: int = -(1 << 31),
) -> tuple[int, int, list[tuple[int, int, int, int]]]:
    """(records without a required key, other records with a timestamp out of bounds, and for the first `most`
    of both: finding, index, offset delta, timestamp) of `count` records that fill the buffer.

    Records with an offset delta below `least_delta` are skipped. Raises ValueError if the records are
    malformed.
    """
    amounts = {NO_KEY: 0, BAD_TIMESTAMP: 0}
    first: list[tuple[int, int, int, int]] = []
    position, end = 0, len(data)
    for index in range(count):
        try:
            record, position = _record(data, position, end)
        except _MalformedError:
            raise ValueError(f"record {index} of {count} is malformed") from None
        timestamp = wrap64(base_timestamp + record[TIMESTAMP_DELTA])
        finding = _outside(record, timestamp, min_timestamp, max_timestamp, need_keys)
        if finding != OK and record[OFFSET_DELTA] >= least_delta:
            amounts[finding] += 1
            if len(first) < most:
                first.append((finding, index, record[OFFSET_DELTA], timestamp))
    if position != end:
        raise ValueError(f"record {count} of {count} is malformed")
    return amounts[NO_KEY], amounts[BAD_TIMESTAMP], first


def validate(
    sets: Sequence[Buffer],
    meta: type[M],
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    plain_bytes: int = -1,
) -> list[M | list[tuple[int, int, int, M | None]]]:
    """For each set, for each complete batch in it: (finding, record index, largest timestamp, header meta).

    The list of a set ends before a partial batch, and after a batch with an invalid length or magic (meta
    None). The common case is one valid batch of at most `plain_bytes` in a writable buffer, with nothing to
    refuse or rewrite: then the result for the set is just its meta.
    """
    result: list[M | list[tuple[int, int, int, M | None]]] = []
    for data in sets:
        found = _validate_set(data, meta, min_timestamp, max_timestamp, need_keys)
        result.append(_plain(data, found, plain_bytes) or found)
    return result


def _plain(data: Buffer, found: list[tuple[int, int, int, M | None]], plain_bytes: int) -> M | None:
    if len(found) != 1 or found[0][0] != OK or memoryview(data).readonly:
        return None
    _, _, largest, batch = found[0]
    assert batch is not None
    _, size, base_offset, _, _, attributes, _, max_timestamp, producer_id, _, sequence, *_ = batch
    if size != len(data) or size > plain_bytes or base_offset != 0 or largest != max_timestamp:
        return None
    if attributes & (_LOG_APPEND_TIME_FLAG | _CONTROL_FLAG) or (producer_id >= 0 and sequence < 0):
        return None
    return batch


def _validate_set(
    data: Buffer, meta: type[M], min_timestamp: int, max_timestamp: int, need_keys: bool
) -> list[tuple[int, int, int, M | None]]:
    found: list[tuple[int, int, int, M | None]] = []
    position = 0
    while True:
        finding, size = _locate(data, position)
        if finding == PARTIAL:
            return found
        if finding != OK:
            found.append((finding, -1, _NO_TIMESTAMP, None))
            if finding != LEGACY:
                return found
            position += size
            continue
        header = _HEADER.unpack_from(data, position)
        index, largest = -1, _NO_TIMESTAMP
        count = header[12]
        if crc32c(memoryview(data)[position + 21 : position + size]) != header[4]:
            finding = BAD_CRC
        elif count <= 0 or header[6] != count - 1:
            finding = BAD_COUNT
        elif header[5] & 7:
            finding = COMPRESSED
        else:
            records = memoryview(data)[position : position + size]
            finding, index, largest = check_records(
                records, count, header[7], min_timestamp, max_timestamp, need_keys, _HEADER.size
            )
        found.append((finding, index, largest, _meta(meta, header, position)))
        position += size


def _locate(data: Buffer, position: int) -> tuple[int, int]:
    """(OK if there is a complete magic 2 batch at a position, otherwise the finding; its size)."""
    left = len(data) - position
    if left < 17:
        return PARTIAL, 0
    (length,) = _LENGTH.unpack_from(data, position + 8)
    magic = data[position + 16]
    if length < 14:
        return BAD_LENGTH, 0
    if magic > 2:
        return BAD_MAGIC, 0
    if length > left - 12:
        return PARTIAL, 0
    if magic < 2:
        return LEGACY, length + 12
    return (OK if length >= 49 else BAD_LENGTH), length + 12


def _meta(meta: type[M], header: tuple[int, ...], position: int) -> M:
    offset, length, epoch, magic, crc, attributes, last_delta, base_ts, max_ts, pid, pepoch, seq, count = (
        header
    )
    fields = (
        position,
        length + 12,
        offset,
        last_delta,
        epoch,
        attributes,
        base_ts,
        max_ts,
        pid,
        pepoch,
        seq,
        count,
    )
    return tuple.__new__(meta, (*fields, crc, magic))


def scan_segment(data: Buffer, meta: type[M], position: int = 0) -> tuple[list[M], int, int]:
    """The valid batches from a position: (metas, position after the last one, why the scan ended).

    OK: the buffer ends with a complete batch. PARTIAL, BAD_LENGTH, BAD_MAGIC, BAD_CRC: there is no valid
    batch at that position. LEGACY: there is an entry of magic 0 or 1.
    """
    metas: list[M] = []
    while position < len(data):
        finding, size = _locate(data, position)
        if finding != OK:
            return metas, position, finding
        header = _HEADER.unpack_from(data, position)
        if crc32c(memoryview(data)[position + 21 : position + size]) != header[4]:
            return metas, position, BAD_CRC
        metas.append(_meta(meta, header, position))
        position += size
    return metas, position, OK


def walk(data: Buffer, count: int, position: int = 0) -> bytes:
    """`count` records that fill the buffer from a position, as nine columns of 64-bit numbers.

    Raises ValueError if the records are malformed.
    """
    if count < 0:
        raise ValueError(f"{count} records")
    rows = []
    end = len(data)
    for index in range(count):
        try:
            record, position = _record(data, position, end)
        except _MalformedError:
            raise ValueError(f"record {index} is malformed") from None
        rows.append(record)
    if position != end:
        raise ValueError(f"{end - position} bytes after the last of {count} records")
    columns = array("q")
    for column in zip(*rows, strict=True):
        columns.extend(column)
    return columns.tobytes()


def _put_varint(out: bytearray, value: int) -> None:
    raw = (value << 1) ^ (value >> 63)
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)


def _put_bytes(out: bytearray, value: Buffer | None) -> None:
    if value is None:
        out.append(1)
    else:
        _put_varint(out, len(value))
        out += value


def build(spans: Buffer, keys: Buffer, values: Buffer, headers: Buffer, room: int = 0) -> bytearray:
    """The records that the columns of `walk` describe, taken from three buffers, after `room` zero bytes.

    Raises ValueError if a span extends past its buffer or is not a record.
    """
    columns = memoryview(spans).cast("B").cast("q")
    count, rest = divmod(len(columns), COLUMNS)
    if rest:
        raise ValueError(f"{len(columns)} numbers are not {COLUMNS} columns")
    out = bytearray(room)
    keys, values, headers = memoryview(keys), memoryview(values), memoryview(headers)
    for row in zip(*(columns[i * count : (i + 1) * count] for i in range(COLUMNS)), strict=True):
        if not (_fits32(row[OFFSET_DELTA]) and 0 <= row[HEADER_COUNT] <= _MAX_COUNT):
            raise ValueError("an offset delta or a header count is out of range")
        section = _span(headers, row[HEADERS_POSITION], row[HEADERS_LENGTH])
        if section is None:
            raise ValueError("a header section is never null")
        record = bytearray(1)
        _put_varint(record, row[TIMESTAMP_DELTA])
        _put_varint(record, row[OFFSET_DELTA])
        _put_bytes(record, _span(keys, row[KEY_POSITION], row[KEY_LENGTH]))
        _put_bytes(record, _span(values, row[VALUE_POSITION], row[VALUE_LENGTH]))
        _put_varint(record, row[HEADER_COUNT])
        record += section
        _put_bytes(out, record)
    return out


def _fits32(value: int) -> bool:
    return -_MAX_COUNT - 1 <= value <= _MAX_COUNT


def _span(data: memoryview, position: int, length: int) -> memoryview | None:
    if length < 0:
        return None
    if position < 0 or length > len(data) - position:
        raise ValueError(f"span {position}+{length} leaves its buffer of {len(data)} bytes")
    return data[position : position + length]


def allocate(size: int) -> bytearray:
    """A buffer that the caller overwrites. The native kernel does not initialize its memory."""
    return bytearray(size)


def encode(records: Sequence[RecordTuple], base_timestamp: int, room: int = 0) -> bytearray:
    """(timestamp, key, value, headers) tuples as records at offset deltas 0, 1, … after `room` zero bytes."""
    out = bytearray(room)
    for index, (timestamp, key, value, headers) in enumerate(records):
        record = bytearray(1)
        _put_varint(record, wrap64(timestamp - base_timestamp))
        _put_varint(record, index)
        _put_bytes(record, key)
        _put_bytes(record, value)
        _put_varint(record, len(headers))
        for name, content in headers:
            _put_bytes(record, name.encode())
            _put_bytes(record, content)
        _put_bytes(out, record)
    return out
