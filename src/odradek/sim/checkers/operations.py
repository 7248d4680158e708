"""Operations: what producers and consumers of one cluster did, as they saw it. anomalies.py judges it. Pure.

It holds for simulated clients and for real ones. Values are unique. A client that is started again has a new
name: what it remembers is gone.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import NamedTuple

from odradek.core.types import TopicPartition


class Outcome(Enum):
    """What a producer knows of a record. A transaction decides for all its records."""

    ACKNOWLEDGED = "acknowledged"
    UNKNOWN = "unknown"
    """It may be in the log, now or later."""
    FAILED = "failed"
    """It was never sent, was refused, or its transaction was aborted: nobody may read it."""


@dataclass(slots=True)
class Send:
    """One record. `offset` is that of the acknowledgement, which may lack it: the answer to a retry does."""

    client: str
    tp: TopicPartition
    value: bytes
    outcome: Outcome = Outcome.UNKNOWN
    offset: int | None = None

    def acknowledged(self, offset: int | None) -> None:
        assert self.outcome is Outcome.UNKNOWN, f"{self.value!r} has two outcomes"
        self.outcome, self.offset = Outcome.ACKNOWLEDGED, offset

    def failed(self) -> None:
        """An aborted transaction fails records that were acknowledged before."""
        self.outcome = Outcome.FAILED


class Polled(NamedTuple):
    offset: int
    value: bytes


@dataclass(slots=True)
class Run:
    """What a consumer got from a partition from one assignment to the next, in the order it got it.

    A new assignment may begin anywhere: at the committed offset of the group, which other members moved.
    """

    client: str
    tp: TopicPartition
    polled: list[Polled] = field(default_factory=list)


@dataclass(slots=True)
class Operations:
    """`sends` are in the order in which each client sent."""

    sends: list[Send] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)

    def send(self, client: str, tp: TopicPartition, value: bytes) -> Send:
        sent = Send(client, tp, value)
        self.sends.append(sent)
        return sent

    def assign(self, client: str, tp: TopicPartition, polled: Iterable[tuple[int, bytes]] = ()) -> Run:
        run = Run(client, tp, [Polled(*entry) for entry in polled])
        self.runs.append(run)
        return run
