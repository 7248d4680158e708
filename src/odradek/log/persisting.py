"""The logs of a node made durable: flushes and checkpoints, away from the event loop, per log directory.

A directory that fails goes offline with its logs; the others go on. What only lacks descriptors or memory is
tried again after a while.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import Any, Final, TypeVar

from odradek.core.errors import ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.files import write_file
from odradek.log.flush_job import FlushJob
from odradek.log.log import Log
from odradek.log.log_dir import LogDir
from odradek.log.partition_metadata import sync_topic_id
from odradek.runtime.api import Disk, Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, STEP, Paced, Slices, at_once

T = TypeVar("T")

_log = logging.getLogger(__name__)

_NAMED_AT_ONCE: Final = 16
_RETRY_S: Final = 1.0


def _sync_topic_ids(disk: Disk, paths: Iterable[str]) -> list[OSError | None]:
    """What went wrong with each: they may lie in several log directories, of which one has failed."""
    errors: list[OSError | None] = []
    for path in paths:
        try:
            sync_topic_id(disk, path)
            errors.append(None)
        except OSError as e:
            errors.append(e)
    return errors


class PersistedLogs:
    """The logs by partition, and the directories they lie in.

    `on_offline` is told of a directory that failed, and why.
    """

    def __init__(self, runtime: Runtime, log_dirs: Sequence[str], slices: Slices | None = None) -> None:
        self.slices = slices or Slices()
        self._runtime = runtime
        self._disk = runtime.disk
        self.directories = [LogDir(runtime.disk, path.rstrip("/")) for path in log_dirs]
        self.logs: dict[TopicPartition, Log] = {}
        self.on_offline: Callable[[str, StorageError], None] | None = None
        self._flushing: dict[Log, None] = {}
        self._checkpointing: dict[tuple[str, str], bool] = {}
        self._retries: dict[Log | tuple[str, str], asyncio.TimerHandle] = {}
        self._in_flight: dict[asyncio.Future[Any], None] = {}
        self._unnamed: deque[Log] = deque()
        self._is_naming = False

    def _online(self) -> list[LogDir]:
        return [directory for directory in self.directories if directory.failure is None]

    # --- failure --------------------------------------------------------------------------------------

    def _log_failed(self, path: str, failure: StorageError) -> None:
        for directory in self.directories:
            if directory.path == path:
                self._take_offline(directory, failure)

    def _take_offline(self, directory: LogDir, failure: StorageError) -> None:
        """A directory goes offline with its logs: from here on nothing is read from or written to them.

        All of them at once, which takes no calls; what follows from it may take slices.
        """
        if directory.failure is not None:
            return
        directory.take_offline(failure)
        for log in self.logs.values():
            if log.directory == directory.path and log.failure is None:
                log.partition_dir.failure = failure
        if self.on_offline is not None:
            self.on_offline(directory.path, failure)

    def _failed_in(self, directory: LogDir, message: str, error: OSError | KafkaError) -> KafkaError:
        """What to say of an error in a directory. It is offline, unless only descriptors or memory lack."""
        if is_exhausted(error):
            return ExhaustedError(message)
        failure = StorageError(message)
        self._take_offline(directory, failure)
        return failure

    # --- flushes -----------------------------------------------------------------------------------

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do something with the files away from the loop; the directories are kept until it is done."""
        return self._kept_for(self._runtime.offload(work))

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """The same for long work that nobody waits for."""
        return self._kept_for(self._runtime.in_background(work))

    def _kept_for(self, future: "asyncio.Future[T]") -> "asyncio.Future[T]":
        self._in_flight[future] = None
        future.add_done_callback(self._landed)
        return future

    def _offload(self, work: Callable[[], T], done: "Callable[[asyncio.Future[T]], None]") -> None:
        self.offload(work).add_done_callback(done)

    def _landed(self, future: "asyncio.Future[Any]") -> None:
        del self._in_flight[future]

    def flush_soon(self, topic_partition: TopicPartition) -> None:
        """A segment is complete, or flush.messages are: flush away from the loop, one flush at a time.

        The flush begins when this turn of the loop is over, and the next one when it is done: each serves
        everybody who came before it began.
        """
        log = self.logs.get(topic_partition)
        if log is None or log in self._flushing or log.settling.flush_target <= log.durability.restart_offset:
            return
        self._flushing[log] = None
        asyncio.get_running_loop().call_soon(self._flush_target, log)

    def _flush_target(self, log: Log) -> None:
        if log.failure is None and self.logs.get(log.topic_partition) is log:
            self._start_flush(log, log.settling.flush_target)
        else:
            del self._flushing[log]

    def _start_flush(self, log: Log, up_to: int) -> None:
        self._flushing.pop(log, None)
        try:
            job = log.begin_flush(up_to)
        except ExhaustedError:
            self._flush_later(log, up_to)
            return
        except KafkaError as e:
            _log.error("%s", e)
            return
        if job is not None:
            self._flushing[log] = None
            self._offload(job.run, partial(self._flushed, log, job))

    def _flushed(self, log: Log, job: FlushJob, done: "asyncio.Future[None]") -> None:
        """One that failed is never tried again: what it was to make durable may be gone from the cache."""
        deleted = self.logs.get(log.topic_partition) is not log
        segment = log.segments.floor(log.durability.restart_offset)
        try:
            done.result()
            if not deleted and log.failure is None:
                log.finish_flush(job)
        except OSError as e:
            if not (deleted and isinstance(e, FileNotFoundError)):
                failure = log.fail(e, "flushing")
                if isinstance(failure, ExhaustedError):
                    del self._flushing[log]
                    self._flush_later(log, job.proof.up_to)
                    return
        del self._flushing[log]
        if deleted or log.failure is not None:
            return
        # Where every acknowledgement is flushed, one more file to sync each time would double their price.
        if not log.flushes_by_count or log.segments.floor(log.durability.restart_offset) is not segment:
            self._checkpoint(self._directory_of(log), names.RECOVERY_POINT_CHECKPOINT)
        if log.settling.flush_target > log.durability.restart_offset:
            self._start_flush(log, log.settling.flush_target)
        elif log.durability.has_idle_marks:
            self._flush_later(log, job.proof.up_to)

    def _flush_later(self, log: Log, up_to: int) -> None:
        """No sync has failed, one could only not be begun: nothing is lost by trying again."""
        if log not in self._retries:
            loop = asyncio.get_running_loop()
            self._retries[log] = loop.call_later(_RETRY_S, self._flush_again, log, up_to)

    def _flush_again(self, log: Log, up_to: int) -> None:
        del self._retries[log]
        if log.failure is None and log not in self._flushing and self.logs.get(log.topic_partition) is log:
            self._start_flush(log, max(log.settling.flush_target, min(up_to, log.log_end_offset)))

    def tick_flush(self) -> Reply[None]:
        """Flush, away from the loop, the logs whose flush.ms has passed (log.flush.scheduler.interval.ms)."""
        return self.slices.run(self._flush_due(), own=True)

    def _flush_due(self) -> Paced[None]:
        for log in list(self.logs.values()):
            yield 2 * FEW
            if self._is_here(log) and log.is_flush_due and log not in self._flushing:
                self._start_flush(log, log.log_end_offset)
                yield STEP

    # --- topic ids --------------------------------------------------------------------------------------

    def persist_topic_ids(self) -> None:
        """Make durable, away from the loop, whose the logs are that were begun: the first append to each,
        which would have to wait for it, finds it done."""
        if self._is_naming:
            return
        while self._unnamed:
            logs = [self._unnamed.popleft() for _ in range(min(_NAMED_AT_ONCE, len(self._unnamed)))]
            logs = [log for log in logs if not log.metadata.is_durable and self._is_here(log)]
            if logs:
                self._is_naming = True
                paths = [log.path for log in logs]
                self._offload(partial(_sync_topic_ids, self._disk, paths), partial(self._named, logs))
                return

    def _is_here(self, log: Log) -> bool:
        return log.failure is None and self.logs.get(log.topic_partition) is log

    def _named(self, logs: list[Log], done: "asyncio.Future[list[OSError | None]]") -> None:
        self._is_naming = False
        lacking = False
        for log, error in zip(logs, done.result(), strict=True):
            if not self._is_here(log):
                continue
            if error is None:
                log.metadata.persisted()
            elif isinstance(log.fail(error, "naming the topic of"), ExhaustedError):
                lacking = True
                self._unnamed.append(log)
        if not lacking:  # else the next append to each sees to it, or the next log that is begun
            self.persist_topic_ids()

    # --- checkpoints ------------------------------------------------------------------------------------

    async def flush(self, log: Log) -> None:
        """Make all that a log holds now durable, and forget where it was not. Raises StorageError,
        ExhaustedError."""
        job = log.begin_flush()
        if job is None:
            return
        try:
            await asyncio.shield(self.offload(job.run))
        except OSError as e:
            raise log.fail(e, "flushing") from e
        if log.failure is None:
            log.finish_flush(job)
        if log.failure is None and log.durability.has_idle_marks:
            raise ExhaustedError(f"Marks of {log.path} could not be removed")

    def _directory_of(self, log: Log) -> LogDir:
        return next(directory for directory in self.directories if directory.path == log.directory)

    def _checkpoint(self, directory: LogDir, name: str) -> None:
        """Write a checkpoint away from the loop; news meanwhile make it be written once more."""
        key = (directory.path, name)
        if key in self._checkpointing:
            self._checkpointing[key] = True
            return
        self._checkpointing[key] = False
        gathering = self.slices.run(self._offsets(directory, name), own=True)
        gathering.when_ready(partial(self._write_checkpoint, directory, name))

    def _write_checkpoint(
        self, directory: LogDir, name: str, gathered: Reply[dict[TopicPartition, int]]
    ) -> None:
        if gathered.error is not None:
            del self._checkpointing[directory.path, name]
            raise gathered.error
        news = directory.offsets_to_write(name, gathered.value) if directory.failure is None else None
        if news is not None:
            self._offload(
                partial(write_file, self._disk, *news), partial(self._checkpointed, directory, name)
            )
        elif self._checkpointing.pop((directory.path, name)) and directory.failure is None:
            self._checkpoint(directory, name)

    def _truncated(self, topic_partition: TopicPartition) -> None:
        """Less is durable than a checkpoint may say. One that is being written now is written once more."""
        directory, name = self._directory_of(self.logs[topic_partition]), names.RECOVERY_POINT_CHECKPOINT
        if (directory.path, name) in self._checkpointing:
            self._checkpoint(directory, name)
            return
        news = directory.offsets_to_write(name, at_once(self._offsets(directory, name)))
        if news is not None:
            try:
                write_file(self._disk, *news)
            except OSError as e:
                self._checkpoint_failed(directory, name, e)

    def _checkpoint_failed(self, directory: LogDir, name: str, error: OSError) -> None:
        """What was to be written may say less than what is there: it does not wait until it is due again."""
        message, key = f"Error while writing {directory.path}/{name}: {error}", (directory.path, name)
        if isinstance(self._failed_in(directory, message, error), ExhaustedError):
            _log.warning("Out of descriptors or memory, trying again. %s", message)
            directory.offsets_unwritten(name)
            if key not in self._retries:
                loop = asyncio.get_running_loop()
                self._retries[key] = loop.call_later(_RETRY_S, self._checkpoint_again, directory, name)

    def _checkpoint_again(self, directory: LogDir, name: str) -> None:
        del self._retries[directory.path, name]
        if directory.failure is None:
            self._checkpoint(directory, name)

    def _checkpointed(self, directory: LogDir, name: str, done: "asyncio.Future[None]") -> None:
        again = self._checkpointing.pop((directory.path, name))
        try:
            done.result()
        except OSError as e:
            self._checkpoint_failed(directory, name, e)
            return
        if again:
            self._checkpoint(directory, name)

    def _offsets(self, directory: LogDir, name: str) -> Paced[dict[TopicPartition, int]]:
        """What a checkpoint of a directory has to say, of each log when it is looked at."""
        offsets = {}
        for tp, log in list(self.logs.items()):
            yield 2 * FEW
            if log.directory == directory.path and self.logs.get(tp) is log:
                offset = _checkpointed_offset(log, name)
                if offset is not None:
                    offsets[tp] = offset
        return offsets

    def checkpoint_recovery_points(self) -> None:
        """Due every log.flush.offset.checkpoint.interval.ms, and after every flush by itself."""
        for directory in self._online():
            self._checkpoint(directory, names.RECOVERY_POINT_CHECKPOINT)

    def checkpoint_log_starts(self) -> None:
        """Due every log.flush.start.offset.checkpoint.interval.ms."""
        for directory in self._online():
            self._checkpoint(directory, names.LOG_START_CHECKPOINT)

    def checkpoint_high_watermarks(self) -> None:
        """Due every replica.high.watermark.checkpoint.interval.ms."""
        for directory in self._online():
            self._checkpoint(directory, names.HIGH_WATERMARK_CHECKPOINT)

    def checkpoint_cleaned(self, log: Log) -> None:
        """A cleaning has come to its end."""
        self._checkpoint(self._directory_of(log), names.CLEANER_CHECKPOINT)


def _checkpointed_offset(log: Log, name: str) -> int | None:
    """What a checkpoint says of a log; None where it needs no telling."""
    if name == names.RECOVERY_POINT_CHECKPOINT:
        return log.durability.restart_offset
    if name == names.HIGH_WATERMARK_CHECKPOINT:
        return log.high_watermark
    if name == names.CLEANER_CHECKPOINT:
        return log.cleaned_offset
    begins_inside = log.log_start_offset > log.segments.first.base_offset
    return log.log_start_offset if begins_inside else None
