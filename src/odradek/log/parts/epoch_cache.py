"""EpochCache: the start offset of each leader epoch of a log. Pure. epoch_file.py writes it to disk."""

from bisect import bisect_right
from collections.abc import Iterable

from odradek.core.types import NO_LEADER_EPOCH, NO_OFFSET


class EpochCache:
    """(epoch, start offset), both ascending. `version` counts the changes."""

    __slots__ = ("_epochs", "_starts", "latest", "version")

    def __init__(self, entries: Iterable[tuple[int, int]] = ()) -> None:
        self._epochs: list[int] = []
        self._starts: list[int] = []
        self.latest = NO_LEADER_EPOCH
        self.version = 0
        for epoch, start in entries:
            self.assign(epoch, start)
        self.version = 0

    @property
    def entries(self) -> list[tuple[int, int]]:
        return list(zip(self._epochs, self._starts, strict=True))

    @property
    def earliest(self) -> tuple[int, int] | None:
        return (self._epochs[0], self._starts[0]) if self._epochs else None

    def assign(self, epoch: int, start_offset: int) -> None:
        """Start an epoch at an offset. A known epoch keeps its start. Contradicting entries are removed."""
        if epoch < 0 or start_offset < 0:
            raise ValueError(f"epoch {epoch} cannot begin at {start_offset}")
        if epoch == self.latest and start_offset >= self._starts[-1]:
            return
        while self._epochs and (self._epochs[-1] >= epoch or self._starts[-1] >= start_offset):
            self._epochs.pop()
            self._starts.pop()
        self._epochs.append(epoch)
        self._starts.append(start_offset)
        self._changed()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> tuple[int, int]:
        """(newest epoch at or before the given one, its end offset); -1 for both if unknown."""
        if epoch == NO_LEADER_EPOCH or not self._epochs:
            return NO_LEADER_EPOCH, NO_OFFSET
        if epoch == self.latest:
            return epoch, log_end_offset
        after = bisect_right(self._epochs, epoch)
        if after == len(self._epochs):
            return NO_LEADER_EPOCH, NO_OFFSET
        if after == 0:
            # All known epochs are later: the given one ended where the first known one starts.
            return epoch, self._starts[0]
        return self._epochs[after - 1], self._starts[after]

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove epochs that start at or after an offset."""
        while self._starts and self._starts[-1] >= end_offset:
            self._epochs.pop()
            self._starts.pop()
            self._changed()

    def truncate_from_start(self, start_offset: int) -> None:
        """Remove epochs that end at or before an offset. The epoch that contains it starts there."""
        at = bisect_right(self._starts, start_offset) - 1
        if at < 0 or self._starts[at] == start_offset == self._starts[0]:
            return
        del self._epochs[:at]
        del self._starts[:at]
        self._starts[0] = start_offset
        self._changed()

    def clear(self) -> None:
        self._epochs.clear()
        self._starts.clear()
        self._changed()

    def _changed(self) -> None:
        self.latest = self._epochs[-1] if self._epochs else NO_LEADER_EPOCH
        self.version += 1
