"""What a cleaner knows of transactions as it goes over a log: which data was aborted, which markers are still
needed. Pure.

A marker goes only after all data of its transaction has gone: while any is there, a reader needs the marker
to know what became of it.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.control import ControlType


class MarkerVerdict(NamedTuple):
    """`spent`: no data of its transaction was met. `aborted`: what the index of the new segment must name."""

    spent: bool
    aborted: AbortedTxn | None = None


class CleanedTransactions:
    """Told of every batch of transactions in offset order."""

    __slots__ = ("_aborted", "_committed", "_known", "_met")

    def __init__(self, aborted: Iterable[AbortedTxn]) -> None:
        self._known = sorted(aborted, key=lambda txn: txn.first_offset, reverse=True)
        self._aborted: dict[int, AbortedTxn] = {}
        self._met: set[int] = set()
        self._committed: set[int] = set()

    def _advance(self, offset: int) -> None:
        known = self._known
        while known and known[-1].first_offset <= offset:
            txn = known.pop()
            self._aborted.setdefault(txn.producer_id, txn)

    def is_aborted(self, producer_id: int, last_offset: int) -> bool:
        """Whether a batch of data belongs to a transaction that was aborted."""
        self._advance(last_offset)
        if producer_id in self._aborted:
            self._met.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_marker(self, producer_id: int, last_offset: int, kind: ControlType | None) -> MarkerVerdict:
        """A control batch; its kind is None where an earlier cleaning has emptied it."""
        self._advance(last_offset)
        if kind is None:
            return MarkerVerdict(spent=True)
        if kind is ControlType.ABORT:
            txn = self._aborted.pop(producer_id, None)
            met = producer_id in self._met
            self._met.discard(producer_id)
            return MarkerVerdict(spent=not met, aborted=txn if met else None)
        if kind is ControlType.COMMIT:
            met = producer_id in self._committed
            self._committed.discard(producer_id)
            return MarkerVerdict(spent=not met)
        return MarkerVerdict(spent=False)
