"""The compaction of the record kernel in Python: the twin of native/py_compaction.h, function by function.

An offset map is a byte array of 24-byte slots: a 128-bit keyed hash of a key, then the newest offset of the
key plus one, or 0 for an empty slot. These functions handle plain batches only. They stop at a batch that is
compressed, transactional, or of magic 0 or 1. The caller handles it and continues after it.
"""

from bisect import bisect_left
from struct import Struct
from typing import TypeAlias

from odradek.core.types import Buffer
from odradek.records.twins import kernel as kernel_py
from odradek.records.twins.kernel import (
    BAD_CRC,
    COMPRESSED,
    FULL,
    KEY_LENGTH,
    KEY_POSITION,
    MALFORMED,
    NO_ROOM,
    OFFSET_DELTA,
    OK,
    SLOT_BYTES,
    TIMESTAMP_DELTA,
    TRANSACTIONAL,
    VALUE_LENGTH,
    RetentionRules,
    crc32c,
    wrap64,
)

_SLOT = Struct("=QQQ")
_HEADER = Struct(">qiibIhiqqqhii")
_MASK = 0xFFFFFFFFFFFFFFFF
_NO_TIMESTAMP = -1
_CODEC_MASK = 0x07
_LOG_APPEND_TIME_FLAG = 0x08
_TRANSACTIONAL_FLAG = 0x10
_CONTROL_FLAG = 0x20
_DELETE_HORIZON_FLAG = 0x40
_RECORD_MIN_BYTES = 7
_RECORD_GROWTH_BYTES = 14

_Row: TypeAlias = tuple[int, int, int]


def _sip_rounds(v0: int, v1: int, v2: int, v3: int, rounds: int) -> tuple[int, int, int, int]:
    for _ in range(rounds):
        v0 = v0 + v1 & _MASK
        v1 = (v1 << 13 & _MASK | v1 >> 51) ^ v0
        v0 = v0 << 32 & _MASK | v0 >> 32
        v2 = v2 + v3 & _MASK
        v3 = (v3 << 16 & _MASK | v3 >> 48) ^ v2
        v0 = v0 + v3 & _MASK
        v3 = (v3 << 21 & _MASK | v3 >> 43) ^ v0
        v2 = v2 + v1 & _MASK
        v1 = (v1 << 17 & _MASK | v1 >> 47) ^ v2
        v2 = v2 << 32 & _MASK | v2 >> 32
    return v0, v1, v2, v3


def _siphash(secret: Buffer, data: Buffer) -> tuple[int, int]:
    """SipHash-2-4 with 128 bits: a client that does not know the secret cannot make two keys collide."""
    k0, k1 = int.from_bytes(secret[:8], "little"), int.from_bytes(secret[8:], "little")
    v0, v1 = k0 ^ 0x736F6D6570736575, k1 ^ 0x646F72616E646F6D ^ 0xEE
    v2, v3 = k0 ^ 0x6C7967656E657261, k1 ^ 0x7465646279746573
    size = len(data)
    padded = bytes(data) + bytes(7 - size % 8) + bytes((size & 0xFF,))
    for at in range(0, len(padded), 8):
        word = int.from_bytes(padded[at : at + 8], "little")
        v0, v1, v2, v3 = _sip_rounds(v0, v1, v2, v3 ^ word, 2)
        v0 ^= word
    v0, v1, v2, v3 = _sip_rounds(v0, v1, v2 ^ 0xEE, v3, 4)
    first = v0 ^ v1 ^ v2 ^ v3
    v0, v1, v2, v3 = _sip_rounds(v0, v1 ^ 0xDD, v2, v3, 4)
    return first, v0 ^ v1 ^ v2 ^ v3


def offset_map(slots: int) -> bytearray:
    """An empty map."""
    if slots < 0:
        raise ValueError(f"{slots} slots")
    return bytearray(slots * SLOT_BYTES)


def _check_map(slots: Buffer, secret: Buffer) -> None:
    if len(slots) % SLOT_BYTES or len(secret) != 16:
        raise ValueError(f"{len(slots)} bytes are no map, or {len(secret)} bytes no secret")


def _find_slot(slots: Buffer, secret: Buffer, key: Buffer) -> tuple[int, tuple[int, int], int]:
    """(position of the key's slot, or of the empty slot for it; its hash; the content of the slot).

    The position is -1 if the map is full of other keys.
    """
    count = len(slots) // SLOT_BYTES
    hash_ = _siphash(secret, key)
    first = hash_[0] % count if count else 0
    for i in range(count):
        position = (first + i) % count * SLOT_BYTES
        *found, stored = _SLOT.unpack_from(slots, position)
        if stored == 0 or tuple(found) == hash_:
            return position, hash_, stored
    return -1, hash_, 0


def newest_offset(slots: Buffer, secret: Buffer, key: Buffer) -> int:
    """The newest offset of a key; -1 if the key is not in the map."""
    _check_map(slots, secret)
    return int(_find_slot(slots, secret, key)[2]) - 1


def _map(
    data: Buffer,
    count: int,
    base_offset: int,
    start_offset: int,
    slots: bytearray,
    secret: Buffer,
    used: int,
    most: int,
) -> tuple[int, int]:
    """Put the keys of records into the map. Returns (finding, keys in the map)."""
    position, end = 0, len(data)
    for _ in range(count):
        try:
            record, position = kernel_py._record(data, position, end)
        except kernel_py._MalformedError:
            return MALFORMED, used
        offset = wrap64(base_offset + record[OFFSET_DELTA])
        if record[KEY_LENGTH] < 0 or offset < start_offset:
            continue
        if used >= most:
            return FULL, used
        key = data[record[KEY_POSITION] : record[KEY_POSITION] + record[KEY_LENGTH]]
        at, hash_, stored = _find_slot(slots, secret, key)
        if at < 0:
            return FULL, used
        used += stored == 0
        _SLOT.pack_into(slots, at, *hash_, offset + 1 & _MASK)
    return (OK if position == end else MALFORMED), used


def map_records(
    records: Buffer,
    count: int,
    base_offset: int,
    start_offset: int,
    slots: bytearray,
    secret: Buffer,
    used: int,
    most: int,
) -> tuple[int, int]:
    """Put the keys of `count` records, from an offset: (keys in the map now, whether some did not fit).

    Raises ValueError if the records are malformed.
    """
    _check_map(slots, secret)
    finding, used = _map(records, count, base_offset, start_offset, slots, secret, used, most)
    if finding == MALFORMED:
        raise ValueError(f"the records are malformed, or are not {count}")
    return used, int(finding == FULL)


def _locate_plain(data: Buffer, position: int, transactional_too: bool) -> tuple[int, int]:
    """(OK if there is a plain batch at a position, otherwise the finding; its size)."""
    finding, size = kernel_py._locate(data, position)
    if finding != OK:
        return finding, size
    header = _HEADER.unpack_from(data, position)
    if crc32c(memoryview(data)[position + 21 : position + size]) != header[4]:
        return BAD_CRC, size
    attributes = header[5]
    if attributes & _CONTROL_FLAG or (attributes & _TRANSACTIONAL_FLAG and not transactional_too):
        return TRANSACTIONAL, size
    return (COMPRESSED if attributes & _CODEC_MASK else OK), size


def map_batches(
    data: Buffer, position: int, start_offset: int, slots: bytearray, secret: Buffer, used: int, most: int
) -> tuple[int, int, int, int]:
    """Put the keys of plain batches into the map, from a position and an offset.

    Returns (position of the batch where it stopped, why, keys in the map now, last offset put or -1). OK: the
    buffer ends with a complete batch. After FULL, a part of the batch is in the map.
    """
    _check_map(slots, secret)
    if not 0 <= position <= len(data):
        raise ValueError(f"{position} is not between 0 and {len(data)}")
    latest, finding = -1, OK
    while position < len(data):
        finding, size = _locate_plain(data, position, False)
        if finding in (OK, COMPRESSED, TRANSACTIONAL):
            header = _HEADER.unpack_from(data, position)
            last_offset = wrap64(header[0] + header[6])
            if last_offset < start_offset:
                finding = OK
            elif finding == OK:
                records = memoryview(data)[position + _HEADER.size : position + size]
                finding, used = _map(records, header[12], header[0], start_offset, slots, secret, used, most)
                if finding == OK:
                    latest = last_offset
        if finding != OK:
            break
        position += size
    return position, finding, used, latest


class _Survivors:
    """The records of a batch that are kept, and the header fields that follow from them."""

    __slots__ = ("attributes", "base_timestamp", "kept", "max_timestamp", "rewritten", "rows")

    def __init__(self, attributes: int) -> None:
        self.attributes = attributes
        self.rows: list[_Row] = []
        self.kept = 0
        self.base_timestamp = 0
        self.max_timestamp = _NO_TIMESTAMP
        self.rewritten = False


def _judge(
    data: Buffer,
    count: int,
    base_offset: int,
    base_timestamp: int,
    stamp: int,
    attributes: int,
    rules: RetentionRules,
) -> _Survivors | None:
    """The kept records, as (timestamp, position after the timestamp, end); None if they are malformed."""
    slots, secret, latest_offset, now_ms, horizon_ms, _ = rules
    has_horizon = bool(attributes & _DELETE_HORIZON_FLAG)
    keep_tombstones = not has_horizon or now_ms < base_timestamp
    stamped = bool(attributes & _LOG_APPEND_TIME_FLAG)
    found = _Survivors(attributes)
    found.max_timestamp = stamp if stamped else _NO_TIMESTAMP
    tombstones = False
    position, end = 0, len(data)
    for _ in range(count):
        start = position
        try:
            record, position = kernel_py._record(data, position, end)
        except kernel_py._MalformedError:
            return None
        offset = wrap64(base_offset + record[OFFSET_DELTA])
        if offset <= latest_offset:
            if record[KEY_LENGTH] < 0 or (record[VALUE_LENGTH] < 0 and not keep_tombstones):
                continue
            key = data[record[KEY_POSITION] : record[KEY_POSITION] + record[KEY_LENGTH]]
            if offset < newest_offset(slots, secret, key):
                continue
        timestamp = stamp if stamped else wrap64(base_timestamp + record[TIMESTAMP_DELTA])
        if not found.rows:
            found.base_timestamp = timestamp
        found.max_timestamp = max(found.max_timestamp, timestamp)
        tombstones |= record[VALUE_LENGTH] < 0
        _, after = kernel_py._varint(data, start, end)
        _, after = kernel_py._varint(data, after + 1, end, 10)
        found.rows.append((timestamp, after, position))
    found.kept = len(found.rows)
    found.rewritten = found.kept < count
    if has_horizon:
        found.base_timestamp = base_timestamp
    elif tombstones:
        found.base_timestamp = horizon_ms
        found.attributes |= _DELETE_HORIZON_FLAG
        found.rewritten = True
    return found if position == end else None


def _write(data: Buffer, found: _Survivors) -> bytearray:
    out = bytearray()
    for timestamp, after, end in found.rows:
        record = bytearray(1)
        kernel_py._put_varint(record, wrap64(timestamp - found.base_timestamp))
        record += data[after:end]
        kernel_py._put_bytes(out, record)
    return out


def _can_hold(count: int, size: int) -> bool:
    return 0 <= count <= size // _RECORD_MIN_BYTES


def retain_records(
    records: Buffer,
    count: int,
    base_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    rules: RetentionRules,
) -> tuple[int, int, int, int, bytearray] | None:
    """The kept records of a batch with these header fields; None if all are kept unchanged.

    Returns (how many, attributes, base timestamp, max timestamp, the records). Raises ValueError if the
    records are malformed.
    """
    _check_map(rules[0], rules[1])
    found = None
    if _can_hold(count, len(records)):
        found = _judge(records, count, base_offset, base_timestamp, max_timestamp, attributes, rules)
    if found is None:
        raise ValueError(f"the records are malformed, or are not {count}")
    if found.kept and not found.rewritten:
        return None
    written = _write(records, found)
    return found.kept, found.attributes, found.base_timestamp, found.max_timestamp, written


def retain_batches(
    data: Buffer, position: int, out: bytearray, filled: int, rules: RetentionRules, one: bool
) -> tuple[int, int, int]:
    """Append the kept records of plain batches, from a position, to the output.

    Returns (position of the batch where it stopped, why, filled bytes of the output). OK: the buffer ends
    with a complete batch. With `one`, only one batch is handled, which may be transactional.
    """
    _check_map(rules[0], rules[1])
    if not 0 <= position <= len(data) or not 0 <= filled <= len(out):
        raise ValueError(f"{position} or {filled} is out of range")
    finding = OK
    while position < len(data):
        finding, size = _locate_plain(data, position, one)
        if finding == OK:
            batch = memoryview(data)[position : position + size]
            finding, written = _retain_batch(batch, rules, len(out) - filled)
            out[filled : filled + len(written)] = written
            filled += len(written)
        if finding != OK:
            break
        position += size
        if one:
            break
    return position, finding, filled


def _retain_batch(batch: memoryview, rules: RetentionRules, room: int) -> tuple[int, Buffer]:
    """(finding, what is kept of one plain batch)."""
    header = list(_HEADER.unpack_from(batch))
    base_offset, attributes, last_delta, base_ts, max_ts, count = (header[i] for i in (0, 5, 6, 7, 8, 12))
    records = batch[_HEADER.size :]
    if not _can_hold(count, len(records)):
        return MALFORMED, b""
    if room < len(batch) + count * _RECORD_GROWTH_BYTES:
        return NO_ROOM, b""
    found = _judge(records, count, base_offset, base_ts, max_ts, attributes, rules)
    if found is None:
        return MALFORMED, b""
    if not found.kept:
        if not _is_kept_empty(rules[5], wrap64(base_offset + last_delta)):
            return OK, b""
        header[5] = attributes & (_LOG_APPEND_TIME_FLAG | _TRANSACTIONAL_FLAG | _CONTROL_FLAG)
        header[7], header[12] = _NO_TIMESTAMP, 0
        return OK, _sealed(header, b"")
    if not found.rewritten:
        return OK, batch
    header[5], header[7], header[8] = found.attributes, found.base_timestamp, found.max_timestamp
    header[12] = found.kept
    return OK, _sealed(header, _write(records, found))


def _is_kept_empty(last_offsets: Buffer, last_offset: int) -> bool:
    whole = len(last_offsets) // 8 * 8
    kept = memoryview(last_offsets).cast("B")[:whole].cast("q")
    at = bisect_left(kept, last_offset)
    return at < len(kept) and kept[at] == last_offset


def _sealed(header: list[int], records: Buffer) -> bytearray:
    header[1] = _HEADER.size - 12 + len(records)
    batch = bytearray(_HEADER.pack(*header))
    batch += records
    header[4] = crc32c(memoryview(batch)[21:])
    _HEADER.pack_into(batch, 0, *header)
    return batch


def index_batches(
    data: Buffer, position: int, interval: int, since: int, largest: int, largest_offset: int
) -> tuple[list[tuple[int, int, int, int]], int, int, int, int]:
    """The index entries of a segment for batches at a position of its file.

    An entry (last offset, position, largest timestamp so far, its offset) belongs to the first batch after
    more than `interval` bytes without an entry; `since` counts these bytes. Returns the entries, and the four
    running numbers after the last batch.
    """
    entries: list[tuple[int, int, int, int]] = []
    at = 0
    while at < len(data):
        finding, size = kernel_py._locate(data, at)
        if finding != OK:
            break
        header = _HEADER.unpack_from(data, at)
        last_offset = wrap64(header[0] + header[6])
        if header[8] > largest:
            largest, largest_offset = header[8], last_offset
        if since > interval:
            entries.append((last_offset, position, largest, largest_offset))
            since = size
        else:
            since += size
        position += size
        at += size
    return entries, position, since, largest, largest_offset
