"""lz4 frames as Kafka's Java client reads them: independent blocks of 64 KiB."""

from struct import Struct
from typing import Final, NamedTuple

from odradek.core.types import Buffer
from odradek.records.codecs import (
    FEW_BLOCKS,
    UNTOLD_BYTES,
    CodecError,
    ManyBlocksError,
    TooLargeError,
    cramjam,
    most_blocks,
)
from odradek.records.kernel import allocate

# magic uint32, FLG (version 1, independent blocks), BD (64 KiB blocks), the second byte of xxHash-32 over
# both; then blocks, each a uint32 length whose top bit says "stored", and its bytes; a length of 0 ends the
# frame. Everything is little-endian.
_MAGIC: Final = 0x184D2204
_HEADER: Final = b"\x04\x22\x4d\x18\x60\x40\x82"
_LENGTH: Final = Struct("<I")
_STORED: Final = 0x80000000
_END: Final = b"\x00\x00\x00\x00"
_BLOCK_BYTES: Final = 64 << 10
_JAVA_DEFAULT_LEVEL: Final = 9


def compress(data: memoryview, level: int | None) -> bytes:
    """Java's default level, 9, selects its fast compressor. Every other level selects its high compressor."""
    if level is not None and level != _JAVA_DEFAULT_LEVEL:
        return _compress_high(data, level)
    compress_block = cramjam().lz4.compress_block
    parts = [_HEADER]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = data[start : start + _BLOCK_BYTES]
        packed = bytes(compress_block(block, store_size=False))
        if len(packed) < len(block):
            parts += (_LENGTH.pack(len(packed)), packed)
        else:
            parts += (_LENGTH.pack(len(block) | _STORED), bytes(block))
    parts.append(_END)
    return b"".join(parts)


def _compress_high(data: memoryview, level: int) -> bytes:
    """Piece by piece, because this compressor keeps the GIL. It adds checksums to its blocks."""
    compressor = cramjam().lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    for start in range(0, len(data), _BLOCK_BYTES):
        compressor.compress(data[start : start + _BLOCK_BYTES].tobytes())
    return bytes(compressor.finish())


def bound(data: memoryview) -> int:
    try:
        return _extent(data, FEW_BLOCKS)[1]
    except ManyBlocksError:
        return UNTOLD_BYTES


def decompress(data: memoryview, limit_bytes: int) -> bytearray:
    """Decompress one frame. Bytes after it are ignored, as in Java."""
    end, most_bytes = _extent(data)
    out = allocate(min(most_bytes, limit_bytes))
    if not most_bytes:
        return out
    try:
        del out[cramjam().lz4.decompress_into(data[:end], out) :]
    except cramjam().DecompressionError as e:
        raise (TooLargeError() if most_bytes > limit_bytes else CodecError(str(e))) from e
    return out


class _Frame(NamedTuple):
    blocks_at: int
    block_bytes: int
    block_checksum_bytes: int
    content_checksum_bytes: int


def _frame(data: memoryview) -> _Frame:
    if len(data) < len(_HEADER):
        raise CodecError("unexpected end of input")
    (magic,) = _LENGTH.unpack_from(data, 0)
    if magic != _MAGIC:
        raise CodecError(f"magic {magic:#x}")
    flags, descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or descriptor & 0x8F or not 4 <= descriptor >> 4 <= 7:
        raise CodecError(f"frame descriptor {flags:#x} {descriptor:#x}")
    if not flags & 0x20:
        raise CodecError("dependent blocks are not supported")
    checksum_at = 6 + (8 if flags & 0x08 else 0)
    if len(data) <= checksum_at or data[checksum_at] != header_checksum(data[4:checksum_at]):
        raise CodecError("the frame header does not match its checksum")
    block_bytes = 1 << (8 + 2 * (descriptor >> 4))
    return _Frame(checksum_at + 1, block_bytes, 4 if flags & 0x10 else 0, 4 if flags & 0x04 else 0)


def _extent(data: memoryview, few: int | None = None) -> tuple[int, int]:
    """(end of the frame, upper bound of its decompressed size), from the headers of its blocks.

    Raises ManyBlocksError if there are more than `few` blocks.
    """
    frame = _frame(data)
    position = frame.blocks_at
    most_bytes = 0
    for _ in range(most_blocks(len(data)) if few is None else few):
        if position + _LENGTH.size > len(data):
            raise CodecError("unexpected end of input")
        (size,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if size == 0:
            return position + frame.content_checksum_bytes, most_bytes
        stored, size = size & _STORED, size & (_STORED - 1)
        if size > frame.block_bytes:
            raise CodecError(f"block of {size} bytes at {position}")
        most_bytes += size if stored else frame.block_bytes
        position += size + frame.block_checksum_bytes
    raise CodecError("too many blocks") if few is None else ManyBlocksError


def header_checksum(header: memoryview) -> int:
    """The second byte of xxHash-32 over fewer than 16 bytes."""
    value = (0x165667B1 + len(header)) & 0xFFFFFFFF
    words = len(header) & ~3
    for i in range(0, words, 4):
        value = (value + int(_LENGTH.unpack_from(header, i)[0]) * 0xC2B2AE3D) & 0xFFFFFFFF
        value = (value << 17 | value >> 15) * 0x27D4EB2F & 0xFFFFFFFF
    for byte in header[words:]:
        value = (value + byte * 0x165667B1) & 0xFFFFFFFF
        value = (value << 11 | value >> 21) * 0x9E3779B1 & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return (value ^ value >> 16) >> 8 & 0xFF


def mend_header(data: Buffer) -> bytes:
    """The frame with the correct header checksum. Clients of magic 0 computed it over the wrong bytes."""
    frame = bytearray(data)
    end = 6 + (8 if len(frame) > 4 and frame[4] & 0x08 else 0)
    if len(frame) > end:
        frame[end] = header_checksum(memoryview(frame)[4:end])
    return bytes(frame)
