"""The decoder of a Fetch response, versions 13 to 18, as a follower reads it. Pure.

It is written by hand over the receive buffer: records are views of it, and last stable offsets, aborted
transactions and the endpoints of other leaders are skipped.
"""

from struct import Struct, error
from typing import NamedTuple

from odradek.core.errors import ProtocolError
from odradek.core.types import Buffer
from odradek.runtime.slices import Paced
from odradek.wire.headers import skip_tagged_fields
from odradek.wire.varint import decode_uvarint

PartitionKey = tuple[bytes, int]
"""Topic id and partition, as the wire has them."""

# throttle_time_ms i32, error_code i16, session_id i32
_HEAD = Struct(">ihi")
# index i32, error_code i16, high_watermark i64, last_stable_offset i64, log_start_offset i64, then the number
# of aborted transactions plus one; 0 is null
_PARTITION = Struct(">ihqqqB")
_ABORTED_BYTES = 17  # producer_id i64, first_offset i64, no tagged fields
_PREFERRED_REPLICA_BYTES = 4
# epoch i32, end_offset i64
_DIVERGING = Struct(">iq")
_DIVERGING_TAG = 0
_AT_A_TIME = 16
_CALLS = 12


class PartitionData(NamedTuple):
    """The answer for one partition. `diverging` is (epoch, its end offset at the leader)."""

    key: PartitionKey
    error_code: int
    high_watermark: int
    log_start_offset: int
    diverging: tuple[int, int] | None
    records: memoryview | None


class FetchAnswer(NamedTuple):
    error_code: int
    session_id: int
    partitions: list[PartitionData]


def parse_fetch_response(frame: memoryview, position: int) -> Paced[FetchAnswer]:
    """The body of a response that fills the rest of the frame. Raises ProtocolError."""
    try:
        _, error_code, session_id = _HEAD.unpack_from(frame, position)
        topics, position = decode_uvarint(frame, position + _HEAD.size)
        partitions: list[PartitionData] = []
        for _ in range(topics - 1):
            topic_id = bytes(frame[position : position + 16])
            count, position = decode_uvarint(frame, position + 16)
            for _ in range(count - 1):
                data, position = _parse_partition(frame, position, topic_id)
                partitions.append(data)
                if not len(partitions) % _AT_A_TIME:
                    yield _AT_A_TIME * _CALLS
            position = skip_tagged_fields(frame, position)
        skip_tagged_fields(frame, position)
    except (error, IndexError) as e:
        raise ProtocolError(f"not a fetch response: {e}") from e
    yield len(partitions) % _AT_A_TIME * _CALLS
    return FetchAnswer(error_code, session_id, partitions)


def _parse_partition(frame: memoryview, position: int, topic_id: bytes) -> tuple[PartitionData, int]:
    index, error_code, high_watermark, _, log_start, aborted = _PARTITION.unpack_from(frame, position)
    position += _PARTITION.size
    if aborted > 1:
        position = _skip_aborted(frame, position - 1)
    size, position = decode_uvarint(frame, position + _PREFERRED_REPLICA_BYTES)
    records = None
    if size > 1:
        end = position + size - 1
        if end > len(frame):
            raise ProtocolError("records reach beyond the end of a fetch response")
        records = frame[position:end]
        position = end
    diverging = None
    if frame[position]:
        diverging, position = _parse_tags(frame, position)
    else:
        position += 1
    key = topic_id, index
    return PartitionData(key, error_code, high_watermark, log_start, diverging, records), position


def _skip_aborted(frame: Buffer, position: int) -> int:
    count, position = decode_uvarint(frame, position)
    for _ in range(count - 1):
        position = skip_tagged_fields(frame, position + _ABORTED_BYTES - 1)
    return position


def _parse_tags(frame: memoryview, position: int) -> tuple[tuple[int, int] | None, int]:
    diverging = None
    count, position = decode_uvarint(frame, position)
    for _ in range(count):
        tag, position = decode_uvarint(frame, position)
        size, position = decode_uvarint(frame, position)
        if tag == _DIVERGING_TAG:
            epoch, end_offset = _DIVERGING.unpack_from(frame, position)
            diverging = epoch, end_offset
        position += size
        if position > len(frame):
            raise ProtocolError("a tagged field reaches beyond the end of a fetch response")
    return diverging, position
