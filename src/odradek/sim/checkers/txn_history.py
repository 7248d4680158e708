"""What transactional clients of a simulation did and saw: the evidence for txn_checkers. Pure bookkeeping."""

from dataclasses import dataclass, field
from enum import Enum

from odradek.core.types import TopicPartition


class TxnFate(Enum):
    """What became of a transaction, as far as its producer can know."""

    ABORTED = "aborted"
    """Nobody ever asked to commit it, or the one who did was refused at the first word."""
    COMMITTED = "committed"
    UNKNOWN = "unknown"
    """A commit was asked for, and no answer came that tells."""


@dataclass(slots=True)
class Txn:
    """One transaction; its values are unique, and numbered in the order in which they were sent."""

    producer: str
    """Who wrote it: one life of one producer."""
    number: int
    writes: list[tuple[TopicPartition, bytes]] = field(default_factory=list)
    """What was sent. A commit is asked for only when all of it is acknowledged."""
    fate: TxnFate = TxnFate.ABORTED
    commit_sent: bool = False


@dataclass(slots=True)
class Reader:
    """What one read_committed consumer got from one partition, in order, poll by poll."""

    name: str
    tp: TopicPartition
    polled: list[tuple[int, bytes]] = field(default_factory=list)
    position: int = 0


class TxnHistory:
    def __init__(self) -> None:
        self.txns: list[Txn] = []
        self.readers: list[Reader] = []
        self.oddities: list[str] = []
        """What clients were told that no client should be."""
        self.inputs: dict[TopicPartition, list[bytes]] = {}
        """What the pipelines are given to read."""
        self.commits = 0
        self._owners: dict[int, str] = {}

    def begin(self, producer: str, number: int) -> Txn:
        txn = Txn(producer, number)
        self.txns.append(txn)
        return txn

    def identity_given(self, transactional_id: str, producer_id: int) -> None:
        """No producer id is ever given to two transactional ids."""
        owner = self._owners.setdefault(producer_id, transactional_id)
        if owner != transactional_id:
            self.oddities.append(f"producer id {producer_id} was given to {owner} and to {transactional_id}")

    def committed(self, txn: Txn) -> None:
        txn.fate = TxnFate.COMMITTED
        self.commits += 1
