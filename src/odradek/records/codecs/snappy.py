"""snappy in the framing of xerial's Java library, as Kafka clients write it. It reads a bare block too."""

from struct import Struct
from typing import Final

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

# magic, version int32 1, compatible version int32 1; then blocks, each an int32 length and raw snappy.
# Streams may follow one another, each with its header.
_MAGIC: Final = b"\x82SNAPPY\x00"
_HEADER: Final = _MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_LENGTH: Final = Struct(">i")
_BLOCK_BYTES: Final = 32 << 10


def compress(data: memoryview, level: int | None) -> bytes:
    compress_raw = cramjam().snappy.compress_raw
    parts = [_HEADER]
    for start in range(0, len(data), _BLOCK_BYTES):
        block = bytes(compress_raw(data[start : start + _BLOCK_BYTES]))
        parts += (_LENGTH.pack(len(block)), block)
    return b"".join(parts)


def bound(data: memoryview) -> int:
    try:
        return sum(_sizes(_blocks(data, FEW_BLOCKS)))
    except ManyBlocksError:
        return UNTOLD_BYTES


def decompress(data: memoryview, limit_bytes: int) -> bytearray:
    snappy = cramjam().snappy
    blocks = _blocks(data)
    sizes = _sizes(blocks)
    try:
        if sum(sizes) > limit_bytes:
            raise TooLargeError
        out = allocate(sum(sizes))
        place = memoryview(out)
        for block, size in zip(blocks, sizes, strict=True):
            snappy.decompress_raw_into(block, place[:size])
            place = place[size:]
    except cramjam().DecompressionError as e:
        raise CodecError(str(e)) from e
    return out


def _has_magic(data: memoryview, position: int) -> bool:
    return data[position : position + len(_MAGIC)].tobytes() == _MAGIC


def _sizes(blocks: list[memoryview]) -> list[int]:
    """The decompressed sizes that the blocks claim."""
    decompress_raw_len = cramjam().snappy.decompress_raw_len
    try:
        return [decompress_raw_len(block) for block in blocks]
    except cramjam().DecompressionError as e:
        raise CodecError(str(e)) from e


def _blocks(data: memoryview, few: int | None = None) -> list[memoryview]:
    """The raw blocks. Raises ManyBlocksError if there are more than `few`."""
    most = most_blocks(len(data)) if few is None else few
    if not _has_magic(data, 0):
        return [data]
    blocks: list[memoryview] = []
    position = len(_HEADER)
    if position > len(data):
        raise CodecError("unexpected end of input")
    while position < len(data):
        if position + _LENGTH.size > len(data):
            raise CodecError("unexpected end of input")
        if _has_magic(data, position):
            position += len(_HEADER)
            continue
        (size,) = _LENGTH.unpack_from(data, position)
        position += _LENGTH.size
        if size < 0 or position + size > len(data):
            raise CodecError(f"block of {size} bytes at {position}")
        blocks.append(data[position : position + size])
        position += size
        if len(blocks) > most:
            raise CodecError("too many blocks") if few is None else ManyBlocksError
    return blocks
