"""Checkpointer: writes the offset checkpoints of the log directories, if they changed, in another thread.

If only descriptors or memory ran out, it retries later.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial

from odradek.core.errors import ExhaustedError
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.files import write_file
from odradek.log.log import Log
from odradek.log.managing.disk_work import RETRY_S, DiskWork
from odradek.log.managing.log_dir import LogDir
from odradek.log.managing.log_dirs import LogDirs
from odradek.runtime.api import Disk
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, Paced, Slices, at_once

_log = logging.getLogger(__name__)


class Checkpointer:
    """One write of a file at a time. If the offsets change during a write, the file is written once more."""

    def __init__(self, disk: Disk, dirs: LogDirs, work: DiskWork, slices: Slices) -> None:
        self._disk = disk
        self._dirs = dirs
        self._work = work
        self._slices = slices
        self._writing: dict[tuple[str, str], bool] = {}  # whether to write it once more
        self._retries: dict[tuple[str, str], asyncio.TimerHandle] = {}
        # Who waits for the write in progress, and for the one after it.
        self._waiting: dict[tuple[str, str], list[Callable[[], None]]] = {}
        self._next: dict[tuple[str, str], list[Callable[[], None]]] = {}

    @property
    def is_writing(self) -> bool:
        return bool(self._writing)

    def write_all(self, name: str) -> None:
        """Write a checkpoint in every online directory."""
        for directory in self._dirs.online():
            self.write(directory, name)

    def write(self, directory: LogDir, name: str, then: Callable[[], None] | None = None) -> None:
        """Write a checkpoint of a directory, in another thread. Then the offsets of now are durable, or the
        directory is offline."""
        key = (directory.path, name)
        if then is not None:
            self._next.setdefault(key, []).append(then)
        if key in self._writing:
            self._writing[key] = True
            return
        self._writing[key] = False
        self._waiting[key] = self._next.pop(key, [])
        gathering = self._slices.run(self._offsets(directory, name), own=True)
        gathering.when_ready(partial(self._gathered, directory, name))

    def _gathered(self, directory: LogDir, name: str, gathered: Reply[dict[TopicPartition, int]]) -> None:
        key = (directory.path, name)
        if gathered.error is not None:
            del self._writing[key]
            raise gathered.error
        news = directory.offsets_to_write(name, gathered.value) if directory.failure is None else None
        if news is not None:
            self._work.then(partial(write_file, self._disk, *news), partial(self._written, directory, name))
        else:
            self._ended(directory, name, self._writing.pop(key))

    def _written(self, directory: LogDir, name: str, done: "asyncio.Future[None]") -> None:
        key = (directory.path, name)
        again = self._writing.pop(key)
        try:
            done.result()
        except OSError as e:
            self._next.setdefault(key, []).extend(self._waiting.pop(key))
            self._failed(directory, name, e)
            if directory.failure is None:
                return
        self._ended(directory, name, again)

    def _ended(self, directory: LogDir, name: str, again: bool) -> None:
        """A write has ended, or was not needed. Nothing is written into an offline directory any more."""
        key = (directory.path, name)
        ended = self._waiting.pop(key, [])
        if directory.failure is not None:
            ended += self._next.pop(key, [])
        elif again:
            self.write(directory, name)
        for then in ended:
            then()

    def write_now(self, directory: LogDir, name: str) -> None:
        """Write a checkpoint of a directory synchronously. Raises OSError."""
        news = directory.offsets_to_write(name, at_once(self._offsets(directory, name)))
        if news is not None:
            write_file(self._disk, *news)

    def truncated(self, topic_partition: TopicPartition) -> None:
        """Lower the recovery point checkpoint at once. If it is being written, it is written once more."""
        directory = self._dirs.directory_of(self._dirs.logs[topic_partition])
        name = names.RECOVERY_POINT_CHECKPOINT
        if (directory.path, name) in self._writing:
            self.write(directory, name)
            return
        try:
            self.write_now(directory, name)
        except OSError as e:
            self._failed(directory, name, e)

    def _failed(self, directory: LogDir, name: str, error: OSError) -> None:
        """Retry soon, because the offsets in the file may be too high."""
        message, key = f"Error while writing {directory.path}/{name}: {error}", (directory.path, name)
        if isinstance(self._dirs.failed_in(directory, message, error), ExhaustedError):
            _log.warning("Out of file descriptors or memory, retrying. %s", message)
            directory.offsets_unwritten(name)
            if key not in self._retries:
                loop = asyncio.get_running_loop()
                self._retries[key] = loop.call_later(RETRY_S, self._write_again, directory, name)

    def _write_again(self, directory: LogDir, name: str) -> None:
        del self._retries[directory.path, name]
        if directory.failure is None:
            self.write(directory, name)

    def stop(self) -> None:
        """Cancel all retries."""
        for timer in self._retries.values():
            timer.cancel()

    def _offsets(self, directory: LogDir, name: str) -> Paced[dict[TopicPartition, int]]:
        """The offsets of a checkpoint of a directory."""
        offsets = {}
        for tp, log in list(self._dirs.logs.items()):
            yield 2 * FEW
            if log.directory == directory.path and self._dirs.logs.get(tp) is log:
                offset = checkpointed_offset(log, name)
                if offset is not None:
                    offsets[tp] = offset
        return offsets


def checkpointed_offset(log: Log, name: str) -> int | None:
    """The offset of a log in a checkpoint; None if a restart does not need it."""
    if name == names.RECOVERY_POINT_CHECKPOINT:
        return log.durability.restart_offset
    if name == names.HIGH_WATERMARK_CHECKPOINT:
        return log.high_watermark
    if name == names.CLEANER_CHECKPOINT:
        return log.cleaned_offset
    begins_inside = log.log_start_offset > log.segments.first.base_offset
    return log.log_start_offset if begins_inside else None
