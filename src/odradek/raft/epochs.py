"""Which epoch begins at which offset of the log, as Kafka's leader epoch cache answers it. Pure."""

from bisect import bisect_right

from odradek.raft.messages import EpochEnd


class Epochs:
    """The epochs of a log that begins at the end of a snapshot, or with nothing.

    `origin_epoch` is the epoch of the last record before the log: the snapshot's that it begins with, or 0.
    """

    __slots__ = ("_starts", "origin_epoch")

    def __init__(self, origin_epoch: int = 0, starts: "tuple[tuple[int, int], ...]" = ()) -> None:
        self.origin_epoch = origin_epoch
        self._starts: list[tuple[int, int]] = []
        for epoch, start_offset in starts:
            self.append(epoch, start_offset)

    @property
    def last(self) -> int:
        return self._starts[-1][0] if self._starts else self.origin_epoch

    @property
    def starts(self) -> tuple[tuple[int, int], ...]:
        return tuple(self._starts)

    def append(self, epoch: int, start_offset: int) -> None:
        """A batch of this epoch begins here."""
        if self._starts:
            last, last_start = self._starts[-1]
            if epoch == last:
                return
            assert epoch > last, f"epoch {epoch} after {last}"
            assert start_offset > last_start, f"epoch {epoch} at {start_offset}, {last} at {last_start}"
        assert epoch >= self.origin_epoch, f"epoch {epoch} after {self.origin_epoch}"
        self._starts.append((epoch, start_offset))

    def truncate(self, end_offset: int) -> None:
        while self._starts and self._starts[-1][1] >= end_offset:
            self._starts.pop()

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEnd:
        """The newest epoch that is not above this one, and where it ends in a log of this length.

        Below all that is known: the origin, which ends where the first known epoch begins.
        """
        index = bisect_right(self._starts, epoch, key=lambda start: start[0])
        found = self._starts[index - 1][0] if index else self.origin_epoch
        end = self._starts[index][1] if index < len(self._starts) else log_end_offset
        return EpochEnd(min(found, epoch) if not index else found, end)

    def epoch_at(self, offset: int) -> int:
        """The epoch of the record at this offset."""
        index = bisect_right(self._starts, offset, key=lambda start: start[1])
        return self._starts[index - 1][0] if index else self.origin_epoch
