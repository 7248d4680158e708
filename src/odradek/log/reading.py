"""What readers see of a log: up to which offset, from which position, and which transactions to leave out."""

import uuid
from enum import IntEnum
from typing import TYPE_CHECKING

from odradek.core.types import TopicPartition
from odradek.log import lookup
from odradek.log.epoch_cache import EpochCache
from odradek.log.files import FilePool, FileSlice
from odradek.log.local_log import LocalLog, Position
from odradek.log.producers.snapshot_files import SnapshotStore
from odradek.log.producers.state import ProducerState
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig


class Isolation(IntEnum):
    """How far a reader may see."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


class FetchInfo:
    """What a read found. `aborted` is None unless committed data was asked for."""

    __slots__ = ("aborted", "first_offset", "size", "slice")

    def __init__(
        self, first_offset: int, slice: FileSlice | None, aborted: list[tuple[int, int]] | None = None
    ) -> None:
        self.slice = slice
        self.first_offset = first_offset
        self.size = 0 if slice is None else slice.size
        self.aborted = aborted


class ReadableLog(LocalLog):
    """Segments with bounds: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset."""

    __slots__ = (
        "_bound",
        "_epochs_durable",
        "_epochs_written",
        "_first_unstable_offset",
        "_is_topic_id_durable",
        "_newest",
        "epochs",
        "high_watermark",
        "log_start_offset",
        "producers",
        "snapshots",
        "topic_id",
    )

    def __init__(
        self,
        runtime: Runtime,
        pool: FilePool,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: "TopicConfig",
        segments: Segments,
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        epochs: EpochCache,
        producers: ProducerState,
        snapshots: SnapshotStore,
    ) -> None:
        super().__init__(
            runtime, pool, path, topic_partition, config, segments, log_end_offset, recovery_point
        )
        self.topic_id = topic_id
        # What has records had its topic id made durable before them.
        self._is_topic_id_durable = topic_id is None or segments.size_bytes > 0
        self.epochs = epochs
        self._epochs_written = self._epochs_durable = 0
        self.producers = producers
        self.snapshots = snapshots
        self.log_start_offset = log_start_offset
        self.high_watermark = min(max(high_watermark, log_start_offset), log_end_offset)
        self._first_unstable_offset: int | None = None
        self._bound: Position | None = None
        self._newest: Position | None = None
        self.producers.high_watermark_moved(self.high_watermark)
        self._update_unstable_offset()
        self._check_invariants()

    def _check_invariants(self) -> None:
        assert (
            self.log_start_offset <= self.last_stable_offset <= self.high_watermark <= self.log_end_offset
        ), (
            f"{self.path}: log start {self.log_start_offset}, last stable {self.last_stable_offset}, "
            f"high watermark {self.high_watermark}, log end {self.log_end_offset}"
        )

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool = True
    ) -> FetchInfo:
        """Batches from the one that holds an offset on, up to what the isolation lets be seen.

        At least one whole batch when `min_one_message`, else perhaps less. Raises OFFSET_OUT_OF_RANGE.
        """
        if self.failure is not None:
            raise self.failure
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise self._out_of_range(offset, self.log_start_offset, end)
        committed = isolation is Isolation.TXN_COMMITTED
        if isolation is Isolation.LOG_END:
            bound = end
        else:
            bound = self.last_stable_offset if committed else self.high_watermark
        if offset >= bound:
            return FetchInfo(offset, None, [] if committed else None)
        try:
            newest = self._newest
            found = newest if newest is not None and newest.base_offset == offset else self._find(offset)
            if found is None:
                return FetchInfo(offset, None, [] if committed else None)
            segment, base_offset, position, batch_size = found
            last_position = self._bound_position(segment, bound)
            size = min(last_position - position, max(max_bytes, batch_size if min_one_message else 0))
            if size <= 0:
                return FetchInfo(offset, None, [] if committed else None)
            aborted = self._aborted(segment, offset, position + size) if committed else None
            return FetchInfo(base_offset, segment.slice(position, size), aborted)
        except OSError as e:
            raise self.fail(e, "reading from") from e

    def bound(self, isolation: Isolation) -> int:
        """The first offset that a reader may not see."""
        if isolation is Isolation.LOG_END:
            return self.log_end_offset
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self.high_watermark

    def _bound_position(self, segment: Segment, bound: int) -> int:
        """Where in a segment the batches below an offset end."""
        if segment is self.segments.active:
            if bound == self.log_end_offset:
                return segment.size
        else:
            following = self.segments.after(segment)
            if following is None or following.base_offset <= bound:
                return segment.size
        known = self._bound
        if known is None or known.segment is not segment or known.base_offset != bound:
            found = segment.translate(bound)
            position = segment.size if found is None else found[1]
            self._bound = known = Position(segment, bound, position, 0)
        return known.position

    def _aborted(self, segment: Segment, offset: int, end_position: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that a read may touch."""
        upper_bound = segment.offset_index.upper_bound(end_position)
        if upper_bound is None:
            following = self.segments.after(segment)
            upper_bound = self.log_end_offset if following is None else following.base_offset
        found: list[tuple[int, int]] = []
        for later in self.segments.between(segment.base_offset, self.log_end_offset + 1):
            if later.collect_aborted(offset, upper_bound, found):
                break
        return found

    @property
    def last_stable_offset(self) -> int:
        """Everything below it is decided and committed."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def _update_unstable_offset(self) -> None:
        first = self.producers.first_unstable_offset
        self._first_unstable_offset = None if first is None else max(first, self.log_start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see further; True when it moved. It never goes back."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset, f"high watermark {offset} beyond {self.log_end_offset}"
        self._set_high_watermark(offset)
        return True

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self.producers.has_transactions:
            self.producers.high_watermark_moved(offset)
            self._update_unstable_offset()

    def offset_for_timestamp(
        self, timestamp: int, start_offset: int = 0
    ) -> lookup.TimestampOffset | lookup.BatchSearch | None:
        """The first record at or after a time, or what one of ListOffsets' special timestamps means; or the
        search for it in one batch, which takes long."""
        self.check_online()
        try:
            return lookup.offset_for_timestamp(self, timestamp, start_offset)
        except OSError as e:
            raise self.fail(e, "looking up a timestamp in") from e

    # --- epochs ---------------------------------------------------------------------------------------

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(newest epoch at or before the asked one, where it ends); -1 for both where unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)
