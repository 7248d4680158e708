"""Log: the log of one partition. It is opened, read, appended to, truncated, and its old segments are
deleted.

A log has parts, each with its own state and file. This file combines them and does what involves several
parts. One owner uses a log from one thread. Only the jobs of `begin_flush` and `begin_close`, and the syncs
of a truncation, may run in other threads.
"""

import uuid
from collections.abc import Callable, Sequence
from functools import partial
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
from odradek.records.header import MAX_INT32
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

__all__ = ["AppendInfo", "FetchInfo", "Isolation", "Log"]


def _part(path: str) -> Any:
    """A read-only property of a part. Reading it makes no Python call, which matters on the request path."""
    return property(attrgetter(path))


def _truncating(topic_partition: TopicPartition) -> KafkaError:
    """A replica may be elected while it truncates: it cannot lead yet, and the client tries again."""
    return KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"{topic_partition} is truncating")


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
        "on_log_start_moved",
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
    is_truncating: bool = _part("truncator.is_truncating")
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
        self.on_log_start_moved: Callable[[], None] | None = None
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
        """Open the log in a directory, or create one. After an unclean stop it is recovered from
        `recovery_point`.

        The topic id in the directory has precedence. The given one is written if there is none. Raises
        OSError, and StorageError if the log fails after it was created.
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
        """`open` in steps. `progress` gets the number of recovered bytes."""
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
            # A producer that repeats a batch of this log gets an acknowledgement now, so it must be durable.
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
        """Apply new settings of the topic. The active segment keeps its index sizes."""
        self._config.update(config)

    # --- appending ------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        sets: Sequence[CheckedRecords],
        leader_epoch: int,
        origin: AppendOrigin = AppendOrigin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendInfo | KafkaError]:
        """Assign offsets to sets of checked batches, and write the accepted ones with one call.

        A refused set changes nothing. Raises StorageError if the disk fails, ExhaustedError if descriptors or
        memory run out: then no set counts as appended.
        """
        directory, bounds = self.partition_dir, self.bounds
        if directory.failure is not None:
            raise directory.failure
        if self.truncator.is_truncating:
            raise _truncating(self.topic_partition)
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

    def append_as_follower(self, records: Buffer, leader_epoch: int = MAX_INT32) -> AppendInfo:
        """Append batches with the offsets of the leader, which is at `leader_epoch`. A partial batch at the
        end is ignored.

        Raises CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE if they do not follow the log end, StorageError. A caller
        that truncates waits for the end of it.
        """
        self.check_online()
        assert not self.truncator.is_truncating, f"{self.topic_partition} is truncating"
        if not self.metadata.is_durable:
            self.metadata.persist()
        start = self.bounds.log_end_offset
        try:
            info = self._appender.take_over(records, leader_epoch)
        except OSError as e:
            raise self.fail(e, "appending records to") from e
        if self.bounds.log_end_offset - self.durability.recovery_point >= self._config.topic.flush_messages:
            self._flush_appended(start)
        return info

    def _flush_appended(self, start: int) -> None:
        """flush.messages is reached by the records appended from `start`: flush.

        The listener makes one flush for all appends until then. Without a listener, flush now.
        """
        on_flush_due = self.settling.on_flush_due
        if on_flush_due is None:
            self.flush()
        elif self.settling.await_flush(start):
            on_flush_due(self.topic_partition)

    def roll(self) -> None:
        """Start a new segment at the log end."""
        self.check_online()
        self.roller.roll_at(self.bounds.log_end_offset)

    # --- reading --------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool = True
    ) -> FetchInfo:
        """Batches from the one that contains an offset, up to the bound of the isolation.

        At least one complete batch with `min_one_message`, otherwise possibly less. Raises
        OFFSET_OUT_OF_RANGE.
        """
        directory = self.partition_dir
        if directory.failure is not None:
            raise directory.failure
        if self.truncator.is_truncating:
            raise _truncating(self.topic_partition)
        try:
            return self._reader.read(offset, max_bytes, isolation, min_one_message)
        except OSError as e:
            raise directory.fail(e, "reading from") from e

    def bound(self, isolation: Isolation) -> int:
        """The first offset that a reader of this isolation does not see."""
        return self.bounds.of(isolation)

    def advance_high_watermark(self, offset: int) -> bool:
        """Advance the high watermark. Returns whether it moved. It never goes back."""
        return self.bounds.advance_high_watermark(offset)

    def offset_for_timestamp(
        self, timestamp: int, start_offset: int = 0
    ) -> lookup.TimestampOffset | lookup.BatchSearch | None:
        """The first record at or after a timestamp, or the answer for a special timestamp of ListOffsets. If
        it takes long to search a batch, returns the search instead."""
        self.check_online()
        try:
            return lookup.offset_for_timestamp(self, timestamp, start_offset)
        except OSError as e:
            raise self.fail(e, "looking up a timestamp in") from e

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(newest epoch at or before the given one, its end offset); -1 for both if unknown."""
        return self.epochs.end_offset_for(epoch, self.bounds.log_end_offset)

    # --- flushes --------------------------------------------------------------------------------------

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.ms has passed with something to flush."""
        return self.durability.is_due(self._config.topic.flush_ms)

    def begin_flush(self, up_to: int | None = None) -> FlushJob | None:
        """A job that makes the log durable up to an offset; None if it is durable already.

        The job may run in another thread. Call `finish_flush` after it has run, or `fail` if it raised.
        """
        self.check_online()
        if self.truncator.is_truncating:
            return None  # what is left of the log is synced
        return self.durability.begin_flush(self.bounds.log_end_offset if up_to is None else up_to)

    def flush(self, up_to: int | None = None) -> None:
        """Make the log durable up to an offset, synchronously."""
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
        """A job has run successfully."""
        settled = self.settling.settled_offset
        self.durability.finish_flush(job.proof)
        self.settling.moved_from(settled)

    def begin_close(self) -> FlushJob | None:
        """Prepare a clean stop. Returns the remaining job. After this nothing may be appended."""
        self.check_online()
        try:
            sealed = self.segments.active.seal_if_open()
            self.roller.take_snapshot(self.bounds.log_end_offset)
        except OSError as e:
            raise self.fail(e, "closing") from e
        return self.durability.begin_close(sealed=sealed)

    # --- start and end of the log ---------------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> bool:
        """Delete the records below an offset. Raises OFFSET_OUT_OF_RANGE above the high watermark."""
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
        if self.on_log_start_moved is not None:
            self.on_log_start_moved()
        return True

    def retain(self, now_ms: int) -> int:
        """Delete segments beyond retention.ms and retention.bytes, or below the log start. Returns how
        many."""
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
        """Remove the records at and above an offset, durably, and the epochs that start there. Returns False
        if there are no such records.

        Batches are removed as a whole: the log then ends at the start of the batch that contains the offset.
        """
        self.check_online()
        return self.truncator.truncate_to(offset)

    def begin_truncation(self, offset: int) -> Reply[None]:
        """`truncate_to` with its syncs in other threads, together with those of other logs. The log ends at
        the right offset at once, but it is truncating until the reply is ready, and the reply fails with
        StorageError. If a truncation is in progress already, this one follows it."""
        self.check_online()
        beside = self.truncator.beside
        if beside is None:
            self.truncator.truncate_to(offset)
            return Reply(None)
        return beside(self, partial(self.truncator.cutting, offset))

    def begin_restart(self, offset: int) -> Reply[None]:
        """`truncate_fully_and_start_at` in the same way."""
        self.check_online()
        beside = self.truncator.beside
        if beside is None:
            self.truncator.restart_at(offset)
            return Reply(None)
        return beside(self, partial(self.truncator.restarting, offset))

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Remove all records. The next record gets the given offset."""
        self.check_online()
        self.truncator.restart_at(offset)

    # --- the end --------------------------------------------------------------------------------------

    def close(self, clean: bool = True) -> None:
        """Close the files. After a clean close everything is durable, and the next start needs no
        recovery."""
        if clean and self.failure is None:
            job = self.begin_close()
            if job is not None:
                self._run(job)
        for segment in self.segments.all():
            segment.close()

    def move(self, path: str) -> None:
        """Rename the directory. Reads in progress continue."""
        self.partition_dir.rename(path)
        self.snapshots.directory = path
        for segment in self.segments.all():
            segment.moved(path)

    def let_go(self) -> None:
        """Close the files before the directory is removed."""
        for segment in self.segments.all():
            segment.let_go()

    def purge_deleted(self, now_ms: int) -> None:
        """Remove the files of deleted segments whose delay has passed, synchronously. Raises OSError."""
        self.local_log.purge_deleted(now_ms)
