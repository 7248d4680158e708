"""What makes a replica's decisions durable: fsyncs of its log, and the quorum-state file. Away from the loop.

They have a thread of their own: no fsync of a partition makes an election or a commit wait. One flush and one
write of the state are under way at a time. What only lacks descriptors or memory is tried again; any other
failure is final (`on_failed`).
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.core.errors import ExhaustedError, KafkaError
from odradek.log.files import write_file
from odradek.log.log import Log
from odradek.log.parts.flush_job import FlushJob
from odradek.runtime.api import Runtime

_RETRY_S: Final = 0.2

OnFailed = Callable[[KafkaError], None]


class LogFlusher:
    """`want` a flush; `on_flushed` hears how far the log is durable.

    `linger_ms` is how long a flush that may wait does so, for more to share it
    (`controller.quorum.append.linger.ms`).
    """

    def __init__(
        self,
        runtime: Runtime,
        log: Log,
        linger_ms: int,
        on_flushed: Callable[[int], None],
        on_failed: OnFailed,
    ) -> None:
        self._runtime = runtime
        self._log = log
        self._linger_s = linger_ms / 1000
        self._lingering: asyncio.TimerHandle | None = None
        self._on_flushed = on_flushed
        self._on_failed = on_failed
        self.is_flushing = False

    def want(self, *, lingers: bool = False) -> None:
        """Flush at the end of this turn, so that all that is appended in it shares one fsync; or linger."""
        loop = asyncio.get_running_loop()
        if not self.is_flushing:
            self.is_flushing = True
            if lingers and self._linger_s:
                self._lingering = loop.call_later(self._linger_s, self._begin)
            else:
                loop.call_soon(self._begin)
        elif self._lingering is not None and not lingers:
            self._lingering.cancel()
            self._lingering = None
            loop.call_soon(self._begin)

    def _begin(self) -> None:
        self._lingering = None
        try:
            job = self._log.begin_flush()
        except ExhaustedError:
            self._try_later()
            return
        except KafkaError as e:
            self.is_flushing = False
            self._on_failed(e)
            return
        if job is None:
            self.is_flushing = False
            self._on_flushed(self._log.recovery_point)
            return
        self._runtime.for_quorum(job.run).add_done_callback(partial(self._flushed, job))

    def _try_later(self) -> None:
        """No sync has failed, one could only not be begun. Nothing is committed until it is."""
        asyncio.get_running_loop().call_later(_RETRY_S, self._begin)

    def _flushed(self, job: FlushJob, done: "asyncio.Future[None]") -> None:
        try:
            done.result()
        except OSError as e:
            failure = self._log.fail(e, "flushing")
            if isinstance(failure, ExhaustedError):
                self._try_later()
                return
            self.is_flushing = False
            self._on_failed(failure)
            return
        self.is_flushing = False
        self._log.finish_flush(job)
        if self._log.log_end_offset > self._log.recovery_point:
            self.want()
        self._on_flushed(self._log.recovery_point)


class StateWriter:
    """Writes one small file whole, again and again; `on_written` hears of each one that is durable."""

    def __init__(
        self, runtime: Runtime, log: Log, path: str, on_written: Callable[[], None], on_failed: OnFailed
    ) -> None:
        self._runtime = runtime
        self._log = log
        self._path = path
        self._on_written = on_written
        self._on_failed = on_failed
        self.is_writing = False

    def write(self, content: bytes) -> None:
        assert not self.is_writing, "one write of the quorum state at a time"
        self.is_writing = True
        self._begin(content)

    def _begin(self, content: bytes) -> None:
        work = partial(write_file, self._runtime.disk, self._path, content)
        self._runtime.for_quorum(work).add_done_callback(partial(self._written, content))

    def _written(self, content: bytes, done: "asyncio.Future[None]") -> None:
        try:
            done.result()
        except OSError as e:
            failure = self._log.fail(e, "writing the quorum state of")
            if isinstance(failure, ExhaustedError):
                asyncio.get_running_loop().call_later(_RETRY_S, self._begin, content)
                return
            self.is_writing = False
            self._on_failed(failure)
            return
        self.is_writing = False
        self._on_written()
