"""Which epoch begins at which offset of the log, as Kafka's leader epoch cache answers it. Pure."""

from bisect import bisect_right
from collections.abc import Iterable

from odradek.raft.messages import EpochEnd


def _epoch(start: tuple[int, int]) -> int:
    return start[0]


def _start_offset(start: tuple[int, int]) -> int:
    return start[1]


class Epochs:
    """The epochs of a log that begins at the end of a snapshot, or with nothing.

    `origin_epoch` is the epoch of the last record before the log: the snapshot's that it begins with, or 0.
    """

    __slots__ = ("_starts", "last", "origin_epoch")

    def __init__(self, origin_epoch: int = 0, starts: Iterable[tuple[int, int]] = ()) -> None:
        self.origin_epoch = origin_epoch
        self.last = origin_epoch
        self._starts: list[tuple[int, int]] = []
        for epoch, start_offset in starts:
            self.append(epoch, start_offset)

    @property
    def starts(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._starts)

    def append(self, epoch: int, start_offset: int) -> None:
        """A batch of this epoch begins here."""
        if epoch == self.last and self._starts:
            return
        assert epoch >= self.last, f"epoch {epoch} after {self.last}"
        assert not self._starts or start_offset > self._starts[-1][1], f"epoch {epoch} at {start_offset}"
        self._starts.append((epoch, start_offset))
        self.last = epoch

    def truncate(self, end_offset: int) -> None:
        while self._starts and self._starts[-1][1] >= end_offset:
            self._starts.pop()
        self.last = self._starts[-1][0] if self._starts else self.origin_epoch

    def advance_start(self, offset: int, log_end_offset: int) -> None:
        """The log begins here now; what was before it is one epoch, that of the record before."""
        index = bisect_right(self._starts, offset - 1, key=_start_offset)
        if not index:
            return
        self.origin_epoch = self._starts[index - 1][0]
        next_start = self._starts[index][1] if index < len(self._starts) else log_end_offset
        self._starts[:index] = [(self.origin_epoch, offset)] if offset < next_start else []

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The newest epoch that is not above this one, and where it ends in a log of this length.

        Below all that is known: the origin, which ends where the first known epoch begins.
        """
        index = bisect_right(self._starts, epoch, key=_epoch)
        found = self._starts[index - 1][0] if index else min(self.origin_epoch, epoch)
        end = self._starts[index][1] if index < len(self._starts) else log_end_offset
        return EpochEnd(found, end)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at this offset."""
        index = bisect_right(self._starts, offset, key=_start_offset)
        return self._starts[index - 1][0] if index else self.origin_epoch
