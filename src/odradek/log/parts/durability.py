"""Making a log durable: what a flush has to sync, where, and what it proves once it has run."""

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
    """Below `recovery_point` every record is durable. Below `restart_offset` so are the indexes: a restart
    need not look at them."""

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
        # Flushed while they were active, without their indexes and with blocks asked for ahead; ended since.
        self._unsynced_indexes = list(index_debts)
        self._last_flush_ms = clock.steady_ms()

    # --- what is durable ------------------------------------------------------------------------------

    @property
    def restart_offset(self) -> int:
        """From here on a restart after a crash must look: records that are not durable, or their indexes."""
        return min([self.recovery_point, *(segment.base_offset for segment in self._index_debts())])

    @property
    def has_idle_marks(self) -> bool:
        """Whether marks could not be removed yet that a flush has made void. A cleaner that takes the records
        before one would make them lie."""
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
        """Note on disk, before a new segment begins at the log end, that what is before it may be lost.
        Raises OSError."""
        if self.recovery_point < self._bounds.log_end_offset:
            self.marks.add(self._bounds.log_end_offset)

    def segment_ended(self, segment: Segment) -> None:
        """A segment is active no more. What a flush made durable of it was without its indexes."""
        if self.recovery_point > segment.base_offset:
            self._unsynced_indexes.append(segment)

    def truncated(self, offset: int) -> None:
        """Below an offset all is as it was."""
        self.recovery_point = min(self.recovery_point, offset)

    def restarted(self, offset: int) -> None:
        """The log is empty and begins at an offset."""
        self.recovery_point = offset

    # --- flushes --------------------------------------------------------------------------------------

    def begin_flush(self, up_to: int) -> FlushJob | None:
        """What to run to make the log durable up to an offset; None where it is already."""
        if up_to <= self.recovery_point and not self._index_debts() and not self.has_idle_marks:
            return None
        return self._flush_job(up_to, closing=False)

    def begin_close(self, *, sealed: bool) -> FlushJob | None:
        """What is left to write at a clean stop; `sealed`: the active segment may have been appended to."""
        end = self._bounds.log_end_offset
        unsynced = end > 0 and self._dir.has_unsynced_changes
        if sealed or unsynced or self.has_idle_marks or end > self.restart_offset:
            return self._flush_job(end, closing=True)
        epochs = self.epoch_file.take_draft()
        if epochs is None:
            return None
        # No record hangs on these epochs, and a torn file is rebuilt from the log: nothing to sync.
        return FlushJob(self._dir.disk, self._proof(self.recovery_point), drafts=[epochs])

    def _flush_job(self, up_to: int, *, closing: bool) -> FlushJob:
        """The active segment's offset and time indexes matter at a clean stop only: they are rebuilt.

        Several jobs may be under way: each syncs all that no finished one has, and writes nothing itself.
        """
        try:
            descriptors = []
            debts = self._index_debts()
            for segment in debts:
                # The file too: its end was cut back to its last batch when it was sealed.
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
        """A job has run to its end. What was truncated meanwhile may have been written again, undurably."""
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
        """Segments that were marked are durable now. What the flush proved holds even where this fails."""
        try:
            self.marks.remove(proof.marks)
        except OSError as e:
            self._dir.fail(e, "flushing")
