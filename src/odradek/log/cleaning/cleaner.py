"""Cleaner: cleans the compacted logs of the node, the dirtiest first, a few at a time.

It chooses logs and swaps segments on the event loop. A job reads and writes in another thread, a piece at a
time, so that it can be throttled and stopped. If the log is truncated, deleted or fails, the job ends and its
files are removed.
"""

import asyncio
import errno
import logging
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeVar

from odradek.core.errors import ExhaustedError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log.cleaning.candidates import LogToClean, dirtiest, examine
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.cleaning.throttle import Throttle
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.runtime.slices import FEW, STEP, Paced

if TYPE_CHECKING:
    from odradek.log.cleaning.job import CleaningJob, Replacement

T = TypeVar("T")

_log = logging.getLogger(__name__)

_PIECE_BYTES: Final = 2 << 20  # a few milliseconds of work
_PIECE_SECONDS: Final = 0.1
_LEAST_BACKOFF_MS: Final = 10
_RETRY_S: Final = 1.0
_NO_SPACE: Final = (errno.ENOSPC, errno.EDQUOT)


class _AbandonedError(Exception):
    """The log has changed since the job was prepared."""


class Cleaner:
    """Cleans logs and counts its work. `uncleanable` has the logs that it skips until a restart."""

    def __init__(self, runtime: Runtime, logs: LogManager, settings: CleanerSettings) -> None:
        self._runtime = runtime
        self._logs = logs
        self.settings = settings
        self._throttle = Throttle(settings.max_bytes_per_second)
        self._scope = Scope(lambda error: _log.error("Log cleaner failed", exc_info=error))
        self._cleaning: dict[TopicPartition, Log] = {}
        self._wake = asyncio.Event()
        self._uncleanable: dict[Log, str] = {}
        self.cleanings = 0
        self.read_bytes = self.written_bytes = 0
        self.recopied_ratio = self.max_dirty_ratio = self.last_clean_seconds = 0.0
        self.last_look_ms = runtime.clock.now_ms()

    # --- life -----------------------------------------------------------------------------------------

    def start(self) -> None:
        self._scope.spawn(self._run(), name="clean logs")

    async def close(self) -> None:
        """End every job. Swapped segments stay, all other files of the jobs are removed."""
        await self._scope.close()

    def reconfigure(self, settings: CleanerSettings) -> None:
        """Apply new settings at once. Jobs in progress keep their buffers."""
        if settings != self.settings:
            self.settings = settings
            self._throttle.bytes_per_second = settings.max_bytes_per_second
            self._wake.set()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            self._wake.clear()
            if self.settings.enabled:
                await self.start_due()
            pause_ms = max(self.settings.backoff_ms, _LEAST_BACKOFF_MS)
            timer = loop.call_later(pause_ms / 1000, self._wake.set)
            try:
                await self._wake.wait()
            finally:
                timer.cancel()

    # --- choosing -------------------------------------------------------------------------------------

    @property
    def uncleanable(self) -> dict[Log, str]:
        """The logs that could not be cleaned, with the reason."""
        for log in [log for log in self._uncleanable if self._logs.get(log.topic_partition) is not log]:
            del self._uncleanable[log]
        return self._uncleanable

    def start_due(self) -> Reply[int]:
        """Start to clean the dirtiest logs, up to `threads` at a time. Returns how many were started."""
        return self._logs.slices.run(self._start_due(), own=True)

    def _start_due(self) -> Paced[int]:
        now_ms = self.last_look_ms = self._runtime.clock.now_ms()
        found = yield from self._candidates(now_ms)
        waiting = [candidate for candidate in found if self._is_there(candidate.log)]
        self.max_dirty_ratio = max((candidate.dirty_ratio for candidate in waiting), default=0.0)
        started = 0
        while len(self._cleaning) < self.settings.threads:
            candidate = dirtiest(waiting)
            if candidate is None:
                break
            waiting.remove(candidate)
            log = candidate.log
            self._cleaning[log.topic_partition] = log
            log.compaction.being_cleaned = True
            self._scope.spawn(self._clean(candidate, now_ms), name=f"clean {log.topic_partition}")
            started += 1
        return started

    def _is_there(self, log: Log) -> bool:
        return self._logs.dirs.is_usable(log)

    def _candidates(self, now_ms: int) -> Paced[list[LogToClean]]:
        """The compacted logs. A log may be deleted after it was examined."""
        left_alone = self.uncleanable
        found = []
        for tp, log in list(self._logs.logs.items()):
            yield FEW
            if not log.config.is_compacted or not self._is_there(log):
                continue
            if tp in self._cleaning or log in left_alone:
                continue
            yield STEP
            try:
                found.append(examine(log, now_ms))
            except OSError as e:
                log.fail(e, "searching for dirty segments in")
            except ExhaustedError:
                continue
            except Exception as e:
                self._give_up(log, e)
        return found

    # --- cleaning -------------------------------------------------------------------------------------

    async def _clean(self, candidate: LogToClean, now_ms: int) -> None:
        # Imported with the first dirty log, not at the start of the node.
        from odradek.log.cleaning.job import CleaningJob
        from odradek.log.cleaning.planning import prepare

        log, truncations = candidate.log, candidate.log.truncations
        job: CleaningJob | None = None
        try:
            plan = prepare(candidate, self.settings, now_ms, self._runtime.rng)
            # Flush first: a power loss must not lose a new value after the cleaning removed the old one.
            await self._logs.flusher.flush(log)
            self._check(log, truncations)
            job = CleaningJob(self._runtime.disk, plan)
            await self._carry_out(log, job, truncations)
        except _AbandonedError:
            _log.info("Stopped cleaning %s: the log changed", log.topic_partition)
            self._discard(log, job)
        except asyncio.CancelledError:
            self._discard(log, job)
            raise
        except (OSError, ExhaustedError, MemoryError) as e:
            self._discard(log, job)
            self._failed(log, e)
        except Exception as e:
            self._discard(log, job)
            self._give_up(log, e)
        else:
            self._wake.set()
        finally:
            log.compaction.being_cleaned = False
            del self._cleaning[log.topic_partition]

    async def _carry_out(self, log: Log, job: "CleaningJob", truncations: int) -> None:
        loop = asyncio.get_running_loop()
        began = loop.time()
        while True:
            self._check(log, truncations)
            budget = self._throttle.budget_bytes(_PIECE_BYTES, _PIECE_SECONDS)
            try:
                progress = await self._offload(partial(job.advance, budget))
            except Exception:
                # If the log has changed, the error is a consequence of that.
                self._check(log, truncations)
                raise
            if progress is None:
                break
            if progress.replacement is not None:
                self._check(log, truncations)
                await self._swap(log, job, progress.replacement, truncations)
            await asyncio.sleep(self._throttle.wait_s(progress.moved_bytes, loop.time()))
        self._check(log, truncations)
        self._finish(log, job, loop.time() - began)

    async def _swap(self, log: Log, job: "CleaningJob", replacement: "Replacement", truncations: int) -> None:
        segment = log.compaction.begin_swap(replacement)
        if segment is None:
            raise _AbandonedError
        job.taken()
        await self._sync_directory(log)
        if self._logs.get(log.topic_partition) is log:
            log.compaction.finish_swap(segment)
        self._check(log, truncations)

    async def _sync_directory(self, log: Log) -> None:
        """Retry until it succeeds: the log's files keep their .swap names until then."""
        while True:
            try:
                await self._offload(partial(self._runtime.disk.fsync_dir, log.path))
                return
            except FileNotFoundError:
                raise _AbandonedError from None
            except OSError as e:
                if not is_exhausted(e):
                    raise
                _log.warning("Out of file descriptors or memory, retrying: %s", e)
            await asyncio.sleep(_RETRY_S)

    def _finish(self, log: Log, job: "CleaningJob", seconds: float) -> None:
        log.compaction.cleaned_offset = job.end_offset
        self._logs.checkpoint_cleaned(log)
        self.cleanings += 1
        self.read_bytes += job.mapped_bytes + job.read_bytes
        self.written_bytes += job.written_bytes
        self.recopied_ratio = job.written_bytes / job.read_bytes if job.read_bytes else 0.0
        self.last_clean_seconds = seconds
        _log.info(
            "Cleaned %s up to offset %d in %.1f s: %d bytes before, %d after",
            log.topic_partition,
            job.end_offset,
            seconds,
            job.read_bytes,
            job.written_bytes,
        )
        log.retain(self._runtime.clock.now_ms())

    def _check(self, log: Log, truncations: int) -> None:
        if (
            self._logs.get(log.topic_partition) is not log
            or log.failure is not None
            or log.truncations != truncations
            or not log.config.is_compacted
        ):
            raise _AbandonedError

    async def _offload(self, work: Callable[[], T]) -> T:
        """Run work in another thread, and wait for it even if this task is cancelled: it still uses files."""
        future = self._logs.work.in_background(work)
        cancelled: asyncio.CancelledError | None = None
        while not future.done():
            try:
                await asyncio.shield(future)
            except asyncio.CancelledError as e:
                cancelled = e
            except Exception:
                break
        if cancelled is not None:
            raise cancelled
        return future.result()

    # --- when it does not work ------------------------------------------------------------------------

    def _discard(self, log: Log, job: "CleaningJob | None") -> None:
        if job is not None:
            try:
                job.discard()
            except OSError as e:
                log.compaction.discarded()
                _log.warning("Cannot remove the files of an abandoned cleaning: %s", e)

    def _give_up(self, log: Log, error: Exception) -> None:
        if log.failure is None:
            _log.error("Cannot clean %s, not retried before a restart: %s", log.topic_partition, error)
            self._uncleanable[log] = str(error) or type(error).__name__

    def _failed(self, log: Log, error: OSError | ExhaustedError | MemoryError) -> None:
        if is_exhausted(error):
            _log.warning(
                "Out of file descriptors or memory while cleaning %s, retrying later: %s",
                log.topic_partition,
                error,
            )
        elif isinstance(error, OSError) and error.errno in _NO_SPACE:
            _log.error("No disk space to clean %s, retrying later: %s", log.topic_partition, error)
        elif isinstance(error, OSError) and log.failure is None:
            log.fail(error, "cleaning")
