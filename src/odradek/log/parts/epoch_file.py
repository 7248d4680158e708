"""leader-epoch-checkpoint: writes the leader epochs of a log, and knows which version is durable."""

from odradek.log.checkpoints import format_epochs
from odradek.log.files import write_file
from odradek.log.names import LEADER_EPOCH_CHECKPOINT
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.parts.partition_dir import PartitionDir


class LeaderEpochFile:
    """New epochs need not be written at once: recovery finds them in the batches. Epochs that a truncation
    removed must be removed from the file before new records are appended."""

    __slots__ = ("_dir", "_durable", "_written", "epochs")

    def __init__(self, directory: PartitionDir, epochs: EpochCache) -> None:
        self._dir = directory
        self.epochs = epochs
        self._written = self._durable = 0

    @property
    def path(self) -> str:
        return f"{self._dir.path}/{LEADER_EPOCH_CHECKPOINT}"

    @property
    def is_durable(self) -> bool:
        return self._durable == self.epochs.version

    def write(self) -> None:
        """Write the epochs if they changed. A sync of `path` makes them durable. Raises OSError."""
        if self._written != self.epochs.version:
            self._dir.changes += 1
            write_file(self._dir.disk, self.path, format_epochs(self.epochs.entries), sync=False)
            self._written = self.epochs.version

    def take_draft(self) -> tuple[str, bytes] | None:
        """(path, content) for the caller to write; None if the file is up to date."""
        if self._written == self.epochs.version:
            return None
        self._written = self.epochs.version
        self._dir.changes += 1
        return self.path, format_epochs(self.epochs.entries)

    def to_persist(self) -> tuple[str, bytes] | None:
        """(path, content) for the caller to write and sync; None if the epochs are durable."""
        return None if self.is_durable else (self.path, format_epochs(self.epochs.entries))

    def persisted(self, version: int) -> None:
        """The epochs of this version were written and synced."""
        self._written = max(self._written, version)
        self.synced(version)

    def synced(self, version: int) -> None:
        """A sync has ended. When it began, the epochs had this version."""
        assert version <= self.epochs.version
        self._durable = max(self._durable, version)
