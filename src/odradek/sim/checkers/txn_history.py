"""TxnHistory: what transactional clients of a simulation sent and saw. checkers/transactions.py uses it.
Pure."""

from dataclasses import dataclass, field
from enum import Enum

from odradek.core.types import TopicPartition


class TxnFate(Enum):
    """The outcome of a transaction, as far as its producer can know."""

    ABORTED = "aborted"
    """A commit was never requested, or its first request was refused."""
    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """A commit was requested, and no answer shows the outcome."""


@dataclass(slots=True)
class Txn:
    """One transaction. Its values are unique, and numbered in the order of sending."""

    producer: str
    """The producer instance that wrote it."""
    number: int
    writes: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    """The sent values. A commit is requested only when all of them are acknowledged."""
    fate: TxnFate = TxnFate.ABORTED
    commit_sent: bool = False


@dataclass(slots=True)
class Reader:
    """What one read_committed consumer got from one partition, poll by poll."""

    name: str
    tp: TopicPartition
    polled: list[tuple[int, bytes]] = field(default_factory=list)
    position: int = 0


class TxnHistory:
    def __init__(self) -> None:
        self.txns: list[Txn] = []
        self.readers: list[Reader] = []
        self.oddities: list[str] = []
        """Answers that no client should get."""
        self.inputs: dict[TopicPartition, list[bytes]] = {}
        """The input of the pipelines."""
        self.commits = 0
        self._owners: dict[int, str] = {}

    def begin(self, producer: str, number: int) -> Txn:
        txn = Txn(producer, number)
        self.txns.append(txn)
        return txn

    def identity_given(self, transactional_id: str, producer_id: int) -> None:
        """Two transactional ids must never get the same producer id."""
        owner = self._owners.setdefault(producer_id, transactional_id)
        if owner != transactional_id:
            self.oddities.append(f"producer id {producer_id} was given to {owner} and to {transactional_id}")

    def committed(self, txn: Txn) -> None:
        txn.fate = TxnFate.COMMITTED
        self.commits += 1
