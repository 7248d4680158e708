"""A snapshot on its way from the leader: its pieces, put together and checked.

Nothing of it is on the disk before it is whole, so that nobody can take half a snapshot for one.
"""

from odradek.core.types import Buffer
from odradek.raft.snapshots import Snapshot, SnapshotError, SnapshotId, read_snapshot
from odradek.records import kernel
from odradek.records.header import BatchMeta


class IncomingSnapshot:
    """The bytes that came so far."""

    __slots__ = ("_data", "snapshot_id")

    def __init__(self, snapshot_id: SnapshotId) -> None:
        self.snapshot_id = snapshot_id
        self._data = bytearray()

    def add(self, snapshot_id: SnapshotId, position: int, data: Buffer) -> None:
        """A piece. One that came before, or that belongs to another snapshot, changes nothing."""
        if snapshot_id == self.snapshot_id and position == len(self._data):
            self._data += data

    def finish(self) -> tuple[bytes, Snapshot]:
        """All of it. SnapshotError where it is not whole, or damaged."""
        data = bytes(self._data)
        return data, checked_snapshot(data)


def checked_snapshot(data: bytes) -> Snapshot:
    """What a snapshot says of the quorum, once every batch of it is found good. SnapshotError."""
    _, position, finding = kernel.scan_segment(data, BatchMeta)
    if finding != kernel.OK:
        raise SnapshotError(f"the snapshot has no good batch at byte {position} of {len(data)}")
    return read_snapshot(data, lambda data, batch: None)
