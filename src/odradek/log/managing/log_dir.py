"""LogDir: one log directory with its lock, its meta.properties, its checkpoints and its failure."""

import logging
from collections.abc import Mapping

from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.checkpoints import (
    CheckpointError,
    MetaProperties,
    format_clean_shutdown,
    format_offsets,
    parse_clean_shutdown,
    parse_meta_properties,
    parse_offsets,
)
from odradek.log.files import read_file, unlink_if_exists, write_file
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)


class DirectoryInUseError(Exception):
    """Another node, in this process or another one, uses the directory."""


class DuplicateLogError(Exception):
    """Two log directories have a log of the same partition, and nothing says which one is valid."""


class LogDir:
    __slots__ = ("_disk", "_lock", "_written", "failure", "meta", "path", "previous_broker_epoch")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self.path = path
        self.failure: StorageError | None = None
        self.meta: MetaProperties | None = None
        self.previous_broker_epoch = -1
        self._lock: int | None = None
        self._written: dict[str, bytes] = {}

    def open(self) -> None:
        """Create the directory if it is missing, lock it, and read meta.properties.

        Raises DirectoryInUseError, CheckpointError for an invalid meta.properties, OSError.
        """
        disk = self._disk
        self._create()
        try:
            self._lock = disk.lock(f"{self.path}/{names.LOCK}")
        except BlockingIOError:
            raise DirectoryInUseError(
                f"Failed to acquire lock on file .lock in {self.path}. "
                "Another node, in this process or another one, is using this directory."
            ) from None
        content = self._read(names.META_PROPERTIES)
        if content is not None:
            try:
                self.meta = parse_meta_properties(content)
            except CheckpointError as e:
                raise CheckpointError(f"{self.path}/{names.META_PROPERTIES}: {e}") from None
        content = self._read(names.CLEAN_SHUTDOWN)
        if content is not None:
            self.previous_broker_epoch = parse_clean_shutdown(content)

    def _create(self) -> None:
        """Make the directory and its missing parents, durably: flushed records depend on them."""
        missing = []
        path = self.path
        while path and not self._disk.exists(path):
            missing.append(path)
            path = path.rpartition("/")[0]
        if missing:
            self._disk.makedirs(self.path)
            for path in reversed(missing):
                parent, slash, _ = path.rpartition("/")
                self._disk.fsync_dir(parent or slash or ".")

    def take_clean_shutdown(self) -> bool:
        """Whether the last stop was clean. It removes the mark: until the next clean stop the directory is
        not clean."""
        if unlink_if_exists(self._disk, f"{self.path}/{names.CLEAN_SHUTDOWN}"):
            # The mark must not come back after a crash, or the crash would count as a clean stop.
            self._disk.fsync_dir(self.path)
            return True
        return False

    def write_clean_shutdown(self, broker_epoch: int) -> None:
        write_file(self._disk, f"{self.path}/{names.CLEAN_SHUTDOWN}", format_clean_shutdown(broker_epoch))

    def take_offline(self, failure: StorageError) -> None:
        """Stop reading from and writing to the directory until the node is restarted."""
        self.failure = failure
        _log.error("Log directory %s is offline: %s", self.path, failure)

    def unlock(self) -> None:
        if self._lock is not None:
            self._disk.close(self._lock)
            self._lock = None

    def partition_dirs(self) -> list[tuple[str, TopicPartition, str]]:
        """(name, partition, "" or the suffix -delete, -stray or -future) of every partition's directory.

        A file may have such a name by chance: hs_err_pid-4711.
        """
        found = []
        for name in self._disk.listdir(self.path):
            parsed = names.parse_partition_dir(name)
            if parsed is not None and self._disk.stat(f"{self.path}/{name}").is_dir:
                found.append((name, *parsed))
        return found

    def read_offsets(self, name: str, *, expected: bool = False) -> dict[TopicPartition, int]:
        """The offsets of a checkpoint; empty if it is missing or invalid.

        `expected`: the last stop was clean, so the file must exist.
        """
        content = self._read(name)
        if content is None:
            if expected:
                _log.warning("%s/%s is missing, assuming 0 for every offset", self.path, name)
            return {}
        try:
            offsets = parse_offsets(content)
        except CheckpointError as e:
            _log.warning("%s/%s cannot be read, assuming 0 for every offset: %s", self.path, name, e)
            return {}
        self._written[name] = content
        return offsets

    def offsets_to_write(self, name: str, offsets: Mapping[TopicPartition, int]) -> tuple[str, bytes] | None:
        """(path, content) of a checkpoint that changed; otherwise None."""
        content = format_offsets(offsets)
        if self._written.get(name) == content:
            return None
        self._written[name] = content
        return f"{self.path}/{name}", content

    def offsets_unwritten(self, name: str) -> None:
        """A checkpoint could not be written: it counts as changed."""
        self._written.pop(name, None)

    def _read(self, name: str) -> bytes | None:
        try:
            return read_file(self._disk, f"{self.path}/{name}")
        except FileNotFoundError:
            return None
