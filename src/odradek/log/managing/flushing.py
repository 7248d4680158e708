"""Flusher: flushes a node's logs in other threads, one flush at a time per log.

If only descriptors or memory ran out, it retries later. It never retries a failed sync, because the page
cache may have dropped the data.
"""

import asyncio
import logging
from functools import partial

from odradek.core.errors import ExhaustedError, KafkaError
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.log import Log
from odradek.log.managing.checkpointing import Checkpointer
from odradek.log.managing.disk_work import RETRY_S, DiskWork
from odradek.log.managing.log_dirs import LogDirs
from odradek.log.parts.flush_job import FlushJob
from odradek.runtime.slices import FEW, STEP, Paced

_log = logging.getLogger(__name__)


class Flusher:
    """`flushing` has the logs with a flush that is scheduled or in progress."""

    def __init__(self, dirs: LogDirs, work: DiskWork, checkpointer: Checkpointer) -> None:
        self._dirs = dirs
        self._work = work
        self._checkpointer = checkpointer
        self.flushing: dict[Log, None] = {}
        self._retries: dict[Log, asyncio.TimerHandle] = {}

    def flush_soon(self, topic_partition: TopicPartition) -> None:
        """A segment is complete, or flush.messages is reached: flush in another thread, one flush at a time.

        The flush starts after this turn of the loop, and the next one when it is done. Each one serves all
        producers whose records were appended before it started.
        """
        log = self._dirs.logs.get(topic_partition)
        if log is None or log in self.flushing:
            return
        if log.settling.flush_target <= log.durability.restart_offset:
            return
        self.flushing[log] = None
        asyncio.get_running_loop().call_soon(self._flush_target, log)

    def _flush_target(self, log: Log) -> None:
        if self._dirs.is_usable(log):
            self._start(log, log.settling.flush_target)
        else:
            del self.flushing[log]

    def _start(self, log: Log, up_to: int) -> None:
        self.flushing.pop(log, None)
        try:
            job = log.begin_flush(up_to)
        except ExhaustedError:
            self._start_later(log, up_to)
            return
        except KafkaError as e:
            _log.error("%s", e)
            return
        if job is not None:
            self.flushing[log] = None
            self._work.then(job.run, partial(self._flushed, log, job))

    def _flushed(self, log: Log, job: FlushJob, done: "asyncio.Future[None]") -> None:
        deleted = not self._dirs.is_current(log)
        segment = log.segments.floor(log.durability.restart_offset)
        try:
            done.result()
            if not deleted and log.failure is None:
                log.finish_flush(job)
        except OSError as e:
            if not (deleted and isinstance(e, FileNotFoundError)):
                failure = log.fail(e, "flushing")
                if isinstance(failure, ExhaustedError):
                    del self.flushing[log]
                    self._start_later(log, job.proof.up_to)
                    return
        del self.flushing[log]
        if deleted or log.failure is not None:
            return
        restart_offset = log.durability.restart_offset
        # With flush.messages, syncing the checkpoint after each flush would double the cost.
        if not log.flushes_by_count or log.segments.floor(restart_offset) is not segment:
            self._checkpointer.write(self._dirs.directory_of(log), names.RECOVERY_POINT_CHECKPOINT)
        if log.settling.flush_target > restart_offset:
            self._start(log, log.settling.flush_target)
        elif log.durability.has_idle_marks:
            self._start_later(log, job.proof.up_to)

    def _start_later(self, log: Log, up_to: int) -> None:
        """Retry. No sync has failed; a flush could not start, so a retry is safe."""
        if log not in self._retries:
            loop = asyncio.get_running_loop()
            self._retries[log] = loop.call_later(RETRY_S, self._start_again, log, up_to)

    def _start_again(self, log: Log, up_to: int) -> None:
        del self._retries[log]
        if log not in self.flushing and self._dirs.is_usable(log):
            self._start(log, max(log.settling.flush_target, min(up_to, log.log_end_offset)))

    def flush_due(self) -> Paced[None]:
        """Start a flush of every log whose flush.ms has passed."""
        for log in list(self._dirs.logs.values()):
            yield 2 * FEW
            if self._dirs.is_usable(log) and log.is_flush_due and log not in self.flushing:
                self._start(log, log.log_end_offset)
                yield STEP

    async def flush(self, log: Log) -> None:
        """Make all current records of a log durable, and remove its .unflushed marks. Raises StorageError,
        ExhaustedError."""
        job = log.begin_flush()
        if job is None:
            return
        try:
            await asyncio.shield(self._work.offload(job.run))
        except OSError as e:
            raise log.fail(e, "flushing") from e
        if log.failure is None:
            log.finish_flush(job)
        if log.failure is None and log.durability.has_idle_marks:
            raise ExhaustedError(f"Cannot remove the .unflushed marks of {log.path}")

    def stop(self) -> None:
        """Cancel all retries."""
        for timer in self._retries.values():
            timer.cancel()
