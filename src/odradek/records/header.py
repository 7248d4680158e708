"""The header of a record batch: its layout, its fields by name, and the fields that a leader rewrites.

This file only locates and names bytes. Records, compression and checks are in other files.
"""

import zlib
from collections.abc import Iterator
from struct import Struct
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, Buffer
from odradek.records.kernel import crc32c

# base_offset             int64    0
# batch_length            int32    8   bytes that follow this field
# partition_leader_epoch  int32   12   not covered by the CRC
# magic                   int8    16
# crc                     uint32  17   CRC-32C of everything from attributes on
# attributes              int16   21   bits 0-2 codec, 3 log append time, 4 transactional, 5 control,
#                                      6 delete horizon
# last_offset_delta       int32   23
# base_timestamp          int64   27   the delete horizon where bit 6 is set
# max_timestamp           int64   35
# producer_id             int64   43
# producer_epoch          int16   51
# base_sequence           int32   53
# record_count            int32   57
# records                         61
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = HEADER.size
LOG_OVERHEAD: Final = 12
CRC_START: Final = 21

# The entry of a magic 0 or 1 set: offset int64, size int32, crc uint32, magic int8, attributes int8, and in
# magic 1 timestamp int64; then key and value, each an int32 length (-1 is null) and its bytes.
LEGACY_HEADER: Final = Struct(">qiIbb")
LEGACY_TIMESTAMP: Final = Struct(">q")
LEGACY_MIN_SIZE: Final = 14

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

MAX_INT32: Final = 0x7FFFFFFF
MAX_INT64: Final = (1 << 63) - 1

_SIZE = Struct(">i")
_CRC = Struct(">I")
_ATTRIBUTES = Struct(">h")
_MAX_TIMESTAMP = Struct(">q")


class BatchMeta(NamedTuple):
    """The position of a batch in a buffer, and the fields of its header.

    An entry of a magic 0 or 1 set has the same form: one record at the entry's offset. A compressed entry of
    these formats has several records. Its offset is that of the last one.
    """

    position: int
    size: int
    base_offset: int
    last_offset_delta: int
    partition_leader_epoch: int
    attributes: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int
    crc: int
    magic: int = 2

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record; sequences wrap from the largest int32 to 0."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_INT32

    @property
    def compression(self) -> int:
        return self.attributes & CODEC_MASK

    @property
    def timestamp_type(self) -> int:
        return LOG_APPEND_TIME if self.attributes & LOG_APPEND_TIME_FLAG else CREATE_TIME

    @property
    def is_wrapper(self) -> bool:
        """Whether this is a compressed entry of magic 0 or 1: it names its last offset, not its first."""
        return self.magic < 2 and self.compression != 0

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_FLAG)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_FLAG)

    @property
    def has_delete_horizon(self) -> bool:
        return bool(self.attributes & DELETE_HORIZON_FLAG)


def read_header(buf: Buffer, position: int) -> BatchMeta:
    """The batch at a position. Its first 61 bytes must be in the buffer. The magic is not checked."""
    offset, length, epoch, magic, crc, attributes, last_delta, *rest = HEADER.unpack_from(buf, position)
    return BatchMeta._make(
        (position, length + LOG_OVERHEAD, offset, last_delta, epoch, attributes, *rest, crc, magic)
    )


def iter_batches(buf: Buffer, start: int = 0) -> Iterator[BatchMeta]:
    """The batches of a buffer, from their headers alone. A partial batch at the end is ignored.

    Raises CORRUPT_MESSAGE for an invalid length or magic: the next batch cannot be found then.
    """
    end = len(buf)
    position = start
    while end - position >= LOG_OVERHEAD + 5:
        (length,) = _SIZE.unpack_from(buf, position + 8)
        magic = buf[position + 16]
        if magic > 2:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Invalid magic {magic} at position {position}.")
        smallest = LEGACY_MIN_SIZE if magic < 2 else HEADER_BYTES - LOG_OVERHEAD
        if length < smallest:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"Record batch at position {position} has length {length}, less than the minimum {smallest}.",
            )
        if end - position < length + LOG_OVERHEAD:
            return
        yield read_header(buf, position) if magic == 2 else _read_legacy_header(buf, position)
        position += length + LOG_OVERHEAD


def _read_legacy_header(buf: Buffer, position: int) -> BatchMeta:
    offset, length, crc, magic, attributes = LEGACY_HEADER.unpack_from(buf, position)
    timestamp = -1
    if magic == 1:
        if length < LEGACY_MIN_SIZE + LEGACY_TIMESTAMP.size:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE, f"Magic 1 entry at {position} is only {length} bytes."
            )
        (timestamp,) = LEGACY_TIMESTAMP.unpack_from(buf, position + LEGACY_HEADER.size)
    return BatchMeta(
        position,
        length + LOG_OVERHEAD,
        offset,
        0,
        NO_LEADER_EPOCH,
        attributes & (CODEC_MASK | LOG_APPEND_TIME_FLAG if magic == 1 else CODEC_MASK),
        timestamp,
        timestamp,
        NO_PRODUCER_ID,
        NO_PRODUCER_EPOCH,
        NO_SEQUENCE,
        1,
        crc,
        magic,
    )


def crc_matches(buf: Buffer, batch: BatchMeta) -> bool:
    """Whether the batch matches the checksum in its header: CRC-32C, or CRC-32 for magic 0 and 1."""
    view = memoryview(buf)
    end = batch.position + batch.size
    if batch.magic == 2:
        return crc32c(view[batch.position + CRC_START : end]) == batch.crc
    return zlib.crc32(view[batch.position + 16 : end]) == batch.crc


def set_max_timestamp(
    buf: bytearray | memoryview, batch: BatchMeta, timestamp_type: int, max_timestamp: int
) -> BatchMeta:
    """Rewrite timestamp type, max timestamp and CRC in place."""
    attributes = batch.attributes & ~LOG_APPEND_TIME_FLAG
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    start = batch.position
    _ATTRIBUTES.pack_into(buf, start + CRC_START, attributes)
    _MAX_TIMESTAMP.pack_into(buf, start + 35, max_timestamp)
    crc = crc32c(memoryview(buf)[start + CRC_START : start + batch.size])
    _CRC.pack_into(buf, start + 17, crc)
    return batch._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)


def pack_header(
    buf: bytearray | memoryview,
    *,
    base_offset: int,
    leader_epoch: int,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
) -> None:
    """Write header and CRC into the first 61 bytes of a buffer that holds one batch."""
    HEADER.pack_into(
        buf,
        0,
        base_offset,
        len(buf) - LOG_OVERHEAD,
        leader_epoch,
        2,
        0,
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    _CRC.pack_into(buf, 17, crc32c(memoryview(buf)[CRC_START:]))
