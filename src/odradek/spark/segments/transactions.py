"""Which transactions of a partition were aborted, and which are open at its end, by its batches. Pure.

A .txnindex exists only if transactions were aborted, so a lost file looks like none. The batches are certain.
"""

from bisect import bisect_right
from collections.abc import Iterable
from typing import NamedTuple


class Aborted(NamedTuple):
    """What a producer wrote between two offsets, the second of which is the marker's, does not count."""

    producer_id: int
    first_offset: int
    last_offset: int


class Transactions:
    """Takes the transactional batches and markers of a partition in the order of their offsets."""

    def __init__(self) -> None:
        self.aborted: list[Aborted] = []
        self._open: dict[int, int] = {}

    def write(self, producer_id: int, offset: int) -> None:
        self._open.setdefault(producer_id, offset)

    def end(self, producer_id: int, offset: int, *, commit: bool) -> None:
        """A marker. One without a transaction is what compaction has left of it."""
        first_offset = self._open.pop(producer_id, None)
        if first_offset is not None and not commit:
            self.aborted.append(Aborted(producer_id, first_offset, offset))

    @property
    def first_open_offset(self) -> int | None:
        """From here on nothing is decided yet."""
        return min(self._open.values(), default=None)

    def aborted_between(self, first_offset: int, last_offset: int) -> tuple[Aborted, ...]:
        return tuple(
            txn for txn in self.aborted if txn.first_offset <= last_offset and txn.last_offset >= first_offset
        )


class AbortedSpans:
    """Aborted transactions by producer, to be asked batch by batch."""

    def __init__(self, aborted: Iterable[Aborted]) -> None:
        self._spans: dict[int, tuple[list[int], list[int]]] = {}
        for producer_id, first_offset, last_offset in sorted(aborted):
            firsts, lasts = self._spans.setdefault(producer_id, ([], []))
            firsts.append(first_offset)
            lasts.append(last_offset)

    def hold(self, producer_id: int, offset: int) -> bool:
        spans = self._spans.get(producer_id)
        if spans is None:
            return False
        at = bisect_right(spans[0], offset) - 1
        return at >= 0 and offset <= spans[1][at]
