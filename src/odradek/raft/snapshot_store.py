"""The snapshot files of one metadata log directory: found, read, written whole, removed."""

from odradek.log.files import read_file, unlink_if_exists, write_file
from odradek.raft.snapshots import SnapshotId, parse_file_name
from odradek.runtime.api import Disk


class SnapshotStore:
    """Snapshot ids in ascending order; the newest is what a start begins with."""

    __slots__ = ("_disk", "_path", "ids")

    def __init__(self, disk: Disk, path: str) -> None:
        self._disk = disk
        self._path = path
        names = disk.listdir(path) if disk.exists(path) else []
        self.ids = sorted(found for name in names if (found := parse_file_name(name)) is not None)

    @property
    def newest(self) -> SnapshotId | None:
        return self.ids[-1] if self.ids else None

    def read(self, snapshot_id: SnapshotId) -> bytes:
        return read_file(self._disk, f"{self._path}/{snapshot_id.file_name}")

    def write(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """Durable when this returns. Touches only the disk, so it may run away from the event loop."""
        write_file(self._disk, f"{self._path}/{snapshot_id.file_name}", data)

    def written(self, snapshot_id: SnapshotId) -> None:
        if snapshot_id not in self.ids:
            self.ids = sorted([*self.ids, snapshot_id])

    def size_bytes(self, snapshot_id: SnapshotId) -> int:
        return self._disk.stat(f"{self._path}/{snapshot_id.file_name}").size

    def remove(self, snapshot_id: SnapshotId) -> None:
        self.ids.remove(snapshot_id)
        unlink_if_exists(self._disk, f"{self._path}/{snapshot_id.file_name}")
