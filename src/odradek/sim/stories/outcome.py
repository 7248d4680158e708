"""The outcome of a seed, and the exception that ends a story early."""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field

from odradek.sim.world.cluster import SimHost
from odradek.sim.world.world import World


class Over(Exception):
    """The story ends here, because later events prove nothing. The arguments are violations."""


@dataclass(slots=True)
class Outcome:
    """The outcome of a seed."""

    seed: int
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    digest: str = ""
    events: int = 0
    virtual_seconds: float = 0.0
    lives: int = 0
    acknowledged_records: int = 0
    acknowledged_commits: int = 0
    read_records: int = 0
    happened: dict[str, int] = field(default_factory=dict)
    """What a story of several nodes counts."""

    def complete(self, world: World, hosts: Iterable[SimHost]) -> None:
        """Add the numbers of the world at the end of the story."""
        self.digest, self.events = world.trace.digest(), world.trace.count
        self.virtual_seconds = world.loop.time()
        self.lives = sum(host.lives for host in hosts)
        if self.violations:
            self.recent = world.trace.recent()


def error_text(error: Exception) -> str:
    """The text of an unexpected error of a client or an auditor: the node caused it."""
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    return f"{type(error).__name__}: {error}, in {' < '.join(f.name for f in reversed(frames))}"
