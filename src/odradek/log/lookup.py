"""Finding offsets by time, as ListOffsets asks for them."""

from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.types import NO_LEADER_EPOCH, NO_OFFSET, NO_TIMESTAMP
from odradek.log.segment import Segment
from odradek.records.batch import iter_records
from odradek.records.header import BatchMeta

if TYPE_CHECKING:
    from odradek.log.reading import ReadableLog

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5


class TimestampOffset(NamedTuple):
    """An offset that answers a question about time; the epoch is -1 where it is not known."""

    timestamp: int
    offset: int
    leader_epoch: int


def offset_for_timestamp(log: "ReadableLog", timestamp: int) -> TimestampOffset | None:
    if timestamp == LATEST:
        return TimestampOffset(NO_TIMESTAMP, log.log_end_offset, log.epochs.latest)
    if timestamp in (EARLIEST, EARLIEST_LOCAL):
        first = log.epochs.earliest
        known = first is not None and first[1] <= log.log_start_offset
        return TimestampOffset(
            NO_TIMESTAMP, log.log_start_offset, first[0] if known and first else NO_LEADER_EPOCH
        )
    if timestamp == LATEST_TIERED:
        return TimestampOffset(NO_TIMESTAMP, NO_OFFSET, NO_LEADER_EPOCH)
    if timestamp == MAX_TIMESTAMP:
        return _latest_record(log)
    for segment in log.segments.all():
        if segment.largest_timestamp_ms() >= timestamp:
            found = _first_record(segment, timestamp, log.log_start_offset)
            if found is not None:  # else all that is late enough lies below the log start
                return found
    return None


def _latest_record(log: "ReadableLog") -> TimestampOffset | None:
    """The first record that has the largest timestamp of the log."""
    segment = max(log.segments.all(), key=lambda candidate: candidate.max_timestamp[0])
    timestamp, offset = segment.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    _, position = segment.offset_index.lookup(offset)
    for batch in segment.scan(position):
        if batch.max_timestamp == timestamp:
            return _record_at(segment, batch, timestamp, 0)
    return None


def _first_record(segment: Segment, timestamp: int, start_offset: int) -> TimestampOffset | None:
    """The first record at or after a time and an offset."""
    _, offset = segment.time_index.lookup(timestamp)
    _, position = segment.offset_index.lookup(max(offset, start_offset))
    for batch in segment.scan(position):
        if batch.max_timestamp >= timestamp:
            found = _record_at(segment, batch, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _record_at(
    segment: Segment, batch: BatchMeta, timestamp: int, start_offset: int
) -> TimestampOffset | None:
    data = segment.read_batch(batch)
    for record in iter_records(data, BatchMeta(0, *batch[1:])):
        if record.timestamp >= timestamp and record.offset >= start_offset:
            return TimestampOffset(record.timestamp, record.offset, batch.partition_leader_epoch)
    return None
