"""The log as the machine knows it: offsets and epochs, no records. Pure."""

from typing import NamedTuple

from odradek.raft.epochs import Epochs
from odradek.raft.messages import EpochEnd
from odradek.raft.snapshots import SnapshotId


class LogView(NamedTuple):
    """A log as it was found at the start.

    flushed_offset  how far it is known to be durable; nothing is acknowledged before all of it is
    epochs          (epoch, start offset) as in the leader epoch cache
    origin_epoch    the epoch of the last record before the log: that of the snapshot it begins with, or 0
    snapshot_id     the newest snapshot
    """

    start_offset: int = 0
    end_offset: int = 0
    flushed_offset: int = 0
    epochs: tuple[tuple[int, int], ...] = ()
    origin_epoch: int = 0
    snapshot_id: SnapshotId | None = None


def begins_again(view: LogView) -> bool:
    """Whether the newest snapshot replaces the log: it ends behind the log, or is no prefix of it.

    The node died between a fetched snapshot and the end of the reset that follows it: the log may be empty
    already, and its epochs not yet. Reset the log before the machine is made.
    """
    snapshot = view.snapshot_id
    if snapshot is None:
        return False
    if not view.start_offset <= snapshot.end_offset <= view.end_offset:
        return True
    if view.start_offset == view.end_offset and view.epochs:
        return view.epochs[-1][0] != snapshot.epoch
    epochs = Epochs(view.origin_epoch, view.epochs)
    return snapshot.end_offset > 0 and epochs.epoch_at(snapshot.end_offset - 1) != snapshot.epoch


class LogState:
    """start <= flushed <= appended <= end. Appended is what the page cache has, end what was asked for."""

    __slots__ = ("appended_offset", "end_offset", "epochs", "flushed_offset", "snapshot_id", "start_offset")

    def __init__(self, view: LogView) -> None:
        assert not begins_again(view), f"reset the log to {view.snapshot_id} first"
        self.start_offset = view.start_offset
        self.end_offset = self.appended_offset = view.end_offset
        self.flushed_offset = view.flushed_offset
        starts = (start for start in view.epochs if start[1] < view.end_offset)
        self.epochs = Epochs(view.origin_epoch, starts)
        self.snapshot_id = view.snapshot_id
        self.check()

    def check(self) -> None:
        assert self.start_offset <= self.flushed_offset <= self.appended_offset <= self.end_offset, repr(self)

    def __repr__(self) -> str:
        return (
            f"log {self.start_offset}..{self.end_offset}, appended {self.appended_offset}, "
            f"flushed {self.flushed_offset}, epochs {self.epochs.starts}, snapshot {self.snapshot_id}"
        )

    def append(self, base_offset: int, end_offset: int, epoch: int) -> None:
        assert base_offset == self.end_offset < end_offset, f"{base_offset}..{end_offset} after {self!r}"
        self.epochs.append(epoch, base_offset)
        self.end_offset = end_offset

    def appended(self, end_offset: int) -> None:
        assert end_offset <= self.end_offset, f"{end_offset} beyond {self!r}"
        self.appended_offset = max(self.appended_offset, end_offset)

    def flushed(self, end_offset: int) -> None:
        """A flush that began before a truncation reports an end that is no more."""
        self.appended_offset = max(self.appended_offset, min(end_offset, self.end_offset))
        self.flushed_offset = max(self.flushed_offset, min(end_offset, self.end_offset))
        self.check()

    def truncate(self, end_offset: int) -> None:
        assert self.start_offset <= end_offset < self.end_offset, f"truncate {self!r} to {end_offset}"
        self.epochs.truncate(end_offset)
        self.end_offset = end_offset
        self.appended_offset = min(self.appended_offset, end_offset)
        self.flushed_offset = min(self.flushed_offset, end_offset)
        self.check()

    def reset(self, snapshot_id: SnapshotId) -> None:
        """Begin again behind a snapshot."""
        self.start_offset = self.end_offset = snapshot_id.end_offset
        self.appended_offset = self.flushed_offset = snapshot_id.end_offset
        self.epochs = Epochs(snapshot_id.epoch)
        self.snapshot_id = snapshot_id

    def advance_start(self, offset: int) -> None:
        snapshot = self.snapshot_id
        assert snapshot is not None, "without a snapshot the log begins with its first record"
        assert self.start_offset <= offset <= snapshot.end_offset, f"begin {self!r} at {offset}"
        self.epochs.advance_start(offset, self.end_offset)
        self.start_offset = offset

    def position_of(self, offset: int, epoch: int) -> "EpochEnd | SnapshotId | None":
        """None: this log has the records before an offset whose last one is of an epoch.

        Else where it diverges, or the snapshot with which to begin, as RaftLog.validateOffsetAndEpoch.
        """
        snapshot = self.snapshot_id
        if snapshot is not None and snapshot.end_offset > 0:
            start = self.start_offset
            if offset == 0 or offset < start or epoch < self.epochs.origin_epoch:
                return snapshot
            if offset == start and start and epoch != self.epochs.origin_epoch:
                return snapshot
        found = self.epochs.end_offset_for(epoch, self.end_offset)
        return None if found.epoch == epoch and found.end_offset >= offset else found
