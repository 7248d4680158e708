"""Kafka's unsigned variable-length integers, for lengths, counts and tags. records/ has the signed ones."""

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer

ONE_BYTE = [bytes((n,)) for n in range(128)]
"""The encodings of 0..127: nearly all lengths and counts."""


def encode_uvarint(value: int) -> bytes:
    if value < 128:
        return ONE_BYTE[value]
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_uvarint(buffer: Buffer, position: int) -> tuple[int, int]:
    """(value, position after it). At most five bytes, as for Java's int. Raises IndexError past the end."""
    value = shift = 0
    while True:
        byte = buffer[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            if value > 0xFFFFFFFF:
                raise ProtocolError("a variable-length integer exceeds 32 bits")
            return value, position
        shift += 7
        if shift > 28:
            raise ProtocolError("a variable-length integer is longer than five bytes")
