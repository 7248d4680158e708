"""Kafka's five codecs over whole byte strings. Where they occur in a batch is not known here.

Decompression never holds more than its limit: 1 MB of gzip can hold 1 GB. gzip inflates in pieces; snappy
and lz4 declare or cap each block; a zstd frame is sized from its block headers before it is decoded.
"""

import functools
import zlib
from collections.abc import Callable
from struct import Struct
from struct import error as StructError
from types import ModuleType
from typing import Final, TypeAlias

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_IDS: Final = {name: codec for codec, name in enumerate(CODEC_NAMES)}

# Apache Kafka decompresses without a bound. 64 MiB is 64 times the default max.message.bytes.
DEFAULT_DECOMPRESS_LIMIT_BYTES: Final = 64 << 20

_Decompress: TypeAlias = Callable[[memoryview, int], bytearray]

_INT32 = Struct(">i")
_LE32 = Struct("<I")

_GZIP_WBITS = 31
_GZIP_MAGIC = b"\x1f\x8b"
_GZIP_PIECE_BYTES = 64 << 10

# Xerial's snappy stream: magic, version int32 1, compatible version int32 1, then blocks, each an int32
# length and raw snappy.
_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES = 32 << 10

# LZ4 frame as Java reads it: magic, FLG (version 1, independent blocks), BD (64 KiB blocks), header
# checksum; then blocks, each a little-endian length whose top bit says "stored"; a length of 0 ends it.
_LZ4_MAGIC = 0x184D2204
_LZ4_HEADER = b"\x04\x22\x4d\x18\x60\x40\x82"
_LZ4_BLOCK_BYTES = 64 << 10
_LZ4_STORED = 0x80000000
_LZ4_DEFAULT_LEVEL = 9

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_SKIPPABLE = 0x184D2A50
_ZSTD_BLOCK_BYTES = 128 << 10
_ZSTD_DEFAULT_LEVEL = 3


@functools.cache
def _cramjam() -> ModuleType:
    import cramjam

    return cramjam


def too_large(limit_bytes: int) -> KafkaError:
    return KafkaError(
        ErrorCode.MESSAGE_TOO_LARGE, f"The records decompress to more than the limit of {limit_bytes} bytes."
    )


def _corrupt(codec: int, why: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Failed to decompress {CODEC_NAMES[codec]} records: {why}.")


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress as a Java client can read it; a level of None is the codec's default."""
    if codec == NONE:
        return bytes(data)
    if codec == GZIP:
        return zlib.compress(data, -1 if level is None else level, _GZIP_WBITS)
    if codec == SNAPPY:
        return _compress_snappy(memoryview(data))
    if codec == LZ4:
        return _compress_lz4(memoryview(data), level)
    if codec == ZSTD:
        return bytes(_cramjam().zstd.compress(data, _ZSTD_DEFAULT_LEVEL if level is None else level))
    raise _unknown(codec)


def decompress(codec: int, data: Buffer, limit_bytes: int = DEFAULT_DECOMPRESS_LIMIT_BYTES) -> Buffer:
    """The bytes a codec packed. CORRUPT_MESSAGE if it did not, MESSAGE_TOO_LARGE beyond the limit."""
    if codec == NONE:
        return data
    decompressor = _DECOMPRESSORS.get(codec)
    if decompressor is None:
        raise _unknown(codec)
    return decompressor(memoryview(data), limit_bytes)


def _unknown(codec: int) -> KafkaError:
    return KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {codec}")


def _decompress_gzip(data: memoryview, limit_bytes: int) -> bytearray:
    """Inflates every member; what follows the last one and is no member is ignored, as Java does."""
    out = bytearray()
    rest: Buffer = data
    while True:
        inflater = zlib.decompressobj(_GZIP_WBITS)
        position = 0
        while not inflater.eof:
            if position >= len(rest):
                raise _corrupt(GZIP, "unexpected end of input")
            piece: Buffer = rest[position : position + _GZIP_PIECE_BYTES]
            position += len(piece)
            while piece and not inflater.eof:
                try:
                    out += inflater.decompress(piece, min(1 << 20, limit_bytes - len(out) + 1))
                except zlib.error as e:
                    raise _corrupt(GZIP, str(e)) from e
                if len(out) > limit_bytes:
                    raise too_large(limit_bytes)
                piece = inflater.unconsumed_tail
        rest = inflater.unused_data + bytes(rest[position:])
        if rest[:2] != _GZIP_MAGIC:
            return out


def _compress_snappy(data: memoryview) -> bytes:
    compress_raw = _cramjam().snappy.compress_raw
    parts = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = compress_raw(data[start : start + _XERIAL_BLOCK_BYTES])
        parts += (_INT32.pack(len(block)), bytes(block))
    return b"".join(parts)


def _decompress_snappy(data: memoryview, limit_bytes: int) -> bytearray:
    out = bytearray()
    if data[: len(_XERIAL_MAGIC)] != _XERIAL_MAGIC:
        _snappy_block(data, out, limit_bytes)
        return out
    position = len(_XERIAL_HEADER)
    while position < len(data):
        if position + 4 > len(data):
            raise _corrupt(SNAPPY, "unexpected end of input")
        if data[position : position + 8] == _XERIAL_MAGIC:  # streams written one after the other
            position += len(_XERIAL_HEADER)
            continue
        (size,) = _INT32.unpack_from(data, position)
        position += 4
        if size < 0 or position + size > len(data):
            raise _corrupt(SNAPPY, f"block of {size} bytes at {position}")
        _snappy_block(data[position : position + size], out, limit_bytes)
        position += size
    return out


def _snappy_block(block: memoryview, out: bytearray, limit_bytes: int) -> None:
    snappy = _cramjam().snappy
    try:
        if len(out) + snappy.decompress_raw_len(block) > limit_bytes:
            raise too_large(limit_bytes)
        out += memoryview(snappy.decompress_raw(block))
    except _cramjam().DecompressionError as e:
        raise _corrupt(SNAPPY, str(e)) from e


def _compress_lz4(data: memoryview, level: int | None) -> bytes:
    """Java's default level, 9, means the fast compressor there, every other one the high-compression one."""
    fast = level is None or level == _LZ4_DEFAULT_LEVEL
    options = {} if fast else {"mode": "high_compression", "compression": level}
    compress_block = _cramjam().lz4.compress_block
    parts = [_LZ4_HEADER]
    for start in range(0, len(data), _LZ4_BLOCK_BYTES):
        block = data[start : start + _LZ4_BLOCK_BYTES]
        packed = bytes(compress_block(block, store_size=False, **options))
        if len(packed) < len(block):
            parts += (_LE32.pack(len(packed)), packed)
        else:
            parts += (_LE32.pack(len(block) | _LZ4_STORED), bytes(block))
    parts.append(b"\x00\x00\x00\x00")
    return b"".join(parts)


def _decompress_lz4(data: memoryview, limit_bytes: int) -> bytearray:
    """One frame of independent blocks, as Java reads it; what follows its end mark is ignored."""
    position, block_bytes, block_checksum, content_checksum = _lz4_frame(data)
    decompress_block_into = _cramjam().lz4.decompress_block_into
    scratch = memoryview(bytearray(block_bytes))
    out = bytearray()
    while True:
        if position + 4 > len(data):
            raise _corrupt(LZ4, "unexpected end of input")
        (size,) = _LE32.unpack_from(data, position)
        position += 4
        if size == 0:
            break
        stored = size & _LZ4_STORED
        size &= _LZ4_STORED - 1
        if size > block_bytes or position + size + block_checksum > len(data):
            raise _corrupt(LZ4, f"block of {size} bytes at {position}")
        block = data[position : position + size]
        position += size + block_checksum
        try:
            out += block if stored else scratch[: decompress_block_into(block, scratch)]
        except _cramjam().DecompressionError as e:
            raise _corrupt(LZ4, str(e)) from e
        if len(out) > limit_bytes:
            raise too_large(limit_bytes)
    position += content_checksum
    if position > len(data):
        raise _corrupt(LZ4, "unexpected end of input")
    if block_checksum:
        _check_lz4_blocks(data[:position], out)
    return out


def _lz4_frame(data: memoryview) -> tuple[int, int, int, int]:
    """Where the first block stands; the size of a block at most, of its checksum, and of the content's."""
    if len(data) < len(_LZ4_HEADER):
        raise _corrupt(LZ4, "unexpected end of input")
    (magic,) = _LE32.unpack_from(data, 0)
    if magic != _LZ4_MAGIC:
        raise _corrupt(LZ4, f"magic {magic:#x}")
    flags, descriptor = data[4], data[5]
    if flags >> 6 != 1 or flags & 0x03 or descriptor & 0x8F or not 4 <= descriptor >> 4 <= 7:
        raise _corrupt(LZ4, f"frame descriptor {flags:#x} {descriptor:#x}")
    if not flags & 0x20:
        raise _corrupt(LZ4, "dependent blocks are not supported")
    end = 6 + (8 if flags & 0x08 else 0)
    if len(data) <= end or data[end] != _lz4_checksum(data[4:end]):
        raise _corrupt(LZ4, "the frame header does not match its checksum")
    block_bytes = 1 << (8 + 2 * (descriptor >> 4))
    return end + 1, block_bytes, 4 if flags & 0x10 else 0, 4 if flags & 0x04 else 0


def mend_lz4_header(data: Buffer) -> bytes:
    """A frame with its header checksum made right: clients of magic 0 computed it over the wrong bytes."""
    frame = bytearray(data)
    end = 6 + (8 if len(frame) > 4 and frame[4] & 0x08 else 0)
    if len(frame) > end:
        frame[end] = _lz4_checksum(memoryview(frame)[4:end])
    return bytes(frame)


def _lz4_checksum(header: memoryview) -> int:
    """The second byte of xxHash-32 over fewer than 16 bytes."""
    value = (0x165667B1 + len(header)) & 0xFFFFFFFF
    words = len(header) & ~3
    for i in range(0, words, 4):
        value = (value + int(_LE32.unpack_from(header, i)[0]) * 0xC2B2AE3D) & 0xFFFFFFFF
        value = (value << 17 | value >> 15) * 0x27D4EB2F & 0xFFFFFFFF
    for byte in header[words:]:
        value = (value + byte * 0x165667B1) & 0xFFFFFFFF
        value = (value << 11 | value >> 21) * 0x9E3779B1 & 0xFFFFFFFF
    value = (value ^ value >> 15) * 0x85EBCA77 & 0xFFFFFFFF
    value = (value ^ value >> 13) * 0xC2B2AE3D & 0xFFFFFFFF
    return (value ^ value >> 16) >> 8 & 0xFF


def _check_lz4_blocks(frame: memoryview, out: bytearray) -> None:
    """Decode a frame with block checksums once more with a decoder that verifies them, in place."""
    try:
        _cramjam().lz4.decompress_into(frame, out)
    except _cramjam().DecompressionError as e:
        raise _corrupt(LZ4, str(e)) from e


def _decompress_zstd(data: memoryview, limit_bytes: int) -> bytearray:
    bound = _zstd_bound(data, limit_bytes)
    out = bytearray(min(bound, limit_bytes))
    if not bound:
        return out
    try:
        del out[_cramjam().zstd.decompress_into(data, out) :]
    except _cramjam().DecompressionError as e:
        raise (too_large(limit_bytes) if bound > limit_bytes else _corrupt(ZSTD, str(e))) from e
    return out


def _zstd_bound(data: memoryview, limit_bytes: int) -> int:
    """An upper bound of what the frames decode to, from frame and block headers alone.

    Raw and run-length blocks tell their size; a compressed one gives at most 128 KiB. Stops once raw and
    run-length blocks alone exceed the limit.
    """
    position, end = 0, len(data)
    certain = bound = 0
    try:
        while position < end:
            (magic,) = _LE32.unpack_from(data, position)
            if magic & 0xFFFFFFF0 == _ZSTD_SKIPPABLE:
                position += 8 + int(_LE32.unpack_from(data, position + 4)[0])
                continue
            if magic != _ZSTD_MAGIC:
                raise _corrupt(ZSTD, f"magic {magic:#x}")
            descriptor = data[position + 4]
            single_segment = descriptor >> 5 & 1
            content_size_bytes = (single_segment, 2, 4, 8)[descriptor >> 6]
            position += 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
            last = 0
            while not last:
                block = data[position] | data[position + 1] << 8 | data[position + 2] << 16
                last, kind, size = block & 1, block >> 1 & 3, block >> 3
                position += 3
                if kind == 2:
                    bound += _ZSTD_BLOCK_BYTES
                    position += size
                else:
                    bound += size
                    certain += size
                    position += size if kind == 0 else 1
                if certain > limit_bytes:
                    raise too_large(limit_bytes)
            if descriptor & 4:
                position += 4
    except (IndexError, StructError) as e:
        raise _corrupt(ZSTD, "unexpected end of input") from e
    return bound


_DECOMPRESSORS: dict[int, _Decompress] = {
    GZIP: _decompress_gzip,
    SNAPPY: _decompress_snappy,
    LZ4: _decompress_lz4,
    ZSTD: _decompress_zstd,
}
