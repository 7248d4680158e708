"""Request and response headers, and the frames around requests. messages.py, produce.py and fetch.py have the
bodies.
"""

import struct
from typing import Any, NamedTuple

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.wire.api_keys import FLEXIBLE_FROM, NEVER_FLEXIBLE, ApiKey
from odradek.wire.limits import MOST_TAGS, LongRequest
from odradek.wire.varint import decode_uvarint

# Request header v1: api_key i16, api_version i16, correlation_id i32, client_id (i16 length or -1, bytes).
# v2, for flexible versions, is followed by tagged fields; its client_id keeps the old encoding.
_REQUEST = struct.Struct(">hhih")
# A whole request: frame length i32, then the request header up to the client id's bytes.
_REQUEST_FRAME = struct.Struct(">ihhih")
# Response header v0: correlation_id i32. v1, for flexible versions, is followed by tagged fields.
_RESPONSE_V0 = struct.Struct(">i")
_RESPONSE_V1 = struct.Struct(">ix")


class RequestHeader(NamedTuple):
    api_key: int
    api_version: int
    correlation_id: int
    client_id: str | None


def is_flexible(api_key: int, version: int) -> bool:
    return version >= FLEXIBLE_FROM.get(api_key, NEVER_FLEXIBLE)


def parse_request_header(buffer: Buffer, position: int = 0) -> tuple[RequestHeader, int]:
    """(header, position of the body). Raises ProtocolError for an invalid header or an unknown API."""
    try:
        api_key, version, correlation_id, length = _REQUEST.unpack_from(buffer, position)
        position += 10
        client_id = None
        if length >= 0:
            end = position + length
            if end > len(buffer):
                raise ProtocolError("the client id reaches beyond the end of the request")
            client_id = str(buffer[position:end], "utf-8", "replace")
            position = end
        flexible_from = FLEXIBLE_FROM.get(api_key)
        if flexible_from is None:
            raise ProtocolError(f"unknown api key {api_key}")
        if version >= flexible_from:
            if buffer[position]:
                position = skip_tagged_fields(buffer, position)
            else:
                position += 1
    except (struct.error, IndexError) as e:
        raise ProtocolError(f"not a request header: {e}") from e
    return RequestHeader(api_key, version, correlation_id, client_id), position


def skip_tagged_fields(buffer: Buffer, position: int) -> int:
    """The position after the tagged fields at `position`. Raises IndexError or ProtocolError past the end,
    and LongRequest for many fields."""
    count, position = decode_uvarint(buffer, position)
    if count > MOST_TAGS:
        raise LongRequest(f"{count} tagged fields in one place")
    for _ in range(count):
        _, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        position += size
        if position > len(buffer):
            raise ProtocolError("a tagged field reaches beyond the end")
    return position


def response_header(api_key: int, version: int, correlation_id: int) -> bytes:
    """ApiVersions always has response header v0: the client does not know the broker's versions yet."""
    if version >= FLEXIBLE_FROM.get(api_key, NEVER_FLEXIBLE) and api_key != ApiKey.API_VERSIONS:
        return _RESPONSE_V1.pack(correlation_id)
    return _RESPONSE_V0.pack(correlation_id)


def parse_response_header(buffer: Buffer, position: int, api_key: int, version: int) -> tuple[int, int]:
    """(correlation id, position of the body)."""
    try:
        (correlation_id,) = _RESPONSE_V0.unpack_from(buffer, position)
        position += 4
        if is_flexible(api_key, version) and api_key != ApiKey.API_VERSIONS:
            position = skip_tagged_fields(buffer, position)
    except (struct.error, IndexError) as e:
        raise ProtocolError(f"not a response header: {e}") from e
    return correlation_id, position


def request_frame_header(
    api_key: int, version: int, correlation_id: int, client_id: str | None, body_size: int
) -> bytes:
    """The part of a request frame before its body."""
    name = b"" if client_id is None else client_id.encode()
    tail = b"\0" if is_flexible(api_key, version) else b""
    size = 10 + len(name) + len(tail) + body_size
    length = -1 if client_id is None else len(name)
    return _REQUEST_FRAME.pack(size, api_key, version, correlation_id, length) + name + tail


def encode_request(
    api_key: int, version: int, correlation_id: int, client_id: str | None, message: Any
) -> bytes:
    """A complete request frame, including the length prefix."""
    from odradek.wire.messages import request_encoder

    body = request_encoder(api_key, version)(message)
    return request_frame_header(api_key, version, correlation_id, client_id, len(body)) + body
