"""Routes: the bytes that a producer repeats in every request to one partition, cached per connection.

Consecutive Produce frames for a single partition differ only in correlation id and records. After such a
frame was parsed completely, the bytes between the two are its route: a frame with the same bytes needs no
parsing. This is the layout of flexible versions (v9 and above):

    api_key i16, api_version i16, correlation_id i32 | route … | records size uvarint, records | 3 empty tags
"""

from struct import Struct
from uuid import UUID

from odradek.log.log import AppendInfo
from odradek.records.header import CODEC_MASK, HEADER_BYTES, TRANSACTIONAL_FLAG
from odradek.wire.headers import RequestHeader
from odradek.wire.produce import ProduceRequest, produce_reply
from odradek.wire.varint import encode_uvarint

HEAD = Struct(">hhi")
FLEXIBLE_FROM = 9
MAX_ROUTES = 8
_VERSION = 3  # the low byte of api_version
ATTRIBUTES = 22  # the low byte of a batch's attributes
_NO_TAGS = b"\0\0\0"


class Route:
    """The route of one producer to one partition."""

    __slots__ = ("_reply", "acks", "bytes", "end", "header", "index", "timeout_ms", "topic", "version")

    def __init__(self, header: RequestHeader, request: ProduceRequest, content: bytes) -> None:
        self.header = header
        self.version = header.api_version
        self.acks = request.acks
        self.timeout_ms = request.timeout_ms
        self.topic: str | UUID
        self.topic, ((self.index, _),) = request.topics[0]
        self.bytes = content
        self._reply = produce_reply(self.version, self.topic, self.index)
        self.end = HEAD.size + len(content)

    def acknowledge(self, correlation_id: int, info: AppendInfo) -> bytes:
        return self._reply(correlation_id, info.first_offset, info.log_append_time_ms, info.log_start_offset)

    def records(self, buffer: bytearray, view: memoryview, start: int, stop: int) -> memoryview | None:
        """The records of a frame on this route; None if it is not on it, or if its check may take long."""
        position = start + self.end
        if (
            position + HEADER_BYTES > stop
            or buffer[start + _VERSION] != self.version
            or not buffer.startswith(self.bytes, start + HEAD.size, position)
        ):
            return None
        byte = buffer[position]
        position += 1
        size = byte & 0x7F
        shift = 7
        while byte > 127 and shift < 35:
            byte = buffer[position]
            position += 1
            size |= (byte & 0x7F) << shift
            shift += 7
        end = position + size - 1
        if end + 3 != stop or size <= HEADER_BYTES or not buffer.startswith(_NO_TAGS, end, stop):
            return None
        if buffer[position + ATTRIBUTES] & (CODEC_MASK | TRANSACTIONAL_FLAG):
            return None
        return view[position:end]


def find_route(
    routes: list[Route], buffer: bytearray, view: memoryview, start: int, stop: int
) -> tuple[Route | None, memoryview | None]:
    """(the route of a frame, its records). `view` is a view of the buffer."""
    for route in routes:
        records = route.records(buffer, view, start, stop)
        if records is not None:
            return route, records
    return None, None


def learn_route(
    routes: list[Route], header: RequestHeader, request: ProduceRequest, frame: memoryview
) -> None:
    """Cache the route of a parsed frame, if it has one. The oldest route is dropped."""
    if header.api_version < FLEXIBLE_FROM or request.transactional_id is not None or len(request.topics) != 1:
        return
    partitions = request.topics[0][1]
    if len(partitions) != 1 or partitions[0][1] is None or frame[-3:] != _NO_TAGS:
        return
    size = len(partitions[0][1])
    end = len(frame) - 3 - size - len(encode_uvarint(size + 1))
    content = frame[HEAD.size : end]
    if any(known.version == header.api_version and known.bytes == content for known in routes):
        return
    if len(routes) == MAX_ROUTES:
        routes.pop(0)
    routes.append(Route(header, request, bytes(content)))
