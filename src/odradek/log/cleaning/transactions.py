"""CleanedTransactions: which data is aborted, and which markers are still needed, during a cleaning. Pure.

A marker is removed only after all data of its transaction. Until then readers need it to know whether the
data is committed.
"""

from collections.abc import Iterable
from typing import NamedTuple

from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.control import ControlType


class MarkerVerdict(NamedTuple):
    """`spent`: its transaction has no data left. `aborted`: the entry for the transaction index of the new
    segment."""

    spent: bool
    aborted: AbortedTxn | None = None


class CleanedTransactions:
    """Gets every transactional batch in offset order."""

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
        """Whether a data batch belongs to an aborted transaction."""
        self._advance(last_offset)
        if producer_id in self._aborted:
            self._met.add(producer_id)
            return True
        self._committed.add(producer_id)
        return False

    def on_marker(self, producer_id: int, last_offset: int, kind: ControlType | None) -> MarkerVerdict:
        """A control batch. Its kind is None if an earlier cleaning has emptied it."""
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
