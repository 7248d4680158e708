"""Durability: what a flush of a log has to sync, and what is durable after it."""

from collections.abc import Iterable

from odradek.log.parts.bounds import Bounds
from odradek.log.parts.epoch_file import LeaderEpochFile
from odradek.log.parts.flush_job import FlushJob, FlushProof
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.unflushed_marks import UnflushedMarks
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from odradek.runtime.api import Clock


class Durability:
    """Below `recovery_point` all records are durable. Below `restart_offset` the indexes are durable too, so
    a restart need not check them."""

    __slots__ = (
        "_bounds",
        "_clock",
        "_dir",
        "_last_flush_ms",
        "_segments",
        "_snapshots",
        "_unsynced_indexes",
        "epoch_file",
        "marks",
        "recovery_point",
    )

    def __init__(
        self,
        directory: PartitionDir,
        clock: Clock,
        segments: Segments,
        bounds: Bounds,
        epoch_file: LeaderEpochFile,
        snapshots: ProducerSnapshotFiles,
        marks: UnflushedMarks,
        recovery_point: int,
        index_debts: Iterable[Segment] = (),
    ) -> None:
        assert recovery_point <= bounds.log_end_offset
        self._dir = directory
        self._clock = clock
        self._segments = segments
        self._bounds = bounds
        self._snapshots = snapshots
        self.epoch_file = epoch_file
        self.marks = marks
        self.recovery_point = recovery_point
        # Segments that were flushed while active, without their indexes and with reserved blocks, and ended
        # since.
        self._unsynced_indexes = list(index_debts)
        self._last_flush_ms = clock.steady_ms()

    # --- what is durable ------------------------------------------------------------------------------

    @property
    def restart_offset(self) -> int:
        """A restart after a crash recovers from here: above it, records or their indexes may not be
        durable."""
        return min([self.recovery_point, *(segment.base_offset for segment in self._index_debts())])

    @property
    def has_idle_marks(self) -> bool:
        """Whether marks are left that a flush has made obsolete. If a cleaner removed the records before such
        a mark, the mark would be wrong."""
        return bool(self.marks.end_offsets) and bool(self.marks.up_to(self.recovery_point))

    def is_due(self, flush_ms: int) -> bool:
        """Whether flush.ms has passed with something to flush."""
        waited_ms = self._clock.steady_ms() - self._last_flush_ms
        return self._bounds.log_end_offset > self.recovery_point and waited_ms >= flush_ms

    def _index_debts(self) -> list[Segment]:
        if not self._unsynced_indexes:
            return []
        known = self._segments.all()
        return [segment for segment in self._unsynced_indexes if segment in known]

    # --- what changes it ------------------------------------------------------------------------------

    def mark_end(self) -> None:
        """Write a mark before a new segment starts at the log end: records before it may be lost. Raises
        OSError."""
        if self.recovery_point < self._bounds.log_end_offset:
            self.marks.add(self._bounds.log_end_offset)

    def segment_ended(self, segment: Segment) -> None:
        """A segment is no longer active. Flushes so far did not sync its indexes."""
        if self.recovery_point > segment.base_offset:
            self._unsynced_indexes.append(segment)

    def truncated(self, offset: int) -> None:
        """The log was truncated to an offset."""
        self.recovery_point = min(self.recovery_point, offset)

    def restarted(self, offset: int) -> None:
        """The log is empty and starts at an offset."""
        self.recovery_point = offset

    # --- flushes --------------------------------------------------------------------------------------

    def begin_flush(self, up_to: int) -> FlushJob | None:
        """A job that makes the log durable up to an offset; None if it is durable already."""
        if up_to <= self.recovery_point and not self._index_debts() and not self.has_idle_marks:
            return None
        return self._flush_job(up_to, closing=False)

    def begin_close(self, *, sealed: bool) -> FlushJob | None:
        """The job for a clean stop. `sealed`: the active segment may have been appended to."""
        end = self._bounds.log_end_offset
        unsynced = end > 0 and self._dir.has_unsynced_changes
        if sealed or unsynced or self.has_idle_marks or end > self.restart_offset:
            return self._flush_job(end, closing=True)
        epochs = self.epoch_file.take_draft()
        if epochs is None:
            return None
        # No record depends on these epochs, and a torn file is rebuilt from the log: no sync needed.
        return FlushJob(self._dir.disk, self._proof(self.recovery_point), drafts=[epochs])

    def _flush_job(self, up_to: int, *, closing: bool) -> FlushJob:
        """Indexes of the active segment are synced at a clean stop only: recovery rebuilds them.

        Several jobs may be in progress. Each one syncs everything that no finished job has synced.
        """
        try:
            descriptors = []
            debts = self._index_debts()
            for segment in debts:
                # The file too: sealing truncated it to its last batch.
                descriptors += [*segment.flush_indexes(), *segment.to_sync()]
            for segment in self._segments.between(self.recovery_point, up_to):
                if closing or segment is not self._segments.active:
                    descriptors += segment.flush_indexes()
                descriptors += segment.to_sync()
            snapshots = self._snapshots.unsynced()
            paths = [self._snapshots.path(offset) for offset in snapshots]
            if not self.epoch_file.is_durable:
                self.epoch_file.write()
                paths.append(self.epoch_file.path)
        except OSError as e:
            raise self._dir.fail(e, "flushing") from e
        proof = self._proof(up_to)._replace(snapshots=snapshots, indexed=debts, marks=self.marks.up_to(up_to))
        return FlushJob(self._dir.disk, proof, descriptors, paths, self._dir.to_sync())

    def _proof(self, up_to: int) -> FlushProof:
        return FlushProof(up_to, self._bounds.truncations, self._dir.changes, self.epoch_file.epochs.version)

    def finish_flush(self, proof: FlushProof) -> None:
        """A job has run successfully. If the log was truncated since it began, new records may not be
        durable, and the recovery point does not move."""
        if proof.truncations == self._bounds.truncations:
            self.recovery_point = max(self.recovery_point, proof.up_to)
            assert self.recovery_point <= self._bounds.log_end_offset
            if proof.marks:
                self._remove_marks(proof)
        self._dir.synced(proof.changes)
        self.epoch_file.synced(proof.epochs)
        self._snapshots.synced(proof.snapshots)
        if self._unsynced_indexes:
            self._unsynced_indexes = [
                segment for segment in self._index_debts() if segment not in proof.indexed
            ]
        self._last_flush_ms = self._clock.steady_ms()

    def _remove_marks(self, proof: FlushProof) -> None:
        """Marked segments are durable now. If this fails, the result of the flush is still valid."""
        try:
            self.marks.remove(proof.marks)
        except OSError as e:
            self._dir.fail(e, "flushing")
