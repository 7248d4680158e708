"""Truncations: truncates logs with the syncs in other threads, those of many logs together.

After an election thousands of followers may truncate at the same time. Each has two syncs, and one checkpoint
is lowered for all of them. parts/truncating.py has the steps.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from functools import partial

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log import names
from odradek.log.log import Log
from odradek.log.managing.checkpointing import Checkpointer
from odradek.log.managing.disk_work import DiskWork
from odradek.log.managing.log_dirs import LogDirs
from odradek.log.opening.steps import Steps
from odradek.runtime.reply import Reply


class _Truncation:
    __slots__ = ("begin", "done", "log", "step", "steps")

    def __init__(self, log: Log, begin: Callable[[], Steps[bool]]) -> None:
        self.log = log
        self.begin = begin
        self.steps: Steps[bool]
        self.step: Callable[[], object]
        self.done: asyncio.Future[None] = asyncio.get_running_loop().create_future()


class Truncations:
    """One truncation of a log at a time. Steps that are due in the same turn run together, and those that
    become due meanwhile run together after them."""

    def __init__(self, dirs: LogDirs, work: DiskWork, checkpointer: Checkpointer) -> None:
        self._dirs = dirs
        self._work = work
        self._checkpointer = checkpointer
        self._of: dict[Log, deque[_Truncation]] = {}
        self._due: list[_Truncation] = []
        self._is_running = False
        self._lowered: dict[str, list[_Truncation]] = {}

    @property
    def is_running(self) -> bool:
        """Whether a sync is due or in progress."""
        return self._is_running

    def begin(self, log: Log, begin: Callable[[], Steps[bool]]) -> Reply[None]:
        truncation = _Truncation(log, begin)
        of_log = self._of.setdefault(log, deque())
        of_log.append(truncation)
        if len(of_log) == 1:
            self._start(truncation)
        return Reply.later(truncation.done)

    def _start(self, truncation: _Truncation) -> None:
        truncation.steps = truncation.begin()
        self._advance(truncation)
        self._lower()

    def _advance(self, truncation: _Truncation) -> None:
        """The code up to the next sync."""
        log = truncation.log
        if not self._dirs.is_current(log):  # its files are renamed, soon removed
            self._end(truncation, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            return
        try:
            log.check_online()
            truncation.step = next(truncation.steps)
        except StopIteration as done:
            if done.value:
                self._lowered.setdefault(log.directory, []).append(truncation)
            else:
                self._end(truncation)
        except OSError as e:
            self._end(truncation, log.truncator.failed(e))
        except KafkaError as e:
            self._end(truncation, e)
        else:
            self._due.append(truncation)
            if not self._is_running:
                self._is_running = True
                asyncio.get_running_loop().call_soon(self._run_due)

    def _run_due(self) -> None:
        due, self._due = self._due, []
        steps = [truncation.step for truncation in due]
        self._work.then(partial(_run_all, steps), partial(self._ran, due))

    def _ran(self, truncations: list[_Truncation], done: "asyncio.Future[list[OSError | None]]") -> None:
        for truncation, error in zip(truncations, done.result(), strict=True):
            if error is not None and self._dirs.is_current(truncation.log):
                self._end(truncation, truncation.log.truncator.failed(error))
            else:
                self._advance(truncation)
        self._lower()
        if self._due:
            self._run_due()
        else:
            self._is_running = False

    def _lower(self) -> None:
        """Lower the recovery point checkpoints: new records must not count as durable."""
        lowered, self._lowered = self._lowered, {}
        for truncations in lowered.values():
            directory = self._dirs.directory_of(truncations[0].log)
            then = partial(self._checkpointed, truncations)
            self._checkpointer.write(directory, names.RECOVERY_POINT_CHECKPOINT, then)

    def _checkpointed(self, truncations: list[_Truncation]) -> None:
        for truncation in truncations:
            self._end(truncation, truncation.log.failure)

    def _end(self, truncation: _Truncation, error: KafkaError | None = None) -> None:
        log, of_log = truncation.log, self._of[truncation.log]
        truncation.steps.close()
        assert of_log.popleft() is truncation
        if of_log:
            self._start(of_log[0])
        else:
            del self._of[log]
            log.truncator.is_truncating = False
        if truncation.done.cancelled():
            return
        if error is None:
            truncation.done.set_result(None)
        else:
            truncation.done.set_exception(error)


def _run_all(steps: list[Callable[[], object]]) -> list[OSError | None]:
    """The error of each step, or None. The logs may be in several directories, of which one has failed."""
    errors: list[OSError | None] = []
    for step in steps:
        try:
            step()
            errors.append(None)
        except OSError as e:
            errors.append(e)
    return errors
