"""gzip, by zlib. It inflates piece by piece and releases the GIL."""

import zlib
from typing import Final

from odradek.records.codecs import CodecError, TooLargeError

_WBITS: Final = 31  # a gzip header and trailer around deflate
_MAGIC: Final = b"\x1f\x8b"
_MOST_EXPANSION: Final = 1032  # of deflate: 258 bytes in two bits
_MOST_MEMBERS: Final = 64
_INPUT_PIECE_BYTES: Final = 64 << 10
_OUTPUT_PIECE_BYTES: Final = 1 << 20


def compress(data: memoryview, level: int | None) -> bytes:
    return zlib.compress(data, -1 if level is None else level, _WBITS)


def bound(data: memoryview) -> int:
    return len(data) * _MOST_EXPANSION


def decompress(data: memoryview, limit_bytes: int) -> bytearray:
    """Inflate every member. Bytes after the last member are ignored, as in Java."""
    out = bytearray()
    position = 0
    for _ in range(_MOST_MEMBERS):
        position = _inflate_member(data, position, out, limit_bytes)
        if data[position : position + 2].tobytes() != _MAGIC:
            return out
    raise CodecError("too many members")


def _inflate_member(data: memoryview, position: int, out: bytearray, limit_bytes: int) -> int:
    """Append the inflated member at a position to the output. Returns the position after it."""
    inflater = zlib.decompressobj(_WBITS)
    while not inflater.eof:
        piece: memoryview | bytes = data[position : position + _INPUT_PIECE_BYTES]
        if not piece:
            raise CodecError("unexpected end of input")
        position += len(piece)
        while piece and not inflater.eof:
            try:
                out += inflater.decompress(piece, min(_OUTPUT_PIECE_BYTES, limit_bytes - len(out) + 1))
            except zlib.error as e:
                raise CodecError(str(e)) from e
            if len(out) > limit_bytes:
                raise TooLargeError
            piece = inflater.unconsumed_tail
    return position - len(inflater.unused_data)
