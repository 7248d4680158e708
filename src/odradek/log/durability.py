"""Making a log durable: what a flush has to sync, where, and what it proves once it has run."""

import logging
import uuid
from collections.abc import Sequence
from typing import Final

from odradek.log.checkpoints import format_epochs, format_partition_metadata
from odradek.log.files import sync_file, write_file
from odradek.log.local_log import FlushJob, FlushProof
from odradek.log.names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from odradek.log.reading import ReadableLog
from odradek.log.segments.segment import Segment
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)

NEVER: Final = (1 << 63) - 1


def sync_topic_id(disk: Disk, path: str) -> None:
    """Make partition.metadata of a log's directory durable, and its name."""
    sync_file(disk, f"{path}/{PARTITION_METADATA}")
    disk.fsync_dir(path)


class DurableLog(ReadableLog):
    """Below `recovery_point` every record is durable, with all that a restart needs to serve it."""

    __slots__ = ()

    def set_topic_id(self, topic_id: uuid.UUID) -> None:
        """Bind the directory to a topic. While it holds no records this need not be durable yet."""
        assert self.topic_id is None, f"{self.path} belongs to topic {self.topic_id}"
        self.check_online()
        path, content = f"{self.path}/{PARTITION_METADATA}", format_partition_metadata(topic_id)
        try:
            write_file(self._disk, path, content, sync=False)
        except OSError as e:
            raise self.fail(e, "naming the topic of") from e
        self.topic_id = topic_id
        self._is_topic_id_durable = False
        if self.segments.size_bytes:
            self.persist_topic_id()

    def mend_topic_id(self, topic_id: uuid.UUID) -> None:
        """The directory's topic id was damaged: write the right one."""
        _log.warning(
            "%s/%s is damaged: it says %s, written anew as %s",
            self.path,
            PARTITION_METADATA,
            self.topic_id,
            topic_id,
        )
        self.topic_id = None
        self.set_topic_id(topic_id)

    @property
    def is_topic_id_durable(self) -> bool:
        return self._is_topic_id_durable

    def persist_topic_id(self) -> None:
        """Make durable whose the directory is, before the first record is written.

        Records may reach the disk at any time, without a sync. What a power loss left of them in a directory
        that does not tell its topic would be taken for records of the next topic of that name.
        """
        try:
            sync_topic_id(self._disk, self.path)
        except OSError as e:
            raise self.fail(e, "naming the topic of") from e
        self._is_topic_id_durable = True

    def topic_id_persisted(self) -> None:
        """`sync_topic_id` has come to its end elsewhere."""
        self._is_topic_id_durable = True

    def _take_snapshot(self, offset: int) -> None:
        newest = self.snapshots.offsets[-1] if self.snapshots.offsets else self.log_start_offset
        if offset > newest:
            self.snapshots.take(self.producers.entries.values(), offset)
            self._changes += 1

    # --- flush.messages -------------------------------------------------------------------------------

    @property
    def flushes_by_count(self) -> bool:
        """Whether acknowledgements may have to wait for a flush (flush.messages)."""
        return self.config.flush_messages < NEVER

    @property
    def settled_offset(self) -> int:
        """Records below may be acknowledged: where flush.messages asks for a flush, that has come so far."""
        if self._due_to <= self.recovery_point:
            return self.log_end_offset
        return max(self._due_from, self.recovery_point)

    def _count_unflushed(self, start: int) -> None:
        """flush.messages are reached by what was appended from `start` on: it waits for a flush.

        The flush is somebody else's, who makes one for all that came meanwhile; where nobody listens, it is
        made here and now.
        """
        if self.on_flush_due is None:
            self.flush()
            return
        if self.log_end_offset - max(self.recovery_point, self._due_to) < self.config.flush_messages:
            return
        if self._due_to <= self.recovery_point:
            self._due_from = start
        self._due_to = self.log_end_offset
        self.on_flush_due(self.topic_partition)

    @property
    def flush_target(self) -> int:
        """How far the next flush has to come: all of it where somebody waits, else the complete segments."""
        if self._due_to > self.recovery_point:
            return self.log_end_offset
        return self.segments.active.base_offset

    @property
    def restart_offset(self) -> int:
        """From here on a restart after a crash must look: records that are not durable, or their indexes."""
        return min([self.recovery_point, *(segment.base_offset for segment in self._index_debts())])

    def _index_debts(self) -> list[Segment]:
        if not self._unsynced_indexes:
            return []
        known = self.segments.all()
        return [segment for segment in self._unsynced_indexes if segment in known]

    # --- flushes --------------------------------------------------------------------------------------

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.ms has passed with something to flush."""
        waited_ms = self._clock.steady_ms() - self.last_flush_ms
        return self.log_end_offset > self.recovery_point and waited_ms >= self.config.flush_ms

    def begin_flush(self, up_to: int | None = None) -> FlushJob | None:
        """What to run, here or elsewhere, to make the log durable up to an offset; None where it is already.

        When it has run, `finish_flush` is told; when it raised, `fail`.
        """
        self.check_online()
        up_to = self.log_end_offset if up_to is None else up_to
        if up_to <= self.recovery_point and not self._index_debts() and not self.has_idle_marks:
            return None
        return self._flush_job(up_to, closing=False)

    def flush(self, up_to: int | None = None) -> None:
        """Make the log durable up to an offset, here and now."""
        job = self.begin_flush(up_to)
        if job is not None:
            self._run(job)

    def _run(self, job: FlushJob) -> None:
        try:
            job.run()
        except OSError as e:
            raise self.fail(e, "flushing") from e
        self.finish_flush(job)

    def _flush_job(self, up_to: int, *, closing: bool) -> FlushJob:
        """The active segment's offset and time indexes matter at a clean stop only: they are rebuilt.

        Several jobs may be under way: each syncs all that no finished one has, and writes nothing itself.
        """
        epochs_written = self._epochs_written
        try:
            descriptors = []
            debts = self._index_debts()
            for segment in debts:
                # The file too: its end was cut back to its last batch when it was sealed.
                descriptors += [*segment.flush_indexes(), *segment.to_sync()]
            for segment in self.segments.between(self.recovery_point, up_to):
                if closing or segment is not self.segments.active:
                    descriptors += segment.flush_indexes()
                descriptors += segment.to_sync()
            snapshots = self.snapshots.unsynced()
            paths = [self.snapshots.path(offset) for offset in snapshots]
            if self._epochs_durable != self.epochs.version:
                for path, content in self._epochs_to_write():
                    write_file(self._disk, path, content, sync=False)
                paths.append(f"{self.path}/{LEADER_EPOCH_CHECKPOINT}")
        except OSError as e:
            self._epochs_written = epochs_written
            raise self.fail(e, "flushing") from e
        directories: list[str] = []
        if self._changes_durable < self._changes:
            directories = [self.path, self.directory] if self._changes_durable == 0 else [self.path]
        marks = [end_offset for end_offset in self._unflushed if end_offset <= up_to]
        proof = self._proof(up_to)._replace(snapshots=snapshots, indexed=debts, marks=marks)
        return FlushJob(self._disk, proof, descriptors, paths, directories)

    def _proof(self, up_to: int) -> FlushProof:
        return FlushProof(up_to, self._truncations, self._changes, self.epochs.version)

    def _epochs_to_write(self) -> list[tuple[str, bytes]]:
        if self._epochs_written == self.epochs.version:
            return []
        self._epochs_written = self.epochs.version
        self._changes += 1
        return [(f"{self.path}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(self.epochs.entries))]

    def _persist_epochs(self) -> None:
        """Write the epochs now, durably: entries are gone that the file must not bring back. Those that come
        to it recovery finds in the batches."""
        if self._epochs_durable != self.epochs.version:
            write_file(
                self._disk, f"{self.path}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(self.epochs.entries)
            )
            self._epochs_written = self._epochs_durable = self.epochs.version

    def finish_flush(self, job: FlushJob) -> None:
        """A job has run to its end. What was truncated meanwhile may have been written anew, undurably."""
        proof = job.proof
        settled = self.settled_offset
        if proof.truncations == self._truncations:
            self.recovery_point = max(self.recovery_point, proof.up_to)
            assert self.recovery_point <= self.log_end_offset
            if proof.marks:
                self._forget_marks(proof.marks)
        self._changes_durable = max(self._changes_durable, proof.changes)
        self._epochs_durable = max(self._epochs_durable, proof.epochs)
        self.snapshots.synced(proof.snapshots)
        if self._unsynced_indexes:
            known = self.segments.all()
            self._unsynced_indexes = [
                segment
                for segment in self._unsynced_indexes
                if segment in known and segment not in proof.indexed
            ]
        self.last_flush_ms = self._clock.steady_ms()
        if self.on_settled is not None and self.settled_offset != settled:
            self.on_settled()

    @property
    def has_idle_marks(self) -> bool:
        """Whether marks could not be removed yet that a flush has made void. A cleaner that takes the records
        before one would make them lie."""
        return any(end_offset <= self.recovery_point for end_offset in self._unflushed)

    def _forget_marks(self, marks: Sequence[int]) -> None:
        """Segments that were marked are durable now. What the flush proved holds even where this fails."""
        try:
            self._unmark(marks)
        except OSError as e:
            self.fail(e, "flushing")

    def begin_close(self) -> FlushJob | None:
        """Prepare a clean stop; gives what is left to write. Nothing may be appended any more."""
        self.check_online()
        try:
            sealed = self.segments.active.seal_if_open()
            self._take_snapshot(self.log_end_offset)
        except OSError as e:
            raise self.fail(e, "closing") from e
        unsettled = self.log_end_offset > 0 and self._changes_durable < self._changes
        if sealed or unsettled or self.has_idle_marks or self.log_end_offset > self.restart_offset:
            return self._flush_job(self.log_end_offset, closing=True)
        epochs = self._epochs_to_write()
        if not epochs:
            return None
        # No record hangs on these epochs, and a torn file is rebuilt from the log: nothing to sync.
        return FlushJob(self._disk, self._proof(self.recovery_point), drafts=epochs)
