"""PartitionFollower: the state of a follower for one leader epoch. It appends what was fetched, and truncates
where its log diverges from the leader's.

fetching/ decides what to fetch. A new leader epoch gets a new `PartitionFollower`.
"""

import logging
from struct import Struct
from typing import Final

from odradek.core.types import NO_LEADER, NO_LEADER_EPOCH, Buffer
from odradek.log.log import Log
from odradek.records.header import LOG_OVERHEAD

_log = logging.getLogger(__name__)

# base_offset i64, batch_length i32: the front of a batch
_FRONT: Final = Struct(">qi")


class PartitionFollower:
    """This node follows the leader of a partition, at one leader epoch."""

    __slots__ = ("leader_epoch", "leader_id", "log")

    def __init__(self, log: Log, leader_id: int, leader_epoch: int) -> None:
        assert leader_id != NO_LEADER and leader_epoch >= 0
        self.log = log
        self.leader_id = leader_id
        self.leader_epoch = leader_epoch

    def begin(self) -> None:
        """Remove what cannot be compared with the leader's log: without leader epochs, all records above the
        high watermark. Raises StorageError."""
        log = self.log
        if log.latest_epoch == NO_LEADER_EPOCH and log.truncate_to(log.high_watermark):
            _log.info("%s has no leader epochs: truncated to %d", log.topic_partition, log.log_end_offset)

    # --- positions ------------------------------------------------------------------------------------

    @property
    def is_settled(self) -> bool:
        """Whether the leader may hear of all records here: none of them waits for a flush."""
        log = self.log
        return not log.flushes_by_count or log.settled_offset == log.log_end_offset

    # --- records --------------------------------------------------------------------------------------

    def append(self, records: Buffer | None, high_watermark: int, log_start_offset: int) -> None:
        """Append fetched records. High watermark and log start follow those of the leader.

        Raises CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE, StorageError, ExhaustedError: then nothing was appended.
        """
        log = self.log
        if records is not None and len(records) >= LOG_OVERHEAD:
            base_offset, length = _FRONT.unpack_from(records)
            if length + LOG_OVERHEAD <= len(records):  # otherwise not even the first batch is complete
                if base_offset < log.log_end_offset and log.log_start_offset == log.log_end_offset:
                    self._restart_below(base_offset)
                log.append_as_follower(records, self.leader_epoch)
        log.advance_high_watermark(min(high_watermark, log.log_end_offset))
        if log_start_offset > log.log_start_offset:
            log.increment_log_start_offset(min(log_start_offset, log.high_watermark))

    def _restart_below(self, base_offset: int) -> None:
        """The log is empty, and the leader's log starts inside a batch: start with this batch."""
        log = self.log
        _log.info(
            "%s: the leader's log starts at %d, inside the batch at %d",
            log.topic_partition,
            log.log_end_offset,
            base_offset,
        )
        log.truncate_fully_and_start_at(base_offset)

    # --- truncation -----------------------------------------------------------------------------------

    def truncate_diverging(self, epoch: int, end_offset: int) -> None:
        """The leader has no record of our last epoch at our log end. The newest epoch that it has at or below
        ours is `epoch`, which ends there at `end_offset`.

        If this log does not have that epoch, its own newest one below it decides: the next fetch then tells
        whether that diverges, too. Raises StorageError.
        """
        log = self.log
        own_epoch, own_end = log.end_offset_for_epoch(epoch)
        offset = min(end_offset, log.log_end_offset)
        if own_epoch == epoch:
            offset = min(offset, own_end)
        elif own_epoch != NO_LEADER_EPOCH:
            offset = min(own_end, log.log_end_offset)
        self._truncate_to(offset, f"leader epoch {epoch} ends at {end_offset} on the leader")

    def truncate_to_leader_end(self, offset: int) -> None:
        """The leader's log ends below ours. Raises StorageError."""
        self._truncate_to(offset, "the leader's log ends there")

    def start_at_leader_start(self, offset: int) -> None:
        """The leader's log starts above our log end: remove all records. Raises StorageError."""
        log = self.log
        _log.info("%s: the leader's log starts at %d, ours ends below", log.topic_partition, offset)
        log.truncate_fully_and_start_at(offset)

    def _truncate_to(self, offset: int, reason: str) -> None:
        log = self.log
        if offset < log.high_watermark:
            _log.warning(
                "Truncating %s to %d, below its high watermark %d: %s",
                log.topic_partition,
                offset,
                log.high_watermark,
                reason,
            )
        end = log.log_end_offset
        log.truncate_to(offset)
        if log.log_end_offset < end:
            _log.info("Truncated %s from %d to %d: %s", log.topic_partition, end, log.log_end_offset, reason)
