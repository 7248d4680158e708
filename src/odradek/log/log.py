"""The log of one partition, as the rest of the node knows it: opened, read, appended to, cut at both ends.

Reading, appending and durability have their own files below; this one opens, shortens and ends a log. One
owner calls it from one thread; only what `begin_flush` and `begin_close` give may run elsewhere.
"""

import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.log import retention
from odradek.log.appending import AppendableLog, AppendInfo
from odradek.log.files import FilePool
from odradek.log.opening.loader import load, load_producers
from odradek.log.opening.steps import Steps, run_here
from odradek.log.reading import FetchInfo, Isolation
from odradek.log.segments.segment import Segment
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig
    from odradek.log.cleaning.job import Replacement

__all__ = ["AppendInfo", "FetchInfo", "Isolation", "Log"]


class Log(AppendableLog):
    __slots__ = ()

    @classmethod
    def open(
        cls,
        runtime: Runtime,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: "TopicConfig",
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        cleaned_offset: int | None = None,
        clean_shutdown: bool = False,
        producer_id_expiration_ms: int | None = None,
        pool: FilePool | None = None,
    ) -> "Log":
        """Open the log in a directory, or begin one; an unclean stop is recovered from `recovery_point` on.

        The topic id in the directory counts; the given one is written where there is none. Raises OSError
        and, where the log failed once it was made, StorageError.
        """
        return run_here(
            cls.opening(
                runtime,
                path,
                topic_partition,
                topic_id,
                config,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                high_watermark=high_watermark,
                cleaned_offset=cleaned_offset,
                clean_shutdown=clean_shutdown,
                producer_id_expiration_ms=producer_id_expiration_ms,
                pool=pool,
            )
        )

    @classmethod
    def opening(
        cls,
        runtime: Runtime,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: "TopicConfig",
        *,
        recovery_point: int,
        log_start_offset: int,
        high_watermark: int,
        cleaned_offset: int | None,
        clean_shutdown: bool,
        producer_id_expiration_ms: int | None,
        pool: FilePool | None,
        progress: Callable[[int], None] | None = None,
    ) -> "Steps[Log]":
        """`open` in steps; `progress` is told of the bytes that were recovered."""
        pool = pool or FilePool(runtime.disk)
        loaded = yield from load(
            pool,
            path,
            config,
            runtime.clock.now_ms(),
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean_shutdown=clean_shutdown,
            producer_id_expiration_ms=producer_id_expiration_ms,
            progress=progress,
        )
        log = cls(
            runtime,
            pool,
            path,
            topic_partition,
            loaded.topic_id,
            config,
            loaded.segments,
            log_start_offset=loaded.log_start_offset,
            log_end_offset=loaded.log_end_offset,
            recovery_point=loaded.recovery_point,
            high_watermark=high_watermark,
            epochs=loaded.epochs,
            producers=loaded.producers,
            snapshots=loaded.snapshots,
        )
        log.cleaned_offset = cleaned_offset
        log._unflushed = loaded.unflushed
        log._unsynced_indexes = loaded.index_debts
        log.segments.active.roll_jitter_ms = log._draw_jitter_ms()
        if loaded.settled:
            log._changes_durable = log._changes
        elif log.flushes_by_count and (job := log.begin_flush()) is not None:
            # What is here may be acknowledged now, to a producer that sends it once more.
            yield job.run
            log.finish_flush(job)
        if loaded.topic_id is None and topic_id is not None:
            log.set_topic_id(topic_id)
        return log

    # --- where the log begins and ends ----------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> bool:
        """Records below an offset are gone. Raises OFFSET_OUT_OF_RANGE beyond the high watermark."""
        self.check_online()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} "
                f"since it is larger than the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.high_watermark_moved(offset)
        self._update_unstable_offset()
        self._check_invariants()
        return True

    def retain(self, now_ms: int) -> int:
        """Delete the segments that retention.ms, retention.bytes and the log start leave behind; how many."""
        self.check_online()
        try:
            gone = retention.breached(self, now_ms)
            if not gone:
                return 0
            if len(gone) == len(self.segments):
                self._roll_at(self.log_end_offset)
        except OSError as e:
            raise self.fail(e, "deleting old segments of") from e
        following = self.segments.after(gone[-1])
        assert following is not None
        self.increment_log_start_offset(following.base_offset)
        try:
            snapshots = [self.snapshots.set_aside(segment.base_offset) for segment in gone]
            self._remove_segments(gone, [path for path in snapshots if path is not None])
        except OSError as e:
            raise self.fail(e, "deleting old segments of", halfway=True) from e
        return len(gone)

    def truncate_to(self, offset: int) -> bool:
        """Drop the records at and above an offset, durably; False where there are none.

        A batch goes as a whole: the log ends where the one began that holds the offset. What is dropped must
        not come back after a crash, behind the records that take its place, nor the epochs it had, nor what
        was said of its durability.
        """
        self.check_online()
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        was_durable = self.restart_offset
        try:
            gone = [segment for segment in self.segments.all() if segment.base_offset > offset]
            if gone:
                self.segments.remove(gone)
                for segment in gone:
                    segment.unlink()
            self.snapshots.remove_outside(min(self.log_start_offset, offset), offset)
            self._unmark([end_offset for end_offset in self._unflushed if end_offset > offset])
            self._void_cleaning()
            self._disk.fsync_dir(self.path)
            offset = self.segments.active.truncate_to(offset, self._clock.now_ms())
            self._note_truncation(offset)
            self.log_end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
            self._due_from, self._due_to = min(self._due_from, offset), min(self._due_to, offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self.epochs.truncate_from_end(offset)
            self._persist_epochs()
            load_producers(self.producers, self.snapshots, self.segments, self.log_start_offset, offset)
        except OSError as e:
            raise self.fail(e, "truncating", halfway=True) from e
        self._set_high_watermark(min(self.high_watermark, offset))
        self._update_unstable_offset()
        self._check_invariants()
        self._tell_truncation(was_durable)
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets the offset."""
        self.check_online()
        was_durable = self.restart_offset
        try:
            gone = self.segments.all()
            for segment in gone:
                segment.unlink()
            self.segments.replace_all(self._new_segment(offset))
            self.snapshots.remove_outside(offset, offset)
            self._unmark(self._unflushed)
            self._void_cleaning()
            self._disk.fsync_dir(self.path)
            self.epochs.clear()
            self._persist_epochs()
        except OSError as e:
            raise self.fail(e, "truncating", halfway=True) from e
        self._note_truncation(offset)
        self.producers.load([], offset)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self._due_from = self._due_to = offset
        self._set_high_watermark(offset)
        self._update_unstable_offset()
        self._check_invariants()
        self._tell_truncation(was_durable)

    def _tell_truncation(self, was_durable: int) -> None:
        """A checkpoint may say more of the log than holds now: of segments that it has no more, and may have
        again before the next checkpoint, with records that are not durable."""
        if self.on_truncated is not None and self.restart_offset < was_durable:
            self.on_truncated(self.topic_partition)

    def _note_truncation(self, offset: int) -> None:
        self._truncations += 1
        self._bound = self._newest = None
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, offset)

    # --- compaction -----------------------------------------------------------------------------------

    @property
    def truncations(self) -> int:
        """How often the end was cut off: what was prepared before a truncation is void after it."""
        return self._truncations

    def begin_swap(self, replacement: "Replacement") -> Segment | None:
        """Let a cleaned segment stand for others from now on; None where they are not all there any more.

        It keeps its .swap names, by which a restart would put it in place, until the directory was synced:
        only then is it sure that those it replaces do not come back beside it.
        """
        self.check_online()
        wanted = frozenset(replacement.replaced)
        gone = [segment for segment in self.segments.all() if segment.base_offset in wanted]
        if len(gone) != len(wanted) or self.segments.active in gone:
            return None
        try:
            snapshots = [
                self.snapshots.set_aside(old.base_offset)
                for old in gone
                if old.base_offset != replacement.base_offset
            ]
            base_offset, size, has_txn_index, _ = replacement
            paths = [path for path in snapshots if path is not None]
            segment = self._swap_in(base_offset, size, has_txn_index, gone, paths)
        except OSError as e:
            raise self.fail(e, "replacing segments of", halfway=True) from e
        self._bound = self._newest = None
        return segment

    def finish_swap(self, segment: Segment) -> None:
        """The directory was synced since the swap began."""
        self.check_online()
        if segment in self.segments.all():
            try:
                segment.take_place()
            except OSError as e:
                raise self.fail(e, "replacing segments of", halfway=True) from e
            self._changes += 1

    def cleaning_discarded(self) -> None:
        """Files of a cleaning are gone, but not durably so: the next flush sees to it."""
        self._changes += 1

    # --- the end --------------------------------------------------------------------------------------

    def close(self, clean: bool = True) -> None:
        """Give the files up. Closed cleanly, everything is durable and the next start need not look."""
        if clean and self.failure is None:
            job = self.begin_close()
            if job is not None:
                self._run(job)
        for segment in self.segments.all():
            segment.close()

    def move(self, path: str) -> None:
        """Rename the directory; whoever reads from it reads on."""
        try:
            self._disk.rename(self.path, path)
        except OSError as e:
            raise self.fail(e, "renaming") from e
        self.path = path
        self.snapshots.directory = path
        for segment in self.segments.all():
            segment.moved(path)

    def let_go(self) -> None:
        """Give the files up, before the directory is removed with everything in it."""
        for segment in self.segments.all():
            segment.let_go()
