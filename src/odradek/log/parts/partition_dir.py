"""The directory of one partition: where it lies, whether it still works, which changes to its entries a sync
has to cover. What the files in it hold is the business of the parts of a log."""

import logging
from collections.abc import Callable

from odradek.core.errors import ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log.files import FilePool

_log = logging.getLogger(__name__)


class PartitionDir:
    """After an I/O error nothing here is written or read any more: `failure` says why.

    `changes` counts the changes to the entries of the directory. A sync that began at a count covers them up
    to that count.
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
        """The log directory that this one lies in. A partition's directory that is renamed stays there."""
        self.topic_partition = topic_partition
        self.failure: StorageError | None = None
        self.on_failed: Callable[[str, StorageError], None] | None = None
        # Whether the entries so far, and the directory's own in the log directory, are durable is not known.
        self.changes = 1
        self.changes_durable = 0

    # --- failure --------------------------------------------------------------------------------------

    def fail(self, error: OSError, doing: str, *, halfway: bool = False) -> KafkaError:
        """The disk failed: the log is not used again until a restart looks at what is left.

        Where only descriptors or memory have run out, nothing was done and the log goes on; and where that
        left it `halfway`, this log alone is given up, not its log directory.
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
        """The directories that a sync has to cover: the first one includes the directory's own entry."""
        if not self.has_unsynced_changes:
            return []
        return [self.path, self.log_dir] if self.changes_durable == 0 else [self.path]

    def synced(self, changes: int) -> None:
        """A sync has ended that began when `changes` stood at this count."""
        assert changes <= self.changes, f"{self.path}: change {changes} of {self.changes} is durable"
        self.changes_durable = max(self.changes_durable, changes)

    def rename(self, path: str) -> None:
        """Raises StorageError, ExhaustedError."""
        try:
            self.disk.rename(self.path, path)
        except OSError as e:
            raise self.fail(e, "renaming") from e
        self.path = path
