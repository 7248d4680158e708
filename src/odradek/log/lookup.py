"""Finds offsets by timestamp, for ListOffsets."""

import logging
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH, NO_OFFSET, NO_TIMESTAMP
from odradek.log.segments.segment import Segment
from odradek.records import kernel
from odradek.records.batch import iter_records, records_of
from odradek.records.check import is_heavy
from odradek.records.header import LOG_APPEND_TIME, BatchMeta

if TYPE_CHECKING:
    from odradek.log.log import Log

_log = logging.getLogger(__name__)

LATEST: Final = -1
EARLIEST: Final = -2
MAX_TIMESTAMP: Final = -3
EARLIEST_LOCAL: Final = -4
LATEST_TIERED: Final = -5
_MIN_INT64: Final = -(1 << 63)


class TimestampOffset(NamedTuple):
    """The result of a lookup. The leader epoch is -1 if it is unknown."""

    timestamp: int
    offset: int
    leader_epoch: int


class BatchSearch(NamedTuple):
    """A search of one batch for its first record at or after a timestamp and an offset."""

    data: bytes
    batch: BatchMeta
    timestamp: int
    start_offset: int

    def run(self) -> TimestampOffset | None:
        """Search. It uses nothing but the bytes, so it may run in another thread. Raises CORRUPT_MESSAGE."""
        batch = self.batch
        if batch.magic < 2:
            for record in iter_records(self.data, batch):
                if record.timestamp >= self.timestamp and record.offset >= self.start_offset:
                    return TimestampOffset(record.timestamp, record.offset, batch.partition_leader_epoch)
            return None
        try:
            found = self._stamped() if batch.timestamp_type == LOG_APPEND_TIME else self._created()
        except ValueError as e:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at offset {batch.base_offset}: {e}.") from e
        if found is None:
            return None
        timestamp, delta = found
        return TimestampOffset(timestamp, batch.base_offset + delta, batch.partition_leader_epoch)

    def _created(self) -> tuple[int, int] | None:
        """(timestamp, offset delta) by the records' own timestamps."""
        batch = self.batch
        _, _, late = kernel.find_outsiders(
            records_of(self.data, batch),
            batch.record_count,
            batch.base_timestamp,
            _MIN_INT64,
            self.timestamp - 1,
            False,
            1,
            self.start_offset - batch.base_offset,
        )
        return (late[0][3], late[0][2]) if late else None

    def _stamped(self) -> tuple[int, int] | None:
        """The same for a batch with LogAppendTime, whose records share one timestamp."""
        batch, count = self.batch, self.batch.record_count
        columns = memoryview(kernel.walk(records_of(self.data, batch), count)).cast("q")
        deltas = columns[kernel.OFFSET_DELTA * count : (kernel.OFFSET_DELTA + 1) * count]
        at = bisect_left(deltas, self.start_offset - batch.base_offset)
        return (batch.max_timestamp, deltas[at]) if at < count else None


def offset_for_timestamp(
    log: "Log", timestamp: int, start_offset: int = 0
) -> TimestampOffset | BatchSearch | None:
    """The result, or a BatchSearch if searching a batch takes long. The caller runs it, and calls this again
    with an offset after the batch if it finds nothing."""
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
        return _latest_record(log, start_offset)
    start_offset = max(start_offset, log.log_start_offset)
    for segment in log.segments.all():
        if segment.largest_timestamp_ms() >= timestamp:
            found = _first_record(segment, timestamp, start_offset)
            if found is not None:  # otherwise all such records are below the start
                return found
    return None


def _latest_record(log: "Log", start_offset: int) -> TimestampOffset | BatchSearch | None:
    """The first record that has the largest timestamp of the log."""
    segment = max(log.segments.all(), key=lambda candidate: candidate.max_timestamp[0])
    timestamp, offset = segment.max_timestamp
    if timestamp == NO_TIMESTAMP:
        return None
    _, position = segment.offset_index.lookup(offset)
    for batch in segment.scan(position):
        if batch.max_timestamp == timestamp and batch.last_offset >= start_offset:
            return _record_at(segment, batch, timestamp, start_offset)
    return None


def _first_record(
    segment: Segment, timestamp: int, start_offset: int
) -> TimestampOffset | BatchSearch | None:
    """The first record at or after a time and an offset."""
    found_time, offset = segment.time_index.lookup(timestamp)
    if found_time != NO_TIMESTAMP and not segment.is_time_of_batch(found_time, offset):
        # Searches for later timestamps would start after such an entry.
        _log.warning(
            "Rebuilding the indexes of %s: no batch with timestamp %d at offset %d",
            segment.file.path,
            found_time,
            offset,
        )
        segment.rebuild_indexes()
        _, offset = segment.time_index.lookup(timestamp)
    _, position = segment.offset_index.lookup(max(offset, start_offset))
    for batch in segment.scan(position):
        if batch.max_timestamp >= timestamp and batch.last_offset >= start_offset:
            found = _record_at(segment, batch, timestamp, start_offset)
            if found is not None:
                return found
    return None


def _record_at(
    segment: Segment, batch: BatchMeta, timestamp: int, start_offset: int
) -> TimestampOffset | BatchSearch | None:
    data = segment.read_batch(batch)
    search = BatchSearch(data, BatchMeta(0, *batch[1:]), timestamp, start_offset)
    heavy = batch.is_wrapper if batch.magic < 2 else is_heavy(data)
    return search if heavy else search.run()
