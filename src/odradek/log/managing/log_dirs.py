"""LogDirs: the log directories of a node and their logs, online or offline."""

from collections.abc import Callable, Sequence

from odradek.core.errors import ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.managing.log_dir import LogDir
from odradek.runtime.api import Disk


class LogDirs:
    """A directory that fails goes offline with its logs. The others stay online.

    `on_offline` is called with the path of a directory that failed, and the reason.
    """

    def __init__(self, disk: Disk, paths: Sequence[str]) -> None:
        self.directories = [LogDir(disk, path.rstrip("/")) for path in paths]
        self.logs: dict[TopicPartition, Log] = {}
        self.on_offline: Callable[[str, StorageError], None] | None = None

    def online(self) -> list[LogDir]:
        return [directory for directory in self.directories if directory.failure is None]

    def require_online(self) -> None:
        """Raises StorageError if no directory is online."""
        if not self.online():
            failure = self.directories[0].failure
            assert failure is not None
            raise failure

    def directory_of(self, log: Log) -> LogDir:
        return next(directory for directory in self.directories if directory.path == log.directory)

    def is_current(self, log: Log) -> bool:
        """Whether this is the current log of its partition: not deleted, not replaced."""
        return self.logs.get(log.topic_partition) is log

    def is_usable(self, log: Log) -> bool:
        """Whether chores may change its files."""
        is_current = self.logs.get(log.topic_partition) is log
        return is_current and log.failure is None and not log.is_truncating

    # --- failure --------------------------------------------------------------------------------------

    def log_failed(self, path: str, failure: StorageError) -> None:
        """The disk failed for a log in the directory at a path."""
        for directory in self.directories:
            if directory.path == path:
                self.take_offline(directory, failure)

    def take_offline(self, directory: LogDir, failure: StorageError) -> None:
        """Take a directory and its logs offline: nothing is read from or written to them after this.

        This marks all logs at once, which is cheap. `on_offline` may do the rest in slices.
        """
        if directory.failure is not None:
            return
        directory.take_offline(failure)
        for log in self.logs.values():
            if log.directory == directory.path and log.failure is None:
                log.partition_dir.failure = failure
        if self.on_offline is not None:
            self.on_offline(directory.path, failure)

    def failed_in(self, directory: LogDir, message: str, error: OSError | KafkaError) -> KafkaError:
        """The error to raise for an error in a directory. The directory goes offline, unless only descriptors
        or memory ran out."""
        if is_exhausted(error):
            return ExhaustedError(message)
        failure = StorageError(message)
        self.take_offline(directory, failure)
        return failure
