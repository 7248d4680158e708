"""Deleter: renames the directories of deleted logs at once, and removes their files after
file.delete.delay.ms.

If only descriptors or memory ran out, it retries. Until the deletion is done, no new log is created in its
place.
"""

import logging
import uuid
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Final

from odradek.core.errors import ExhaustedError, StorageError
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.files import remove_tree, unlink_if_exists
from odradek.log.log import Log
from odradek.log.managing.disk_work import DiskWork
from odradek.log.managing.log_dir import LogDir
from odradek.log.managing.log_dirs import LogDirs
from odradek.runtime.api import Disk, Runtime
from odradek.runtime.slices import FEW, Paced, Slices

_log = logging.getLogger(__name__)

_CLEARED: Final = 400  # calls; most of the time goes to the disk
_REMOVED_AT_ONCE: Final = 16


class Deleter:
    """Deletes logs, and removes leftovers that block the creation of a log."""

    def __init__(self, runtime: Runtime, dirs: LogDirs, work: DiskWork, slices: Slices) -> None:
        self._runtime = runtime
        self._disk = runtime.disk
        self._dirs = dirs
        self._work = work
        self._slices = slices
        self._deleted: list[tuple[int, Log]] = []
        # The directory where a creation has begun and failed: the log must not be created in another one.
        self.begun: dict[TopicPartition, LogDir] = {}
        # Leftovers of deleted logs that block a new log of the same name, and how to remove them.
        self._in_the_way: dict[TopicPartition, Callable[[], None]] = {}

    def delete(self, topic_partition: TopicPartition) -> None:
        """Delete a log, or the rest of one, now. Its files are removed after file.delete.delay.ms.

        If its directory cannot be renamed, the log directory goes offline, and the next start finds a stray
        log.
        """
        log, begun = self._dirs.logs.pop(topic_partition, None), self.begun.pop(topic_partition, None)
        if log is not None:
            self._in_the_way[topic_partition] = partial(self._delete_soon, log)
        elif begun is not None:
            self._in_the_way[topic_partition] = partial(self._remove_begun, begun, topic_partition)
        try:
            self.clear_way(topic_partition)
        except ExhaustedError as e:
            _log.warning("Cannot delete %s yet: %s", topic_partition, e.message)

    def clear_way(self, topic_partition: TopicPartition) -> None:
        """Remove leftovers that block the creation of a log. Raises ExhaustedError."""
        remove = self._in_the_way.get(topic_partition)
        if remove is not None:
            try:
                remove()
            except StorageError as e:
                _log.error("Cannot delete %s: %s", topic_partition, e.message)
            del self._in_the_way[topic_partition]

    def _delete_soon(self, log: Log) -> None:
        """Rename the log's directory. The log itself may have failed, but its log directory must be
        online."""
        if self._dirs.directory_of(log).failure is None:
            self.set_aside(log, names.DELETE_DIR_SUFFIX)
            self.delete_later(log)

    def _remove_begun(self, directory: LogDir, topic_partition: TopicPartition) -> None:
        path = f"{directory.path}/{topic_partition}"
        if directory.failure is None:
            try:
                remove_tree(self._disk, path)
            except OSError as e:
                raise self._dirs.failed_in(directory, f"Error while deleting {path}: {e}", e) from e

    def delete_later(self, log: Log) -> None:
        """Remove a log's directory after file.delete.delay.ms. It is already renamed."""
        self._deleted.append((self._runtime.clock.steady_ms() + log.config.file_delete_delay_ms, log))

    def set_aside(self, log: Log, suffix: str) -> None:
        """Rename a log's directory, so that its name is free. Raises StorageError, ExhaustedError."""
        unique = uuid.UUID(bytes=self._runtime.rng.randbytes(16), version=4).hex
        log.move(f"{log.directory}/{names.set_aside_dir(log.topic_partition, unique, suffix)}")

    # --- files ----------------------------------------------------------------------------------------

    async def remove_due(self) -> None:
        """Remove the files of deleted logs and segments whose delay has passed, in another thread."""
        await self._slices.run(self._clear_ways(), own=True)
        now_ms = self._runtime.clock.steady_ms()
        logs = deque(entry for entry in self._deleted if entry[0] <= now_ms)
        self._deleted = [entry for entry in self._deleted if entry[0] > now_ms]
        while logs:
            await self._remove_logs([logs.popleft() for _ in range(min(_REMOVED_AT_ONCE, len(logs)))])
        due = deque((await self._slices.run(self._deleted_segments(), own=True)).items())
        while due:
            await self._remove_segments(dict(due.popleft() for _ in range(min(_REMOVED_AT_ONCE, len(due)))))

    def _clear_ways(self) -> Paced[None]:
        for topic_partition in list(self._in_the_way):
            yield _CLEARED
            try:
                self.clear_way(topic_partition)
            except ExhaustedError:
                continue

    async def _remove_logs(self, entries: list[tuple[int, Log]]) -> None:
        here = [entry for entry in entries if self._dirs.directory_of(entry[1]).failure is None]
        for _, log in here:
            log.let_go()
        paths = [[log.path] for _, log in here]
        removed = await self._work.in_background(partial(_remove_all, self._disk, remove_tree, paths))
        for entry, error in zip(here, removed, strict=True):
            if error is not None:
                failure = entry[1].fail(error, "deleting")
                if isinstance(failure, ExhaustedError):
                    self._deleted.append(entry)
                else:
                    _log.error("%s", failure)

    def _deleted_segments(self) -> Paced[dict[Log, list[str]]]:
        found = {}
        now_ms = self._runtime.clock.steady_ms()
        for log in list(self._dirs.logs.values()):
            yield 2 * FEW
            if self._dirs.is_usable(log):
                paths = log.local_log.take_deleted(now_ms)
                if paths:
                    found[log] = paths
        return found

    async def _remove_segments(self, due: dict[Log, list[str]]) -> None:
        removed = await self._work.in_background(
            partial(_remove_all, self._disk, unlink_if_exists, list(due.values()))
        )
        for (log, paths), error in zip(due.items(), removed, strict=True):
            if error is not None and self._dirs.is_usable(log):
                log.local_log.give_back_deleted(paths)
                log.fail(error, "deleting files of")


def _remove_all(
    disk: Disk, remove: Callable[[Disk, str], object], groups: list[list[str]]
) -> list[OSError | None]:
    """The error of each group, or None. The groups may be in several log directories, of which one has
    failed."""
    errors: list[OSError | None] = []
    for paths in groups:
        try:
            for path in paths:
                remove(disk, path)
            errors.append(None)
        except OSError as e:
            errors.append(e)
    return errors
