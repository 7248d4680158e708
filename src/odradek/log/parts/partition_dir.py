"""PartitionDir: the directory of one partition, its failure, and which changes to its entries need a sync."""

import logging
from collections.abc import Callable

from odradek.core.errors import ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log.files import FilePool

_log = logging.getLogger(__name__)


class PartitionDir:
    """After an I/O error nothing is written or read here: `failure` has the reason.

    `changes` counts the changes to the directory's entries. A sync covers the changes up to the count at its
    start.
    """

    __slots__ = (
        "changes",
        "changes_durable",
        "disk",
        "failure",
        "log_dir",
        "on_failed",
        "path",
        "pool",
        "topic_partition",
    )

    def __init__(self, pool: FilePool, path: str, topic_partition: TopicPartition) -> None:
        self.pool = pool
        self.disk = pool.disk
        self.path = path
        self.log_dir = path.rpartition("/")[0]
        """The log directory that contains this one. A rename does not change it."""
        self.topic_partition = topic_partition
        self.failure: StorageError | None = None
        self.on_failed: Callable[[str, StorageError], None] | None = None
        # It is unknown whether the existing entries, and the directory's own entry, are durable.
        self.changes = 1
        self.changes_durable = 0

    # --- failure --------------------------------------------------------------------------------------

    def fail(self, error: OSError, doing: str, *, halfway: bool = False) -> KafkaError:
        """The disk failed: the log is unusable until a restart.

        If only descriptors or memory ran out, nothing was done, and the log stays usable. If that interrupted
        a change (`halfway`), this log is unusable, but its log directory stays online.
        """
        message = f"Error while {doing} {self.topic_partition} in {self.path}: {error}"
        if is_exhausted(error):
            _log.warning("Out of file descriptors or memory. %s", message)
            if not halfway:
                return ExhaustedError(message)
        failure = StorageError(message)
        failure.__cause__ = error
        if self.failure is None:
            self.failure = failure
            if self.on_failed is not None and not is_exhausted(error):
                self.on_failed(self.log_dir, failure)
        return failure

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    # --- entries --------------------------------------------------------------------------------------

    @property
    def has_unsynced_changes(self) -> bool:
        return self.changes_durable < self.changes

    def to_sync(self) -> list[str]:
        """The directories to sync. The first sync includes the log directory, for this directory's own
        entry."""
        if not self.has_unsynced_changes:
            return []
        return [self.path, self.log_dir] if self.changes_durable == 0 else [self.path]

    def synced(self, changes: int) -> None:
        """A sync has ended. When it began, `changes` had this value."""
        assert changes <= self.changes, f"{self.path}: change {changes} of {self.changes} is durable"
        self.changes_durable = max(self.changes_durable, changes)

    def rename(self, path: str) -> None:
        """Raises StorageError, ExhaustedError."""
        try:
            self.disk.rename(self.path, path)
        except OSError as e:
            raise self.fail(e, "renaming") from e
        self.path = path
