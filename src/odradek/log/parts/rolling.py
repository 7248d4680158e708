"""Roller: ends the active segment and starts the next one, with a snapshot of the producers between them."""

from collections.abc import Callable

from odradek.core.types import TopicPartition
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.durability import Durability
from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState
from odradek.log.segments.segment import Segment


class Roller:
    """`on_rolled` is called when a segment is complete and needs a flush."""

    __slots__ = ("_bounds", "_dir", "_durability", "_local_log", "_producers", "_snapshots", "on_rolled")

    def __init__(
        self,
        directory: PartitionDir,
        local_log: LocalLog,
        bounds: Bounds,
        durability: Durability,
        producers: ProducerState,
        snapshots: ProducerSnapshotFiles,
    ) -> None:
        self._dir = directory
        self._local_log = local_log
        self._bounds = bounds
        self._durability = durability
        self._producers = producers
        self._snapshots = snapshots
        self.on_rolled: Callable[[TopicPartition], None] | None = None

    def roll_at(self, base_offset: int) -> Segment:
        """Start a segment at an offset. Raises StorageError, ExhaustedError."""
        segments = self._local_log.segments
        active = segments.active
        if active.size == 0 and active.base_offset == base_offset:
            # An index too small for one entry is full from the start: keep the empty segment.
            return active
        assert base_offset > active.base_offset, f"roll of {self._dir.path} to {base_offset}"
        try:
            # First: if this fails, there is no new segment.
            self.take_snapshot(base_offset)
            active.seal()
            self._durability.mark_end()
            segment = self._local_log.new_segment(base_offset)
        except OSError as e:
            raise self._dir.fail(e, "rolling") from e
        self._durability.segment_ended(active)
        segments.add(segment)
        if self.on_rolled is not None:
            self.on_rolled(self._dir.topic_partition)
        return segment

    def take_snapshot(self, offset: int) -> None:
        """Write a snapshot of the producers at an offset, unless there is one. Raises OSError."""
        snapshots = self._snapshots
        newest = snapshots.offsets[-1] if snapshots.offsets else self._bounds.log_start_offset
        if offset > newest:
            snapshots.take(self._producers.entries.values(), offset)
            self._dir.changes += 1
