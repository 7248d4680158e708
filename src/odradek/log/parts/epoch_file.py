"""leader-epoch-checkpoint: the leader epochs of a log on disk, and which version of them is durable there."""

from odradek.log.checkpoints import format_epochs
from odradek.log.files import write_file
from odradek.log.names import LEADER_EPOCH_CHECKPOINT
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.parts.partition_dir import PartitionDir


class LeaderEpochFile:
    """Epochs that begin need not be written at once: recovery finds them in the batches. Epochs that a
    truncation removed must be gone from the file before new records come."""

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
        """Write the epochs where the file lacks some; a sync of `path` makes them durable. Raises OSError."""
        if self._written != self.epochs.version:
            self._dir.changes += 1
            write_file(self._dir.disk, self.path, format_epochs(self.epochs.entries), sync=False)
            self._written = self.epochs.version

    def take_draft(self) -> tuple[str, bytes] | None:
        """What the caller has to write, and where; None where the file has it already."""
        if self._written == self.epochs.version:
            return None
        self._written = self.epochs.version
        self._dir.changes += 1
        return self.path, format_epochs(self.epochs.entries)

    def persist(self) -> None:
        """Write the epochs now, durably. Raises OSError."""
        if not self.is_durable:
            write_file(self._dir.disk, self.path, format_epochs(self.epochs.entries))
            self._written = self._durable = self.epochs.version

    def synced(self, version: int) -> None:
        """A sync has ended that began when the epochs had this version."""
        assert version <= self.epochs.version
        self._durable = max(self._durable, version)
