"""Reads message sets of magic 0 and 1 from old segments. Nothing writes them."""

from collections.abc import Iterator
from struct import Struct
from struct import error as StructError

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMESTAMP, Buffer
from odradek.records import compression
from odradek.records.codecs import lz4
from odradek.records.header import (
    CODEC_MASK,
    LEGACY_HEADER,
    LEGACY_TIMESTAMP,
    LOG_APPEND_TIME_FLAG,
    LOG_OVERHEAD,
)

Entry = tuple[int, int, int, int, bytes | None, bytes | None]

_LENGTH = Struct(">i")


def iter_entries(
    buf: Buffer, position: int, limit_bytes: int
) -> Iterator[tuple[int, int, bytes | None, bytes | None]]:
    """(offset, timestamp, key, value) of the entry at a position, or of all entries inside a compressed
    one."""
    offset, magic, attributes, timestamp, key, value = _read_entry(buf, position)[0]
    codec = attributes & CODEC_MASK
    if codec == compression.NONE:
        yield offset, timestamp, key, value
        return
    if value is None:
        raise _corrupt(f"The compressed entry at offset {offset} has no value.")
    if codec == compression.ZSTD:
        raise _corrupt(f"The entry at offset {offset} has magic {magic}, which does not support zstd.")
    if magic == 0 and codec == compression.LZ4:
        value = lz4.mend_header(value)
    inner = list(_read_set(compression.decompress(codec, value, limit_bytes)))
    if not inner:
        raise _corrupt(f"The compressed entry at offset {offset} holds no records.")
    base = _base_offset(offset, inner[-1][0]) if magic == 1 else 0
    for inner_offset, _, inner_attributes, inner_timestamp, inner_key, inner_value in inner:
        if inner_attributes & CODEC_MASK:
            raise _corrupt(f"A record inside the compressed entry at offset {offset} is compressed itself.")
        stamped = timestamp if attributes & LOG_APPEND_TIME_FLAG else inner_timestamp
        yield base + inner_offset, stamped, inner_key, inner_value


def _base_offset(offset: int, last_inner: int) -> int:
    """The offset that the inner offsets of magic 1 are relative to. The wrapper has the last record's offset.

    A wrapper at offset 0 never got an offset: some clients sent them like this.
    """
    if offset == 0:
        return 0
    if offset < last_inner:
        raise _corrupt(f"The compressed entry at offset {offset} contains the offset {last_inner}.")
    return offset - last_inner


def _read_set(buf: Buffer) -> Iterator[Entry]:
    position = 0
    while position < len(buf):
        entry, position = _read_entry(buf, position)
        yield entry


def _read_entry(buf: Buffer, position: int) -> tuple[Entry, int]:
    """(offset, magic, attributes, timestamp, key, value) and the position after the entry."""
    try:
        offset, size, _, magic, attributes = LEGACY_HEADER.unpack_from(buf, position)
        end = position + LOG_OVERHEAD + size
        cursor = position + LEGACY_HEADER.size
        timestamp = NO_TIMESTAMP
        if magic == 1:
            (timestamp,) = LEGACY_TIMESTAMP.unpack_from(buf, cursor)
            cursor += LEGACY_TIMESTAMP.size
        elif magic != 0:
            raise _corrupt(f"Found an entry of magic {magic} among entries of magic 0 and 1.")
        key, cursor = _read_bytes(buf, cursor, end)
        value, cursor = _read_bytes(buf, cursor, end)
    except StructError as e:
        raise _corrupt(f"The entry at position {position} is truncated.") from e
    if cursor != end or end > len(buf):
        raise _corrupt(f"The entry at position {position} does not fill its {size} bytes.")
    return (offset, magic, attributes, timestamp, key, value), end


def _read_bytes(buf: Buffer, position: int, end: int) -> tuple[bytes | None, int]:
    (length,) = _LENGTH.unpack_from(buf, position)
    position += _LENGTH.size
    if length < 0:
        return None, position
    if length > end - position:
        raise _corrupt(f"A field of {length} bytes at position {position} extends past its entry.")
    return bytes(buf[position : position + length]), position + length


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
