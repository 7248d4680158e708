"""Hand-written codec of Fetch, versions 4 to 18.

A response is a list of pieces. The records are separate pieces, so that the server can send them directly
from their files. Fetch sessions are in broker/.
"""

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple
from uuid import UUID

from odradek.core.errors import ProtocolError
from odradek.core.types import ZERO_UUID, Buffer
from odradek.runtime.slices import STEP, Paced, at_once
from odradek.wire.decoding import decode_uuid
from odradek.wire.headers import skip_tagged_fields
from odradek.wire.limits import ANY_NUMBER, ENDS_ELSEWHERE, MOST_TAGS, LongRequest
from odradek.wire.produce import NodeEndpoint, encode_node_endpoints
from odradek.wire.varint import ONE_BYTE, decode_uvarint, encode_uvarint

_SESSIONS, _RACKS, _FLEXIBLE, _TOPIC_IDS, _REPLICA_STATE, _ENDPOINTS = 7, 11, 12, 13, 15, 16

UNKNOWN_HIGH_WATERMARK = (1 << 63) - 1

_I16 = struct.Struct(">h")
_I32 = struct.Struct(">i")
_I64 = struct.Struct(">q")
# replica_id i32 (gone in v15), max_wait_ms i32, min_bytes i32, max_bytes i32, isolation_level i8,
# session_id i32, session_epoch i32 (both from v7 on)
_HEAD = struct.Struct(">iiib")
_HEAD_SESSION = struct.Struct(">iiibii")
# the replica's id i32 and epoch i64, then tagged fields
_REPLICA = struct.Struct(">iq")


class FetchPartition(NamedTuple):
    """The request for one partition."""

    partition_index: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID = ZERO_UUID
    high_watermark: int = UNKNOWN_HIGH_WATERMARK


class FetchRequest:
    """topics: (name, or topic id from v13 on, [FetchPartition, ...]); forgotten: (same, [index, ...])."""

    __slots__ = (
        "cluster_id", "forgotten", "isolation_level", "max_bytes", "max_wait_ms", "min_bytes", "rack_id",
        "replica_epoch", "replica_id", "session_epoch", "session_id", "topics",
    )  # fmt: skip

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.replica_id = -1
        self.replica_epoch = -1
        self.max_wait_ms = 0
        self.min_bytes = 0
        self.max_bytes = 0x7FFFFFFF
        self.isolation_level = 0
        self.session_id = 0
        self.session_epoch = -1
        self.topics: list[tuple[str | UUID, list[FetchPartition]]] = []
        self.forgotten: list[tuple[str | UUID, list[int]]] = []
        self.rack_id = ""

    @staticmethod
    def parse(buffer: Buffer, position: int, version: int, most: int = ANY_NUMBER) -> "FetchRequest":
        """The body of a request that fills the rest of the buffer. LongRequest above `most` entries."""
        request = FetchRequest()
        try:
            if version < _REPLICA_STATE:
                (request.replica_id,) = _I32.unpack_from(buffer, position)
                position += 4
            if version < _SESSIONS:
                (
                    request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level,
                ) = _HEAD.unpack_from(buffer, position)  # fmt: skip
                position += 13
            else:
                (
                    request.max_wait_ms, request.min_bytes, request.max_bytes, request.isolation_level,
                    request.session_id, request.session_epoch,
                ) = _HEAD_SESSION.unpack_from(buffer, position)  # fmt: skip
                position += 21
            if version >= _FLEXIBLE:
                _parse_flexible(request, buffer, position, version, most)
            else:
                _parse_old(request, buffer, position, version, most)
        except (struct.error, IndexError, UnicodeDecodeError) as e:
            raise ProtocolError(f"not a fetch request v{version}: {e}") from e
        return request


# partition i32, current_leader_epoch i32, fetch_offset i64, last_fetched_epoch i32, log_start_offset i64,
# partition_max_bytes i32, then tagged fields
_PARTITION = struct.Struct(">iiqiqi")


def _parse_flexible(request: FetchRequest, buffer: Buffer, position: int, version: int, most: int) -> None:
    topic_count, position = decode_uvarint(buffer, position)
    most -= topic_count
    if topic_count == 0:
        raise ProtocolError("the topics are null")
    topics = request.topics
    for _ in range(topic_count - 1):
        topic, position = _flexible_topic(buffer, position, version)
        count = buffer[position]
        position += 1
        if count > 127:
            count, position = decode_uvarint(buffer, position - 1)
        if count == 0:
            raise ProtocolError("the partitions are null")
        most -= count
        if most < 0:
            raise LongRequest("many partitions")
        partitions = []
        for _ in range(count - 1):
            fields = _PARTITION.unpack_from(buffer, position)
            position += 32
            if buffer[position]:
                partition, position = _partition_tags(FetchPartition(*fields), buffer, position)
                partitions.append(partition)
            else:
                partitions.append(FetchPartition(*fields))
                position += 1
        topics.append((topic, partitions))
        position = skip_tagged_fields(buffer, position) if buffer[position] else position + 1
    forgotten_count = buffer[position]
    position += 1
    if forgotten_count > 127:
        forgotten_count, position = decode_uvarint(buffer, position - 1)
    if forgotten_count == 0:
        raise ProtocolError("the forgotten topics are null")
    most -= forgotten_count
    for _ in range(forgotten_count - 1):
        topic, position = _flexible_topic(buffer, position, version)
        count, position = decode_uvarint(buffer, position)
        most -= count
        if most < 0:
            raise LongRequest("many forgotten partitions")
        indexes, position = _indexes(buffer, position, count - 1)
        request.forgotten.append((topic, indexes))
        position = skip_tagged_fields(buffer, position)
    length = buffer[position]
    position += 1
    if length != 1:
        request.rack_id, position = _compact_text(buffer, position - 1)
    if buffer[position]:
        _request_tags(request, buffer, position)


def _flexible_topic(buffer: Buffer, position: int, version: int) -> tuple[str | UUID, int]:
    if version >= _TOPIC_IDS:
        end = position + 16
        if end > len(buffer):
            raise ProtocolError("a topic id reaches beyond the end")
        return decode_uuid(bytes(buffer[position:end])), end
    return _compact_text(buffer, position)


def _compact_text(buffer: Buffer, position: int) -> tuple[str, int]:
    length, position = decode_uvarint(buffer, position)
    end = position + length - 1
    if length == 0 or end > len(buffer):
        raise ProtocolError("a string is null or reaches beyond the end")
    return str(buffer[position:end], "utf-8"), end


def _indexes(buffer: Buffer, position: int, count: int) -> tuple[list[int], int]:
    end = position + 4 * count
    if count < 0 or end > len(buffer):
        raise ProtocolError("an array is null or reaches beyond the end")
    return list(struct.unpack_from(f">{count}i", buffer, position)), end


def _partition_tags(partition: FetchPartition, buffer: Buffer, position: int) -> tuple[FetchPartition, int]:
    """Tag 0: the replica's directory id; tag 1: the high watermark it knows."""
    count, position = _tag_count(buffer, position)
    for _ in range(count):
        tag, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        if position + size > len(buffer):
            raise ProtocolError("a tagged field reaches beyond the end")
        if (tag == 0 and size != 16) or (tag == 1 and size != 8):
            raise ProtocolError(ENDS_ELSEWHERE)
        if tag == 0:
            directory_id = decode_uuid(bytes(buffer[position : position + 16]))
            partition = partition._replace(replica_directory_id=directory_id)
        elif tag == 1:
            partition = partition._replace(high_watermark=_I64.unpack_from(buffer, position)[0])
        position += size
    return partition, position


def _request_tags(request: FetchRequest, buffer: Buffer, position: int) -> None:
    """Tag 0: the cluster id; tag 1: the replica's id and epoch."""
    count, position = _tag_count(buffer, position)
    for _ in range(count):
        tag, position = decode_uvarint(buffer, position)
        size, position = decode_uvarint(buffer, position)
        if position + size > len(buffer):
            raise ProtocolError("a tagged field reaches beyond the end")
        end = position + size
        if tag == 0:
            if buffer[position]:
                request.cluster_id, position = _compact_text(buffer, position)
            else:
                request.cluster_id, position = None, position + 1
        elif tag == 1:
            request.replica_id, request.replica_epoch = _REPLICA.unpack_from(buffer, position)
            position = skip_tagged_fields(buffer, position + _REPLICA.size)
        if tag <= 1 and position != end:
            raise ProtocolError(ENDS_ELSEWHERE)
        position = end


def _tag_count(buffer: Buffer, position: int) -> tuple[int, int]:
    count, position = decode_uvarint(buffer, position)
    if count > MOST_TAGS:
        raise LongRequest(f"{count} tagged fields in one place")
    return count, position


@lru_cache
def _old_partition(version: int) -> struct.Struct:
    """index i32, current_leader_epoch i32 (v9+), fetch_offset i64, log_start_offset i64 (v5+), max_bytes."""
    return struct.Struct(">i" + ("i" if version >= 9 else "") + "q" + ("q" if version >= 5 else "") + "i")


def _parse_old(request: FetchRequest, buffer: Buffer, position: int, version: int, most: int) -> None:
    layout = _old_partition(version)
    topic_count, position = _count(buffer, position)
    most -= topic_count
    for _ in range(topic_count):
        name, position = _text(buffer, position)
        count, position = _count(buffer, position)
        most -= count
        if most < 0:
            raise LongRequest("many partitions")
        partitions = []
        for _ in range(count):
            fields = layout.unpack_from(buffer, position)
            position += layout.size
            if version >= 9:
                index, epoch, offset, log_start, max_bytes = fields
                partitions.append(FetchPartition(index, epoch, offset, -1, log_start, max_bytes))
            elif version >= 5:
                index, offset, log_start, max_bytes = fields
                partitions.append(FetchPartition(index, -1, offset, -1, log_start, max_bytes))
            else:
                index, offset, max_bytes = fields
                partitions.append(FetchPartition(index, -1, offset, -1, -1, max_bytes))
        request.topics.append((name, partitions))
    if version >= _SESSIONS:
        topic_count, position = _count(buffer, position)
        most -= topic_count
        for _ in range(topic_count):
            name, position = _text(buffer, position)
            count, position = _count(buffer, position)
            most -= count
            if most < 0:
                raise LongRequest("many forgotten partitions")
            indexes, position = _indexes(buffer, position, count)
            request.forgotten.append((name, indexes))
    if version >= _RACKS:
        request.rack_id, position = _text(buffer, position)


def _count(buffer: Buffer, position: int) -> tuple[int, int]:
    (count,) = _I32.unpack_from(buffer, position)
    if count < 0:
        raise ProtocolError("an array is null")
    return count, position + 4


def _text(buffer: Buffer, position: int) -> tuple[str, int]:
    (length,) = _I16.unpack_from(buffer, position)
    position += 2
    end = position + length
    if length < 0 or end > len(buffer):
        raise ProtocolError("a string is null or reaches beyond the end")
    return str(buffer[position:end], "utf-8"), end


class PartitionFetched(NamedTuple):
    """The answer for one partition. `records` is any object of `records_size` bytes; it becomes a piece.

    aborted: (producer id, first offset) of each aborted transaction, None when not asked for.
    diverging_epoch: (epoch, end offset); current_leader: (id, epoch); snapshot_id: (end offset, epoch).
    """

    partition_index: int
    error_code: int = 0
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    aborted: Sequence[tuple[int, int]] | None = None
    records: Any = None
    records_size: int = 0
    preferred_read_replica: int = -1
    diverging_epoch: tuple[int, int] | None = None
    current_leader: tuple[int, int] | None = None
    snapshot_id: tuple[int, int] | None = None


TopicFetched = tuple[str | UUID, Sequence[PartitionFetched]]

# A flexible answer of one partition without aborted transactions: up to its topic, and from there up to the
# length of its records.
# size, correlation id, header tags | throttle, error, session id | topics
_ONE_TOPIC = struct.Struct(">iixihiB")
# partitions, index, error, high watermark, last stable offset, log start, aborted, preferred replica
_ONE_PARTITION = struct.Struct(">BihqqqBi")


def encode_fetch_response(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicFetched],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> list[Any]:
    """The frame in pieces: bytes, and between them the `records` of each partition that has any."""
    if version >= _FLEXIBLE and len(topics) == 1 and not node_endpoints:
        topic, partitions = topics[0]
        if len(partitions) == 1:
            p = partitions[0]
            if (
                not p.aborted
                and p.diverging_epoch is None
                and p.current_leader is None
                and p.snapshot_id is None
            ):
                name = _compact_name(topic) if isinstance(topic, str) else topic.bytes
                size = p.records_size + 1
                length = ONE_BYTE[size] if size < 128 else encode_uvarint(size)
                rest = _ONE_PARTITION.pack(
                    2, p.partition_index, p.error_code, p.high_watermark, p.last_stable_offset,
                    p.log_start_offset, 0 if p.aborted is None else 1, p.preferred_read_replica,
                )  # fmt: skip
                # The tags of the partition, of the topic and of the response, all empty, are the last three.
                total = _ONE_TOPIC.size + len(name) + len(rest) + len(length) + p.records_size - 1
                start = _ONE_TOPIC.pack(total, correlation_id, throttle_time_ms, error_code, session_id, 2)
                if p.records_size:
                    return [start + name + rest + length, p.records, b"\0\0\0"]
                return [start + name + rest + length + b"\0\0\0"]
    return at_once(
        fetch_response_in_slices(
            version,
            correlation_id,
            topics,
            throttle_time_ms=throttle_time_ms,
            error_code=error_code,
            session_id=session_id,
            node_endpoints=node_endpoints,
        )
    )


def fetch_response_in_slices(
    version: int,
    correlation_id: int,
    topics: Sequence[TopicFetched],
    *,
    throttle_time_ms: int = 0,
    error_code: int = 0,
    session_id: int = 0,
    node_endpoints: Sequence[NodeEndpoint] = (),
) -> Paced[list[Any]]:
    """`encode_fetch_response` in slices, for many partitions."""
    pieces = _Pieces()
    if version >= _FLEXIBLE:
        pieces.add(struct.pack(">ixihi", correlation_id, throttle_time_ms, error_code, session_id))
        yield from _encode_flexible(pieces, topics)
        pieces.add(encode_node_endpoints(node_endpoints if version >= _ENDPOINTS else ()))
    else:
        if version >= _SESSIONS:
            pieces.add(struct.pack(">iihi", correlation_id, throttle_time_ms, error_code, session_id))
        else:
            pieces.add(struct.pack(">ii", correlation_id, throttle_time_ms))
        yield from _encode_old(pieces, version, topics)
    return pieces.frame()


_OPEN_PARTS = 256


class _Pieces:
    __slots__ = ("open", "pieces", "size")

    def __init__(self) -> None:
        self.pieces: list[Any] = []
        self.open: list[bytes] = [b""]
        self.size = 0

    def add(self, data: bytes) -> None:
        self.open.append(data)

    def records(self, partition: PartitionFetched) -> None:
        if partition.records_size:
            self.close()
            self.pieces.append(partition.records)
            self.size += partition.records_size

    def close(self) -> None:
        if self.open:
            data = b"".join(self.open)
            self.size += len(data)
            self.pieces.append(data)
            self.open = []

    def close_if_long(self) -> None:
        if len(self.open) > _OPEN_PARTS:
            self.close()

    def frame(self) -> list[Any]:
        self.close()
        self.pieces[0] = _I32.pack(self.size) + self.pieces[0]
        return self.pieces


# index i32, error i16, high watermark i64, last stable offset i64, log start offset i64 (v5+)
_ANSWER = struct.Struct(">ihqqq")
_ANSWER_V4 = struct.Struct(">ihqq")
# the same with no list of aborted transactions, and the preferred read replica i32 (flexible versions)
_ANSWER_NOT_ABORTED = struct.Struct(">ihqqqxi")


def _encode_flexible(pieces: _Pieces, topics: Sequence[TopicFetched]) -> Paced[None]:
    add = pieces.add
    add(encode_uvarint(len(topics) + 1))
    for topic, partitions in topics:
        add(_compact_name(topic) if isinstance(topic, str) else topic.bytes)
        add(encode_uvarint(len(partitions) + 1))
        for p in partitions:
            start = (
                p.partition_index,
                p.error_code,
                p.high_watermark,
                p.last_stable_offset,
                p.log_start_offset,
            )
            if p.aborted is None:
                add(_ANSWER_NOT_ABORTED.pack(*start, p.preferred_read_replica))
            else:
                add(_ANSWER.pack(*start) + encode_uvarint(len(p.aborted) + 1))
                for producer_id, first_offset in p.aborted:
                    add(struct.pack(">qqx", producer_id, first_offset))
                add(_I32.pack(p.preferred_read_replica))
            add(encode_uvarint(p.records_size + 1))
            pieces.records(p)
            if p.diverging_epoch is None and p.current_leader is None and p.snapshot_id is None:
                add(b"\0")
            else:
                add(_partition_answer_tags(p))
            yield STEP
        add(b"\0")
        yield STEP
        pieces.close_if_long()


def _compact_name(topic: str) -> bytes:
    name = topic.encode()
    return encode_uvarint(len(name) + 1) + name


def _partition_answer_tags(p: PartitionFetched) -> bytes:
    tags = []
    if p.diverging_epoch is not None:
        tags.append(struct.pack(">BBiqx", 0, 13, *p.diverging_epoch))
    if p.current_leader is not None:
        tags.append(struct.pack(">BBiix", 1, 9, *p.current_leader))
    if p.snapshot_id is not None:
        tags.append(struct.pack(">BBqix", 2, 13, *p.snapshot_id))
    return ONE_BYTE[len(tags)] + b"".join(tags)


def _encode_old(pieces: _Pieces, version: int, topics: Sequence[TopicFetched]) -> Paced[None]:
    add = pieces.add
    add(_I32.pack(len(topics)))
    for topic, partitions in topics:
        assert isinstance(topic, str), "topic ids came with v13"
        name = topic.encode()
        add(_I16.pack(len(name)) + name + _I32.pack(len(partitions)))
        for p in partitions:
            start = (p.partition_index, p.error_code, p.high_watermark, p.last_stable_offset)
            add(_ANSWER.pack(*start, p.log_start_offset) if version >= 5 else _ANSWER_V4.pack(*start))
            aborted = p.aborted
            if aborted is None:
                add(b"\xff\xff\xff\xff")
            else:
                add(_I32.pack(len(aborted)))
                for producer_id, first_offset in aborted:
                    add(struct.pack(">qq", producer_id, first_offset))
            if version >= _RACKS:
                add(_I32.pack(p.preferred_read_replica))
            add(_I32.pack(p.records_size))
            pieces.records(p)
            yield STEP
        yield STEP
        pieces.close_if_long()
