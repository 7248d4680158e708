"""TopicIdSyncer: syncs the topic ids of new logs in another thread, so that the first append does not
wait."""

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
    """Syncs one group of logs at a time."""

    def __init__(self, disk: Disk, dirs: LogDirs, work: DiskWork) -> None:
        self._disk = disk
        self._dirs = dirs
        self._work = work
        self._waiting: deque[Log] = deque()
        self._is_syncing = False

    def add(self, log: Log) -> None:
        """Add a new log. `start` syncs its topic id."""
        self._waiting.append(log)

    def start(self) -> None:
        """Sync the topic ids of the waiting logs."""
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
        if not lacking:  # otherwise the next append to the log syncs it, or the next call of `start`
            self.start()


def _sync_all(disk: Disk, paths: Iterable[str]) -> list[OSError | None]:
    """The error of each path, or None. They may be in several log directories, of which one has failed."""
    errors: list[OSError | None] = []
    for path in paths:
        try:
            sync_topic_id(disk, path)
            errors.append(None)
        except OSError as e:
            errors.append(e)
    return errors
