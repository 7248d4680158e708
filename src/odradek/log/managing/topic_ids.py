"""The topic ids of new logs, made durable away from the loop: the first append to a log need not wait."""

import asyncio
from collections import deque
from collections.abc import Iterable
from functools import partial
from typing import Final

from odradek.core.errors import ExhaustedError
from odradek.log.log import Log
from odradek.log.managing.disk_work import DiskWork
from odradek.log.managing.log_dirs import LogDirs
from odradek.log.parts.partition_metadata import sync_topic_id
from odradek.runtime.api import Disk

_AT_ONCE: Final = 16


class TopicIdSyncer:
    """One group of logs at a time."""

    def __init__(self, disk: Disk, dirs: LogDirs, work: DiskWork) -> None:
        self._disk = disk
        self._dirs = dirs
        self._work = work
        self._waiting: deque[Log] = deque()
        self._is_syncing = False

    def add(self, log: Log) -> None:
        """A log was begun; `start` sees to it."""
        self._waiting.append(log)

    def start(self) -> None:
        """Sync the topic ids of the logs that wait for it."""
        if self._is_syncing:
            return
        while self._waiting:
            logs = [self._waiting.popleft() for _ in range(min(_AT_ONCE, len(self._waiting)))]
            logs = [log for log in logs if not log.metadata.is_durable and self._dirs.is_usable(log)]
            if logs:
                self._is_syncing = True
                paths = [log.path for log in logs]
                self._work.then(partial(_sync_all, self._disk, paths), partial(self._synced, logs))
                return

    def _synced(self, logs: list[Log], done: "asyncio.Future[list[OSError | None]]") -> None:
        self._is_syncing = False
        lacking = False
        for log, error in zip(logs, done.result(), strict=True):
            if not self._dirs.is_usable(log):
                continue
            if error is None:
                log.metadata.persisted()
            elif isinstance(log.fail(error, "writing the topic id of"), ExhaustedError):
                lacking = True
                self._waiting.append(log)
        if not lacking:  # else the next append to each sees to it, or the next log that is begun
            self.start()


def _sync_all(disk: Disk, paths: Iterable[str]) -> list[OSError | None]:
    """What went wrong with each: they may lie in several log directories, of which one has failed."""
    errors: list[OSError | None] = []
    for path in paths:
        try:
            sync_topic_id(disk, path)
            errors.append(None)
        except OSError as e:
            errors.append(e)
    return errors
