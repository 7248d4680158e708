"""zstd, one frame or several. The headers of frames and blocks give the size before anything is decoded."""

from struct import Struct
from struct import error as StructError
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

# A frame: magic uint32, descriptor byte, window descriptor unless single-segment, dictionary id, content
# size; blocks, each 3 bytes (bit 0 last, 1-2 kind: raw, run-length, compressed; then size) and its bytes; a
# checksum where bit 2 of the descriptor says so. A skippable frame: magic, length uint32, bytes.
# Everything is little-endian.
_MAGIC: Final = 0xFD2FB528
_SKIPPABLE_MAGIC: Final = 0x184D2A50
_WORD: Final = Struct("<I")
_RAW, _RUN, _COMPRESSED = 0, 1, 2
_BLOCK_BYTES: Final = 128 << 10
_DEFAULT_LEVEL: Final = 3


def compress(data: memoryview, level: int | None) -> bytes:
    return bytes(cramjam().zstd.compress(data, _DEFAULT_LEVEL if level is None else level))


def bound(data: memoryview) -> int:
    try:
        return _extent(data, len(data) << 20, FEW_BLOCKS)[0]
    except ManyBlocksError:
        return UNTOLD_BYTES


def decompress(data: memoryview, limit_bytes: int) -> bytearray:
    most_bytes, window = _extent(data, limit_bytes)
    # The decoder keeps a window of what it wrote, which counts towards the limit: at most half of it.
    limit_bytes = max(limit_bytes - window, limit_bytes // 2)
    out = allocate(min(most_bytes, limit_bytes))
    if not most_bytes:
        return out
    try:
        del out[cramjam().zstd.decompress_into(data, out) :]
    except cramjam().DecompressionError as e:
        raise (TooLargeError() if most_bytes > limit_bytes else CodecError(str(e))) from e
    return out


def _extent(data: memoryview, limit_bytes: int, few: int | None = None) -> tuple[int, int]:
    """(upper bound of the decompressed size, the largest window), from the headers of frames and blocks.

    A raw or run-length block has its size in its header. A compressed block decodes to at most 128 KiB.
    Raises ManyBlocksError if there are more than `few` blocks.
    """
    position = most_bytes = certain = largest_window = 0
    blocks_left = most_blocks(len(data)) if few is None else few
    try:
        while position < len(data):
            (magic,) = _WORD.unpack_from(data, position)
            if magic & 0xFFFFFFF0 == _SKIPPABLE_MAGIC:
                position += 8 + int(_WORD.unpack_from(data, position + 4)[0])
                blocks_left -= 1
                if blocks_left < 0 and few is not None:
                    raise ManyBlocksError
                continue
            if magic != _MAGIC:
                raise CodecError(f"magic {magic:#x}")
            descriptor = data[position + 4]
            position, window = _frame_header(data, position + 5, descriptor)
            largest_window = max(largest_window, window)
            last = 0
            while not last:
                block = data[position] | data[position + 1] << 8 | data[position + 2] << 16
                last, kind, size = block & 1, block >> 1 & 3, block >> 3
                most_bytes += _BLOCK_BYTES if kind == _COMPRESSED else size
                certain += 0 if kind == _COMPRESSED else size
                position += 3 + (1 if kind == _RUN else size)
                blocks_left -= 1
                if certain > limit_bytes:
                    raise TooLargeError
                if blocks_left < 0:
                    raise CodecError("too many blocks") if few is None else ManyBlocksError
            if descriptor & 4:
                position += 4
    except (IndexError, StructError) as e:
        raise CodecError("unexpected end of input") from e
    return most_bytes, largest_window


def _frame_header(data: memoryview, position: int, descriptor: int) -> tuple[int, int]:
    """(position of the first block, size of the window) of a frame, from the bytes after its descriptor."""
    single_segment = descriptor >> 5 & 1
    dictionary_id_bytes = (0, 1, 2, 4)[descriptor & 3]
    content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
    content_size_at = position + 1 - single_segment + dictionary_id_bytes
    end = content_size_at + content_size_bytes
    if single_segment:
        window = int.from_bytes(data[content_size_at:end], "little")
    else:
        exponent, mantissa = data[position] >> 3, data[position] & 7
        window = (1 << 10 + exponent) // 8 * (8 + mantissa)
    return end, window
