"""The record of a run of the demo: counts over time, kills, batches. Values only."""

from dataclasses import dataclass, field
from typing import NamedTuple

DRIVER, BROKER = "driver", "broker"


class Counts(NamedTuple):
    """What can be seen from outside, at one moment."""

    at_s: float = 0.0
    produced: int = 0
    """Orders that the broker has acknowledged."""
    written: int = 0
    """Enriched orders, whatever becomes of their transactions."""
    committed: int = 0
    """Enriched orders that readers at read_committed are shown."""
    windows: int = 0
    """Sums that readers at read_committed are shown."""

    @property
    def lag(self) -> int:
        return max(0, self.produced - self.committed)


class Kill(NamedTuple):
    at_s: float
    target: str
    pid: int
    told: str
    """At which point of its work it was killed."""
    back_s: float | None = None
    """When it did its work again: the broker was ready, the driver committed a batch."""


class Batch(NamedTuple):
    """A micro-batch, at the time it was decided."""

    at_s: float
    sink: str
    number: int
    rows: int


@dataclass
class Story:
    """Of one run, from the start of the broker to the end of the driver."""

    orders: int
    windows: int
    """How many of them there have to be in the end."""
    counts: list[Counts] = field(default_factory=lambda: [Counts()])
    kills: list[Kill] = field(default_factory=list)
    batches: list[Batch] = field(default_factory=list)

    @property
    def now(self) -> Counts:
        return self.counts[-1]

    def killed(self, target: str) -> int:
        return sum(kill.target == target for kill in self.kills)
