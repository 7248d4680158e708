"""Searches the record batches of an open file by their headers."""

from collections.abc import Iterator
from struct import Struct
from typing import Final

from odradek.core.errors import KafkaError
from odradek.log.files import named, read_fully
from odradek.log.segments.index_file import CorruptIndexError
from odradek.records.header import LEGACY_MIN_SIZE, LOG_OVERHEAD, BatchMeta, iter_batches
from odradek.runtime.api import Disk

# base_offset int64, batch_length int32, partition_leader_epoch int32, magic int8, crc uint32,
# attributes int16, last_offset_delta int32: all but offset, length and magic mean something in magic 2 only.
_HEAD: Final = Struct(">qiib4xhi")
_MAX_INT64: Final = (1 << 63) - 1
_SEARCH_BYTES: Final = 4096
_SCAN_BYTES: Final = 1 << 20


class NoBatchError(CorruptIndexError):
    """No batch at a position where an index, or the batch before it, says there is one."""

    def __init__(self, position: int) -> None:
        super().__init__(f"no record batch at byte offset {position}")
        self.position = position


def find_batch(
    disk: Disk, fd: int, end: int, base_offset: int, offset: int, indexed: tuple[int, int]
) -> tuple[int, int, int] | None:
    """(base offset, position, size) of the first batch of a segment that ends at or after an offset.

    The search starts at the index entry `indexed`, an offset and a position. Raises NoBatchError if there is
    no batch where one must be. If that is the position of the index entry, the index is wrong.
    """
    expected, position = indexed
    if position == 0:
        expected = _MAX_INT64
    if position >= end > 0:
        raise NoBatchError(position)
    while position < end:
        try:
            chunk = disk.pread(fd, min(_SEARCH_BYTES, end - position), position)
        except OSError as e:
            raise named(disk, e, fd, position) from None
        if len(chunk) < _HEAD.size:
            chunk += bytes(_HEAD.size - len(chunk))
        at = 0
        while at + _HEAD.size <= len(chunk):
            first_offset, length, _, magic, _, last_offset_delta = _HEAD.unpack_from(chunk, at)
            size = length + LOG_OVERHEAD
            if (
                length < LEGACY_MIN_SIZE
                or not 0 <= magic <= 2
                or position + size > end
                or not base_offset <= first_offset <= expected
            ):
                raise NoBatchError(position)
            if (first_offset + last_offset_delta if magic == 2 else first_offset) >= offset:
                return first_offset, position, size
            expected = _MAX_INT64
            position += size
            at += size
    return None


def last_offset_at(disk: Disk, fd: int, position: int) -> int | None:
    """The last offset of the batch at a position; None if there cannot be one."""
    head = read_fully(disk, fd, _HEAD.size, position)
    if len(head) < _HEAD.size:
        return None
    first_offset, length, _, magic, _, last_offset_delta = _HEAD.unpack(head)
    if length < LEGACY_MIN_SIZE or not 0 <= magic <= 2:
        return None
    return int(first_offset + last_offset_delta if magic == 2 else first_offset)


def scan_batches(disk: Disk, fd: int, position: int, end: int) -> Iterator[BatchMeta]:
    """The complete batches between two positions of a file, with their positions in the file.

    Raises CORRUPT_MESSAGE for bytes that are not a batch.
    """
    want = _SCAN_BYTES
    while position < end:
        chunk = read_fully(disk, fd, min(want, end - position), position)
        done = 0
        try:
            for batch in iter_batches(chunk):
                done = batch.position + batch.size
                yield BatchMeta(position + batch.position, *batch[1:])
        except KafkaError as e:
            raise KafkaError(e.code, f"no record batch at byte offset {position + done}") from e
        if done:
            position += done
            want = _SCAN_BYTES
        elif len(chunk) < want:
            return
        else:
            want *= 2
