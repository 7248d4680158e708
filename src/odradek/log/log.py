"""The log of one partition, as the rest of the node knows it: opened, read, appended to, cut at both ends.

A log has parts, each with its own state and file. This one puts them together and does what concerns several
of them. One owner calls a log from one thread; only the jobs of `begin_flush` and `begin_close` may run
elsewhere.
"""

import uuid
from collections.abc import Callable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.core.types import Buffer, TopicPartition
from odradek.log import lookup, retention
from odradek.log.files import FilePool
from odradek.log.opening.loader import LoadedLog, load
from odradek.log.opening.steps import Steps, run_here
from odradek.log.parts.appending import Appender, AppendInfo
from odradek.log.parts.bounds import Bounds, Isolation
from odradek.log.parts.compaction import Compaction
from odradek.log.parts.durability import Durability
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.parts.epoch_file import LeaderEpochFile
from odradek.log.parts.flush_job import FlushJob
from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.log_config import LogConfig
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.partition_metadata import PartitionMetadataFile
from odradek.log.parts.reading import BatchReader, FetchInfo
from odradek.log.parts.rolling import Roller
from odradek.log.parts.settling import Settling
from odradek.log.parts.truncating import Truncator
from odradek.log.parts.unflushed_marks import UnflushedMarks
from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState
from odradek.log.segments.segments import Segments
from odradek.records.check import CheckedRecords
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

__all__ = ["AppendInfo", "FetchInfo", "Isolation", "Log"]


def _part(path: str) -> Any:
    """A value of a part, to be read only. It costs no Python call, as the request path asks for."""
    return property(attrgetter(path))


class Log:
    """The records of a partition, in the order of their offsets."""

    __slots__ = (
        "_appender",
        "_config",
        "_reader",
        "bounds",
        "compaction",
        "durability",
        "epochs",
        "local_log",
        "metadata",
        "partition_dir",
        "producers",
        "roller",
        "segments",
        "settling",
        "snapshots",
        "topic_partition",
        "truncator",
    )

    log_start_offset: int = _part("bounds.log_start_offset")
    last_stable_offset: int = _part("bounds.last_stable_offset")
    high_watermark: int = _part("bounds.high_watermark")
    log_end_offset: int = _part("bounds.log_end_offset")
    truncations: int = _part("bounds.truncations")
    recovery_point: int = _part("durability.recovery_point")
    settled_offset: int = _part("settling.settled_offset")
    flushes_by_count: bool = _part("settling.flushes_by_count")
    cleaned_offset: int | None = _part("compaction.cleaned_offset")
    being_cleaned: bool = _part("compaction.being_cleaned")
    appended_bytes: int = _part("_appender.appended_bytes")
    config: "TopicConfig" = _part("_config.topic")
    failure: StorageError | None = _part("partition_dir.failure")
    path: str = _part("partition_dir.path")
    directory: str = _part("partition_dir.log_dir")
    topic_id: uuid.UUID | None = _part("metadata.topic_id")
    size_bytes: int = _part("segments.size_bytes")
    latest_epoch: int = _part("epochs.latest")

    def __init__(
        self,
        runtime: Runtime,
        directory: PartitionDir,
        config: "TopicConfig",
        loaded: LoadedLog,
        high_watermark: int,
        cleaned_offset: int | None,
    ) -> None:
        clock = runtime.clock
        self._config = LogConfig(config)
        self.topic_partition = directory.topic_partition
        self.partition_dir = directory
        self.segments: Segments = loaded.segments
        self.epochs: EpochCache = loaded.epochs
        self.producers: ProducerState = loaded.producers
        self.snapshots: ProducerSnapshotFiles = loaded.snapshots
        self.metadata = PartitionMetadataFile(directory, self.segments, loaded.topic_id)
        self.bounds = Bounds(self.producers, loaded.log_start_offset, loaded.log_end_offset, high_watermark)
        self.local_log = LocalLog(runtime, directory, self._config, self.segments)
        self.durability = Durability(
            directory,
            clock,
            self.segments,
            self.bounds,
            LeaderEpochFile(directory, self.epochs),
            self.snapshots,
            UnflushedMarks(directory, loaded.unflushed),
            loaded.recovery_point,
            loaded.index_debts,
        )
        self.settling = Settling(self._config, self.segments, self.bounds, self.durability)
        self.roller = Roller(
            directory, self.local_log, self.bounds, self.durability, self.producers, self.snapshots
        )
        self._reader = BatchReader(directory, self._config, self.segments, self.bounds)
        self._appender = Appender(
            directory,
            clock,
            self._config,
            self.segments,
            self.bounds,
            self.epochs,
            self.producers,
            self.roller,
            self._reader,
        )
        self.compaction = Compaction(directory, self.local_log, self.snapshots, self._reader, cleaned_offset)
        self.truncator = Truncator(
            directory,
            self.local_log,
            self.bounds,
            self.durability,
            self.settling,
            self.producers,
            self.snapshots,
            self._reader,
            self.compaction,
        )

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
        """`open` in steps; `progress` gets the number of bytes that were recovered."""
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
        directory = PartitionDir(pool, path, topic_partition)
        log = cls(runtime, directory, config, loaded, high_watermark, cleaned_offset)
        if loaded.is_dir_durable:
            directory.synced(directory.changes)
        elif log.flushes_by_count and (job := log.begin_flush()) is not None:
            # What is here may be acknowledged now, to a producer that sends it once more.
            yield job.run
            log.finish_flush(job)
        if loaded.topic_id is None and topic_id is not None:
            log.metadata.write(topic_id)
        return log

    # --- the directory --------------------------------------------------------------------------------

    def fail(self, error: OSError, doing: str, *, halfway: bool = False) -> KafkaError:
        """The disk failed: see `PartitionDir.fail`."""
        return self.partition_dir.fail(error, doing, halfway=halfway)

    def check_online(self) -> None:
        """Raises StorageError."""
        self.partition_dir.check_online()

    def update_config(self, config: "TopicConfig") -> None:
        """Take a topic's new settings; the active segment keeps the index sizes it was made with."""
        self._config.update(config)

    # --- appending ------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        sets: Sequence[CheckedRecords],
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendInfo | KafkaError]:
        """Give offsets to sets of checked batches and write those that are accepted, all with one call.

        A refused set leaves no trace. Raises StorageError when the disk fails, ExhaustedError when
        descriptors or memory have run out: then none counts as appended.
        """
        directory, bounds = self.partition_dir, self.bounds
        if directory.failure is not None:
            raise directory.failure
        if not self.metadata.is_durable:
            self.metadata.persist()
        start = bounds.log_end_offset
        try:
            results = self._appender.append(sets, leader_epoch, origin, transaction_version)
        except OSError as e:
            raise directory.fail(e, "appending records to") from e
        if bounds.log_end_offset - self.durability.recovery_point >= self._config.topic.flush_messages:
            self._flush_appended(start)
        return results

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Take over batches as the leader placed them; a partial one at the end is left out.

        Raises CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE where they do not follow the log end, StorageError.
        """
        self.check_online()
        if not self.metadata.is_durable:
            self.metadata.persist()
        start = self.bounds.log_end_offset
        try:
            info = self._appender.take_over(records)
        except OSError as e:
            raise self.fail(e, "appending records to") from e
        if self.bounds.log_end_offset - self.durability.recovery_point >= self._config.topic.flush_messages:
            self._flush_appended(start)
        return info

    def _flush_appended(self, start: int) -> None:
        """flush.messages are not durable, with those that were appended from `start` on.

        The listener makes one flush for all that came meanwhile; without a listener it is made here and now.
        """
        on_flush_due = self.settling.on_flush_due
        if on_flush_due is None:
            self.flush()
        elif self.settling.await_flush(start):
            on_flush_due(self.topic_partition)

    def roll(self) -> None:
        """Begin a new segment at the log end."""
        self.check_online()
        self.roller.roll_at(self.bounds.log_end_offset)

    # --- reading --------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool = True
    ) -> FetchInfo:
        """Batches from the one that holds an offset on, up to what the isolation lets be seen.

        At least one whole batch when `min_one_message`, else perhaps less. Raises OFFSET_OUT_OF_RANGE.
        """
        directory = self.partition_dir
        if directory.failure is not None:
            raise directory.failure
        try:
            return self._reader.read(offset, max_bytes, isolation, min_one_message)
        except OSError as e:
            raise directory.fail(e, "reading from") from e

    def bound(self, isolation: Isolation) -> int:
        """The first offset that a reader may not see."""
        return self.bounds.of(isolation)

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see further; True when it moved. It never goes back."""
        return self.bounds.advance_high_watermark(offset)

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

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(newest epoch at or before the asked one, where it ends); -1 for both where unknown."""
        return self.epochs.end_offset_for(epoch, self.bounds.log_end_offset)

    # --- flushes --------------------------------------------------------------------------------------

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.ms has passed with something to flush."""
        return self.durability.is_due(self._config.topic.flush_ms)

    def begin_flush(self, up_to: int | None = None) -> FlushJob | None:
        """What to run, here or elsewhere, to make the log durable up to an offset; None where it is already.

        When it has run, `finish_flush` follows; when it raised, `fail`.
        """
        self.check_online()
        return self.durability.begin_flush(self.bounds.log_end_offset if up_to is None else up_to)

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

    def finish_flush(self, job: FlushJob) -> None:
        """A job has run to its end."""
        settled = self.settling.settled_offset
        self.durability.finish_flush(job.proof)
        self.settling.moved_from(settled)

    def begin_close(self) -> FlushJob | None:
        """Prepare a clean stop; gives what is left to write. Nothing may be appended any more."""
        self.check_online()
        try:
            sealed = self.segments.active.seal_if_open()
            self.roller.take_snapshot(self.bounds.log_end_offset)
        except OSError as e:
            raise self.fail(e, "closing") from e
        return self.durability.begin_close(sealed=sealed)

    # --- where the log begins and ends ----------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> bool:
        """Records below an offset are gone. Raises OFFSET_OUT_OF_RANGE beyond the high watermark."""
        self.check_online()
        if offset > self.bounds.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} "
                f"since it is larger than the high watermark {self.bounds.high_watermark}",
            )
        if offset <= self.bounds.log_start_offset:
            return False
        self.bounds.advance_log_start(offset)
        self.epochs.truncate_from_start(offset)
        return True

    def retain(self, now_ms: int) -> int:
        """Delete the segments that retention.ms, retention.bytes and the log start leave behind; how many."""
        self.check_online()
        try:
            gone = retention.breached(self, now_ms)
            if not gone:
                return 0
            if len(gone) == len(self.segments):
                self.roller.roll_at(self.bounds.log_end_offset)
        except OSError as e:
            raise self.fail(e, "deleting old segments of") from e
        following = self.segments.after(gone[-1])
        assert following is not None
        self.increment_log_start_offset(following.base_offset)
        try:
            snapshots = [self.snapshots.set_aside(segment.base_offset) for segment in gone]
            self.local_log.remove(gone, [path for path in snapshots if path is not None])
        except OSError as e:
            raise self.fail(e, "deleting old segments of", halfway=True) from e
        return len(gone)

    def truncate_to(self, offset: int) -> bool:
        """Drop the records at and above an offset, durably; False where there are none.

        A batch goes as a whole: the log ends where the one began that holds the offset.
        """
        self.check_online()
        return self.truncator.truncate_to(offset)

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets the offset."""
        self.check_online()
        self.truncator.restart_at(offset)

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
        """Rename the directory; reads under way go on."""
        self.partition_dir.rename(path)
        self.snapshots.directory = path
        for segment in self.segments.all():
            segment.moved(path)

    def let_go(self) -> None:
        """Give the files up, before the directory is removed with everything in it."""
        for segment in self.segments.all():
            segment.let_go()

    def purge_deleted(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose delay has passed, here and now. Raises OSError."""
        self.local_log.purge_deleted(now_ms)
