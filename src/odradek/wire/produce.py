"""Hand-written codec of Produce, versions 3 to 13. Records stay views of the received bytes.

Versions 0 to 2 are advertised, because librdkafka expects it, but not served. This file does not read
records.
"""

import struct
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.runtime.slices import FEW, STEP, Paced
from odradek.wire.decoding import decode_uuid
from odradek.wire.headers import skip_tagged_fields
from odradek.wire.limits import ANY_NUMBER, LongRequest
from odradek.wire.varint import ONE_BYTE, decode_uvarint, encode_uvarint

_FLEXIBLE, _LEADER_HINTS, _TOPIC_IDS = 9, 10, 13

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
# acks i16, timeout_ms i32, and in old versions the number of topics i32
_ACKS_TIMEOUT = struct.Struct(">hi")
_ACKS_TIMEOUT_COUNT = struct.Struct(">hii")
# partition index i32 and in old versions the size of its records i32
_INDEX_SIZE = struct.Struct(">ii")

_OPEN_PARTS = 256

TopicRecords = tuple[str | UUID, list[tuple[int, memoryview | None]]]


class ProduceRequest:
    """topics: (name, or topic id from v13 on, [(partition index, records or None), ...]) of each topic."""

    __slots__ = ("acks", "timeout_ms", "topics", "transactional_id")

    def __init__(
        self, transactional_id: str | None, acks: int, timeout_ms: int, topics: list[TopicRecords]
    ) -> None:
        self.transactional_id = transactional_id
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics

    @staticmethod
    def parse(buffer: Buffer, position: int, version: int, most: int = ANY_NUMBER) -> "ProduceRequest":
        """The body of a request that fills the rest of the buffer. LongRequest above `most` entries."""
        view = buffer if type(buffer) is memoryview else memoryview(buffer)
        try:
            if version >= _FLEXIBLE:
                return _parse_flexible(view, position, version, most)
            return _parse_old(view, position, most)
        except (struct.error, IndexError, UnicodeDecodeError) as e:
            raise ProtocolError(f"not a produce request v{version}: {e}") from e


def _parse_flexible(view: memoryview, position: int, version: int, most: int) -> ProduceRequest:
    limit = len(view)
    length = view[position]
    position += 1
    transactional_id = None
    if length:
        if length > 127:
            length, position = decode_uvarint(view, position - 1)
        end = position + length - 1
        if end > limit:
            raise ProtocolError("the transactional id reaches beyond the end")
        transactional_id = str(view[position:end], "utf-8")
        position = end
    acks, timeout_ms = _ACKS_TIMEOUT.unpack_from(view, position)
    topic_count = view[position + 6]
    position += 7
    if topic_count > 127:
        topic_count, position = decode_uvarint(view, position - 1)
    if topic_count == 0:
        raise ProtocolError("the topics are null")
    most -= topic_count
    topics: list[TopicRecords] = []
    topic: str | UUID
    for _ in range(topic_count - 1):
        if version >= _TOPIC_IDS:
            end = position + 16
            if end > limit:
                raise ProtocolError("a topic id reaches beyond the end")
            topic = decode_uuid(bytes(view[position:end]))
        else:
            length = view[position]
            position += 1
            if length > 127:
                length, position = decode_uvarint(view, position - 1)
            end = position + length - 1
            if length == 0 or end > limit:
                raise ProtocolError("a topic name is null or reaches beyond the end")
            topic = str(view[position:end], "utf-8")
        partition_count = view[end]
        position = end + 1
        if partition_count > 127:
            partition_count, position = decode_uvarint(view, end)
        if partition_count == 0:
            raise ProtocolError("the partitions are null")
        most -= partition_count
        if most < 0:
            raise LongRequest("many partitions")
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count - 1):
            (index,) = _I32.unpack_from(view, position)
            size = view[position + 4]
            position += 5
            if size > 127:
                size, position = decode_uvarint(view, position - 1)
            if size:
                end = position + size - 1
                if end > limit:
                    raise ProtocolError("the records reach beyond the end")
                partitions.append((index, view[position:end]))
                position = end
            else:
                partitions.append((index, None))
            position = skip_tagged_fields(view, position) if view[position] else position + 1
        topics.append((topic, partitions))
        position = skip_tagged_fields(view, position) if view[position] else position + 1
    if view[position]:
        skip_tagged_fields(view, position)
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


def _parse_old(view: memoryview, position: int, most: int) -> ProduceRequest:
    limit = len(view)
    (length,) = _I16.unpack_from(view, position)
    position += 2
    transactional_id = None
    if length >= 0:
        end = position + length
        if end > limit:
            raise ProtocolError("the transactional id reaches beyond the end")
        transactional_id = str(view[position:end], "utf-8")
        position = end
    acks, timeout_ms, topic_count = _ACKS_TIMEOUT_COUNT.unpack_from(view, position)
    position += 10
    if topic_count < 0:
        raise ProtocolError("the topics are null")
    most -= topic_count
    topics: list[TopicRecords] = []
    for _ in range(topic_count):
        (length,) = _I16.unpack_from(view, position)
        position += 2
        end = position + length
        if length < 0 or end > limit:
            raise ProtocolError("a topic name is null or reaches beyond the end")
        name = str(view[position:end], "utf-8")
        (partition_count,) = _I32.unpack_from(view, end)
        position = end + 4
        if partition_count < 0:
            raise ProtocolError("the partitions are null")
        most -= partition_count
        if most < 0:
            raise LongRequest("many partitions")
        partitions: list[tuple[int, memoryview | None]] = []
        for _ in range(partition_count):
            index, size = _INDEX_SIZE.unpack_from(view, position)
            position += 8
            if size < 0:
                partitions.append((index, None))
                continue
            end = position + size
            if end > limit:
                raise ProtocolError("the records reach beyond the end")
            partitions.append((index, view[position:end]))
            position = end
        topics.append((name, partitions))
    return ProduceRequest(transactional_id, acks, timeout_ms, topics)


class PartitionProduced(NamedTuple):
    """The answer for one partition. `current_leader`, (id, epoch), helps a client after a leader change."""

    partition_index: int
    error_code: int
    base_offset: int
    log_append_time_ms: int = -1
    log_start_offset: int = -1
    record_errors: Sequence[tuple[int, str | None]] = ()
    error_message: str | None = None
    current_leader: tuple[int, int] | None = None


class NodeEndpoint(NamedTuple):
    """The address of a leader that an answer names."""

    node_id: int
    host: str
    port: int
    rack: str | None = None


@lru_cache(maxsize=1024)
def _one_partition(version: int, name_size: int) -> struct.Struct:
    """A complete response frame for one partition without errors. The call has the order of the fields."""
    if version >= _FLEXIBLE:
        # size, correlation id, header tags | topics, name or id | partitions, index, error, base offset,
        # append time, log start, record errors, message, tags | topic tags | throttle time, tags
        name = "16s" if version >= _TOPIC_IDS else f"B{name_size}s"
        return struct.Struct(f">iixB{name}BihqqqBBxxix")
    after = {3: "", 4: "", 5: "q", 6: "q", 7: "q"}.get(version, "qih")
    return struct.Struct(f">iiih{name_size}siihqq{after}i")


def encode_produce_response(
    version: int,
    correlation_id: int,
    topics: Sequence[tuple[str | UUID, Sequence[PartitionProduced]]],
    throttle_time_ms: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> bytes:
    """The complete frame, including header and length prefix."""
    if len(topics) == 1 and not node_endpoints:
        topic, partitions = topics[0]
        if len(partitions) == 1:
            partition = partitions[0]
            index, error, base, append_time_ms, log_start, record_errors, message, leader = partition
            if not record_errors and message is None and leader is None:
                name = topic.encode() if isinstance(topic, str) else topic.bytes
                size = len(name)
                layout = _one_partition(version, size)
                frame = layout.size - 4
                if version >= _TOPIC_IDS:
                    return layout.pack(
                        frame, correlation_id, 2, name,
                        2, index, error, base, append_time_ms, log_start, 1, 0, throttle_time_ms,
                    )  # fmt: skip
                if version >= _FLEXIBLE:
                    if size < 127:
                        return layout.pack(
                            frame, correlation_id, 2, size + 1, name,
                            2, index, error, base, append_time_ms, log_start, 1, 0, throttle_time_ms,
                        )  # fmt: skip
                elif version >= 8:
                    return layout.pack(
                        frame, correlation_id, 1, size, name,
                        1, index, error, base, append_time_ms, log_start, 0, -1, throttle_time_ms,
                    )  # fmt: skip
                elif version >= 5:
                    return layout.pack(
                        frame, correlation_id, 1, size, name,
                        1, index, error, base, append_time_ms, log_start, throttle_time_ms,
                    )  # fmt: skip
                else:
                    return layout.pack(
                        frame, correlation_id, 1, size, name,
                        1, index, error, base, append_time_ms, throttle_time_ms,
                    )  # fmt: skip
    if version >= _FLEXIBLE:
        body = _encode_flexible(version, topics, throttle_time_ms, node_endpoints)
        return struct.pack(">iix", len(body) + 5, correlation_id) + body
    body = _encode_old(version, topics, throttle_time_ms)
    return struct.pack(">ii", len(body) + 4, correlation_id) + body


Acknowledge = Callable[[int, int, int, int], bytes]


def produce_reply(version: int, topic: str | UUID, index: int) -> Acknowledge:
    """A function that packs successful answers for one partition (flexible versions).

    It takes correlation id, base offset, append time and log start offset, and returns the complete frame.
    """
    assert version >= _FLEXIBLE
    if isinstance(topic, UUID):
        name = topic.bytes
    else:
        name = topic.encode()
        name = encode_uvarint(len(name) + 1) + name
    # The fields of `_one_partition`. Two constants hold everything that is the same in all answers.
    before = b"\0\x02" + name + b"\x02" + struct.pack(">ih", index, 0)
    after = b"\x01\0\0\0" + _I32.pack(0) + b"\0"
    layout = struct.Struct(f">ii{len(before)}sqqq{len(after)}s")
    size = layout.size - 4
    pack = layout.pack

    def acknowledge(correlation_id: int, base_offset: int, append_time_ms: int, log_start: int) -> bytes:
        return pack(size, correlation_id, before, base_offset, append_time_ms, log_start, after)

    return acknowledge


def _encode_flexible(
    version: int,
    topics: Sequence[tuple[str | UUID, Sequence[PartitionProduced]]],
    throttle_time_ms: int,
    node_endpoints: Sequence[NodeEndpoint],
) -> bytes:
    out = [encode_uvarint(len(topics) + 1)]
    for topic, partitions in topics:
        out.append(_compact_text(topic) if isinstance(topic, str) else topic.bytes)
        out.append(encode_uvarint(len(partitions) + 1))
        out.append(encode_partitions(version, partitions))
        out.append(b"\0")
    out.append(_I32.pack(throttle_time_ms))
    out.append(encode_node_endpoints(node_endpoints if version >= _LEADER_HINTS else ()))
    return b"".join(out)


def encode_partitions(version: int, partitions: Iterable[PartitionProduced]) -> bytes:
    """The answers for the partitions of one topic, in the encoding of the response."""
    out = []
    for index, error, base, append_time_ms, log_start, record_errors, message, leader in partitions:
        if version >= _FLEXIBLE:
            out.append(struct.pack(">ihqqq", index, error, base, append_time_ms, log_start))
            out.append(encode_uvarint(len(record_errors) + 1))
            for batch_index, reason in record_errors:
                out += (_I32.pack(batch_index), _compact_text(reason), b"\0")
            out.append(_compact_text(message))
            if leader is None or version < _LEADER_HINTS:
                out.append(b"\0")
            else:
                # one tagged field: tag 0, 9 bytes: leader id, leader epoch, no tags of its own
                out.append(struct.pack(">BBBiix", 1, 0, 9, *leader))
            continue
        out.append(struct.pack(">ihqq", index, error, base, append_time_ms))
        if version >= 5:
            out.append(struct.pack(">q", log_start))
        if version >= 8:
            out.append(_I32.pack(len(record_errors)))
            for batch_index, reason in record_errors:
                out += (_I32.pack(batch_index), _text(reason))
            out.append(_text(message))
    return b"".join(out)


def produce_response_in_slices(
    version: int, correlation_id: int, topics: Iterable[tuple[str | UUID, int, list[bytes]]], topic_count: int
) -> Paced[list[bytes]]:
    """The complete frame in pieces. Each topic has its number of partitions and their encoded answers."""
    pieces: list[bytes] = []
    flexible = version >= _FLEXIBLE
    if flexible:
        out = [struct.pack(">ix", correlation_id), encode_uvarint(topic_count + 1)]
    else:
        out = [struct.pack(">ii", correlation_id, topic_count)]
    for topic, count, answers in topics:
        if flexible:
            out.append(_compact_text(topic) if isinstance(topic, str) else topic.bytes)
            out.append(encode_uvarint(count + 1))
        else:
            assert isinstance(topic, str), "topic ids came with v13"
            out.append(_text(topic) + _I32.pack(count))
        yield STEP
        for answer in answers:
            out.append(answer)
            if len(out) > _OPEN_PARTS:
                pieces.append(b"".join(out))
                out = []
            yield FEW
        if flexible:
            out.append(b"\0")
    out.append(_I32.pack(0) + (b"\0" if flexible else b""))
    pieces.append(b"".join(out))
    return [_I32.pack(sum(map(len, pieces))), *pieces]


def encode_node_endpoints(node_endpoints: Sequence[NodeEndpoint]) -> bytes:
    """The closing tagged fields of a produce or fetch response: tag 0 holds the endpoints, if any."""
    if not node_endpoints:
        return b"\0"
    out = [encode_uvarint(len(node_endpoints) + 1)]
    for node_id, host, port, rack in node_endpoints:
        out += (_I32.pack(node_id), _compact_text(host), _I32.pack(port), _compact_text(rack), b"\0")
    content = b"".join(out)
    return b"\x01\x00" + encode_uvarint(len(content)) + content


def _encode_old(
    version: int, topics: Sequence[tuple[str | UUID, Sequence[PartitionProduced]]], throttle_time_ms: int
) -> bytes:
    out = [_I32.pack(len(topics))]
    for topic, partitions in topics:
        assert isinstance(topic, str), "topic ids came with v13"
        out += (_text(topic), _I32.pack(len(partitions)))
        out.append(encode_partitions(version, partitions))
    out.append(_I32.pack(throttle_time_ms))
    return b"".join(out)


def _compact_text(text: str | None) -> bytes:
    if text is None:
        return ONE_BYTE[0]
    data = text.encode()
    return encode_uvarint(len(data) + 1) + data


def _text(text: str | None) -> bytes:
    if text is None:
        return b"\xff\xff"
    data = text.encode()
    return _I16.pack(len(data)) + data
