"""LogManager: opens, creates, deletes and maintains all logs of a node.

It starts nothing periodic by itself: the node calls the `tick_` and `checkpoint_` functions when they are
due.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.errors import ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.checkpoints import is_damaged_topic_id
from odradek.log.files import MAX_DESCRIPTORS, FilePool
from odradek.log.log import Log
from odradek.log.managing.checkpointing import Checkpointer
from odradek.log.managing.deleting import Deleter
from odradek.log.managing.disk_work import DiskWork
from odradek.log.managing.flushing import Flusher
from odradek.log.managing.log_dir import DirectoryInUseError, DuplicateLogError, LogDir
from odradek.log.managing.log_dirs import LogDirs
from odradek.log.managing.topic_ids import TopicIdSyncer
from odradek.log.managing.truncating import Truncations
from odradek.log.opening.starting import FoundLog, Recovery, find_logs, open_logs
from odradek.log.opening.steps import run_here
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import FEW, STEP, Paced, Slices

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

__all__ = ["DirectoryInUseError", "LogDirInfo", "LogManager"]

_log = logging.getLogger(__name__)

_LOGS_PER_TURN: Final = 64
_DELETED: Final = 400  # calls; most of the time goes to the disk

IsStray = Callable[[TopicPartition, uuid.UUID | None], bool]


def _no_stray(topic_partition: TopicPartition, topic_id: uuid.UUID | None) -> bool:
    return False


class LogDirInfo(NamedTuple):
    """A log directory as DescribeLogDirs shows it."""

    path: str
    directory_id: uuid.UUID | None
    failure: StorageError | None
    total_bytes: int
    usable_bytes: int
    sizes: list[tuple[TopicPartition, int]]


def _is_of(log: Log, topic_id: uuid.UUID) -> bool:
    """Whether a log belongs to this topic, by the topic id in its directory."""
    own = log.topic_id
    return own is None or own == topic_id or is_damaged_topic_id(own, topic_id)


class LogManager:
    """The logs of a node's directories, by partition."""

    def __init__(
        self,
        runtime: Runtime,
        log_dirs: Sequence[str],
        *,
        producer_id_expiration_ms: int = 86_400_000,
        max_descriptors: int = MAX_DESCRIPTORS,
        max_held_descriptors: int = MAX_DESCRIPTORS,
        slices: Slices | None = None,
    ) -> None:
        self._runtime = runtime
        self._disk = runtime.disk
        self.slices = slices or Slices()
        self.dirs = LogDirs(runtime.disk, log_dirs)
        self.directories = self.dirs.directories
        self.logs = self.dirs.logs
        self.work = DiskWork(runtime)
        self.checkpointer = Checkpointer(runtime.disk, self.dirs, self.work, self.slices)
        self.flusher = Flusher(self.dirs, self.work, self.checkpointer)
        self.truncations = Truncations(self.dirs, self.work, self.checkpointer)
        self._topic_ids = TopicIdSyncer(runtime.disk, self.dirs, self.work)
        self._deleter = Deleter(runtime, self.dirs, self.work, self.slices)
        self.files = FilePool(runtime.disk, max_descriptors, max_held_descriptors)
        self.producer_id_expiration_ms = producer_id_expiration_ms
        self.recovery = Recovery()
        self.opened = 0  # logs created since the start

    @property
    def on_offline(self) -> Callable[[str, StorageError], None] | None:
        """Called with the path of a directory that failed, and the reason."""
        return self.dirs.on_offline

    @on_offline.setter
    def on_offline(self, listener: Callable[[str, StorageError], None] | None) -> None:
        self.dirs.on_offline = listener

    # --- start ----------------------------------------------------------------------------------------

    def open(self) -> None:
        """Lock the directories and read their ids. An unusable directory goes offline.

        Raises StorageError if none is usable, DirectoryInUseError, and CheckpointError for an invalid
        meta.properties.
        """
        for directory in self.directories:
            try:
                directory.open()
            except OSError as e:
                self._cannot_start(directory, f"Cannot use log directory {directory.path}", e)
        self.dirs.require_online()

    def _cannot_start(self, directory: LogDir, what: str, error: OSError | StorageError) -> None:
        """Continue without a directory that fails. But do not start if only descriptors or memory ran out."""
        reason = error.message if isinstance(error, StorageError) else error
        failure = self.dirs.failed_in(directory, f"{what}: {reason}", error)
        if isinstance(failure, ExhaustedError):
            raise failure from error

    def load(self, topic_config: "Callable[[str], TopicConfig]", is_stray: IsStray = _no_stray) -> None:
        """Open all logs. The logs of a directory that was not closed cleanly are recovered.

        Stray logs, which the metadata does not assign to this node, are renamed; nothing in them is lost. A
        directory that cannot be loaded goes offline, and the others are loaded. Raises DuplicateLogError.
        """
        for directory in self.dirs.online():
            try:
                for found in self._loading(directory, topic_config):
                    self._take_in(found, run_here(found.steps), is_stray)
            except (OSError, StorageError) as e:
                self._cannot_start(directory, f"Cannot load {directory.path}", e)
        self.dirs.require_online()

    async def load_beside(
        self,
        topic_config: "Callable[[str], TopicConfig]",
        threads_per_directory: int,
        is_stray: IsStray = _no_stray,
    ) -> None:
        """`load` with recovery in other threads, of `threads_per_directory` logs of each directory at a
        time."""
        async with Scope() as scope:
            for directory in self.dirs.online():
                scope.spawn(self._load_directory(directory, topic_config, threads_per_directory, is_stray))
            await scope.join()
        self.dirs.require_online()

    async def _load_directory(
        self,
        directory: LogDir,
        topic_config: "Callable[[str], TopicConfig]",
        threads: int,
        is_stray: IsStray,
    ) -> None:
        try:
            found = self._loading(directory, topic_config)
            logs = await open_logs(self._runtime, found, threads)
            for opened, log in zip(found, logs, strict=True):
                self._take_in(opened, log, is_stray)
        except (OSError, StorageError) as e:
            self._cannot_start(directory, f"Cannot load {directory.path}", e)

    def _loading(self, directory: LogDir, topic_config: "Callable[[str], TopicConfig]") -> list[FoundLog]:
        return find_logs(
            self._runtime, self.files, directory, topic_config, self.producer_id_expiration_ms, self.recovery
        )

    def _take_in(self, found: FoundLog, log: Log, is_stray: IsStray) -> None:
        tp = log.topic_partition
        if found.is_deleted:
            log.partition_dir.on_failed = self.dirs.log_failed
            self._deleter.delete_later(log)
        elif is_stray(tp, log.topic_id):
            self._set_stray_aside(log)
        elif tp in self.logs:
            raise DuplicateLogError(
                f"Duplicate log directories found for {tp}: {self.logs[tp].path} and {log.path}"
            )
        else:
            self._adopt(log)

    def _adopt(self, log: Log) -> None:
        self.logs[log.topic_partition] = log
        log.partition_dir.on_failed = self.dirs.log_failed
        log.roller.on_rolled = log.settling.on_flush_due = self.flusher.flush_soon
        log.truncator.on_truncated = self.checkpointer.truncated
        log.truncator.beside = self.truncations.begin

    def _set_stray_aside(self, log: Log) -> None:
        """Rename a log that the metadata does not assign to this node. Raises StorageError."""
        self._deleter.set_aside(log, names.STRAY_DIR_SUFFIX)
        log.close()
        _log.warning(
            "Stray log: the metadata does not assign %s to this node: renamed to %s",
            log.topic_partition,
            log.path,
        )

    # --- logs -----------------------------------------------------------------------------------------

    def get(self, topic_partition: TopicPartition) -> Log | None:
        return self.logs.get(topic_partition)

    def get_or_create(
        self,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID,
        config: "TopicConfig",
        *,
        directory_id: uuid.UUID | None = None,
        is_new: bool = True,
    ) -> Log:
        """The partition's log. It is created if there is none, or only one of another topic with the same
        name.

        It is created in the directory that the metadata names. If a creation has already begun in a
        directory, it continues there. A partition that is not new may be in an offline directory: then no log
        is created in its place. A topic id with one flipped bit is corrected, because a new log would assign
        its offsets again. Raises StorageError, ExhaustedError.
        """
        log = self.logs.get(topic_partition)
        if log is not None and not _is_of(log, topic_id):
            if self.dirs.directory_of(log).failure is None:
                self._set_stray_aside(log)
            del self.logs[topic_partition]
            log = None
        if log is None:
            self._deleter.clear_way(topic_partition)
            directory = self._directory_for(topic_partition, directory_id, is_new)
            path = f"{directory.path}/{topic_partition}"
            try:
                log = Log.open(self._runtime, path, topic_partition, topic_id, config, pool=self.files)
            except (OSError, StorageError, ExhaustedError) as e:
                if is_exhausted(e):
                    self._deleter.begun[topic_partition] = directory
                reason = e.message if isinstance(e, KafkaError) else e
                raise self.dirs.failed_in(directory, f"Error while creating {path}: {reason}", e) from e
            self._deleter.begun.pop(topic_partition, None)
            self._adopt(log)
            self.opened += 1
            self._topic_ids.add(log)
        elif log.topic_id is None:
            _log.warning("%s has no topic id: assuming %s", log.path, topic_id)
            log.metadata.write(topic_id)
        elif log.topic_id != topic_id:
            log.metadata.mend(topic_id)
        log.check_online()
        log.update_config(config)
        return log

    def _directory_for(
        self, topic_partition: TopicPartition, directory_id: uuid.UUID | None, is_new: bool
    ) -> LogDir:
        begun = self._deleter.begun.get(topic_partition)
        if begun is not None:
            if begun.failure is not None:
                raise StorageError(f"{topic_partition} was created in {begun.path}, which is offline")
            return begun
        if directory_id is not None:
            for directory in self.dirs.online():
                if directory.meta is not None and directory.meta.directory_id == directory_id:
                    return directory
            raise StorageError(f"{topic_partition} is in directory {directory_id}, which is offline")
        offline = [directory.path for directory in self.directories if directory.failure is not None]
        if offline and not is_new:
            raise StorageError(f"{topic_partition} may be in {', '.join(offline)}, which is offline")
        return self._directory_for_new()

    def _directory_for_new(self) -> LogDir:
        """The online directory with the fewest logs."""
        self.dirs.require_online()
        counts = {directory.path: 0 for directory in self.directories}
        if len(counts) > 1:
            for log in self.logs.values():
                counts[log.directory] += 1
        return min((d for d in self.directories if d.failure is None), key=lambda d: counts[d.path])

    def directory_id(self, topic_partition: TopicPartition) -> uuid.UUID | None:
        """The id of the directory that contains a partition's log."""
        log = self.logs.get(topic_partition)
        meta = None if log is None else self.dirs.directory_of(log).meta
        return None if meta is None else meta.directory_id

    def describe(self) -> Paced[list[LogDirInfo]]:
        """The directories and their logs. The sizes are those of the segments."""
        sizes: dict[str, list[tuple[TopicPartition, int]]] = {d.path: [] for d in self.directories}
        for tp, log in list(self.logs.items()):
            sizes[log.directory].append((tp, log.size_bytes))
            yield STEP
        infos = []
        for directory in self.directories:
            total_bytes = usable_bytes = -1
            if directory.failure is None:
                try:
                    total_bytes, usable_bytes = self._disk.usage(directory.path)
                except OSError as e:
                    _log.warning("Cannot read the volume size of %s: %s", directory.path, e)
            directory_id = None if directory.meta is None else directory.meta.directory_id
            infos.append(
                LogDirInfo(
                    directory.path,
                    directory_id,
                    directory.failure,
                    total_bytes,
                    usable_bytes,
                    sizes[directory.path],
                )
            )
        return infos

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete a log, or the rest of one, now. Its files are removed after file.delete.delay.ms."""
        self._deleter.delete(topic_partition)

    def persist_topic_ids(self) -> None:
        """Sync the topic ids of new logs, in another thread."""
        self._topic_ids.start()

    # --- over time ------------------------------------------------------------------------------------

    def tick_flush(self) -> Reply[None]:
        """Flush the logs whose flush.ms has passed, in other threads (log.flush.scheduler.interval.ms)."""
        return self.slices.run(self.flusher.flush_due(), own=True)

    def checkpoint_recovery_points(self) -> None:
        """Due every log.flush.offset.checkpoint.interval.ms. A flush writes it by itself too."""
        self.checkpointer.write_all(names.RECOVERY_POINT_CHECKPOINT)

    def checkpoint_log_starts(self) -> None:
        """Due every log.flush.start.offset.checkpoint.interval.ms."""
        self.checkpointer.write_all(names.LOG_START_CHECKPOINT)

    def checkpoint_high_watermarks(self) -> None:
        """Due every replica.high.watermark.checkpoint.interval.ms."""
        self.checkpointer.write_all(names.HIGH_WATERMARK_CHECKPOINT)

    def checkpoint_cleaned(self, log: Log) -> None:
        """Write the cleaner checkpoint after the cleaning of a log."""
        self.checkpointer.write(self.dirs.directory_of(log), names.CLEANER_CHECKPOINT)

    async def tick_deletes(self) -> None:
        """Remove the files of deleted logs and segments whose delay has passed, in another thread."""
        await self._deleter.remove_due()

    def tick_retention(self) -> Reply[int]:
        """Delete segments by retention (log.retention.check.interval.ms), a few logs per turn. Returns how
        many.

        A log that is being cleaned is skipped until that is done.
        """
        return self.slices.run(self._retain(), own=True)

    def _retain(self) -> Paced[int]:
        deleted = 0
        for log in list(self.logs.values()):
            gone = 0
            if self.dirs.is_usable(log) and not log.being_cleaned:
                try:
                    gone = log.retain(self._runtime.clock.now_ms())
                except KafkaError as e:
                    _log.error("Retention of %s failed: %s", log.topic_partition, e)
            deleted += gone
            yield STEP + _DELETED * gone
        return deleted

    def tick_producer_expiry(self) -> Reply[int]:
        """Remove expired producers (producer.id.expiration.check.interval.ms). Returns how many."""
        return self.slices.run(self._expire_producers(), own=True)

    def _expire_producers(self) -> Paced[int]:
        now_ms = self._runtime.clock.now_ms()
        expired = 0
        for log in list(self.logs.values()):
            expired += log.producers.expire(now_ms, self.producer_id_expiration_ms)
            yield 2 * FEW
        return expired

    # --- stop -----------------------------------------------------------------------------------------

    async def close(self, *, clean: bool = True, broker_epoch: int = -1) -> None:
        """Close all logs and unlock the directories. After a clean close the next start needs no recovery."""
        while (
            self.flusher.flushing
            or self.truncations.is_running
            or self.checkpointer.is_writing
            or self.work.in_flight
        ):
            await self.work.wait_for_one()
        self.flusher.stop()
        self.checkpointer.stop()
        for directory in self.dirs.online():
            logs = [log for log in self.logs.values() if log.directory == directory.path]
            if clean:
                await self._close_cleanly(directory, logs, broker_epoch)
            else:
                for log in logs:
                    log.close(clean=False)
        for directory in self.directories:
            directory.unlock()

    async def _close_cleanly(self, directory: LogDir, logs: list[Log], broker_epoch: int) -> None:
        """Write .kafka_cleanshutdown last, after everything else is durable."""
        whole = [log for log in logs if log.failure is None]
        try:
            for start in range(0, len(whole), _LOGS_PER_TURN):
                chunk = whole[start : start + _LOGS_PER_TURN]
                jobs = [
                    (log, job, self._runtime.offload(job.run)) for log in chunk if (job := log.begin_close())
                ]
                for log, job, done in jobs:
                    await done
                    log.finish_flush(job)
                for log in chunk:
                    log.close(clean=False)
            for name in names.OFFSET_CHECKPOINTS:
                self.checkpointer.write_now(directory, name)
            for log in logs:
                if log.failure is not None:
                    _log.error("%s was not closed cleanly: %s", directory.path, log.failure.message)
                    return
            directory.write_clean_shutdown(broker_epoch)
        except (OSError, KafkaError) as e:
            message = f"{directory.path} could not be closed cleanly: {e}"
            if is_exhausted(e):
                _log.error("%s", message)
            else:
                self.dirs.take_offline(directory, StorageError(message))
