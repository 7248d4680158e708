"""What became of a seed, and how a story ends before its time. No story is told here."""

import traceback
from collections.abc import Iterable
from dataclasses import dataclass, field

from odradek.sim.world.cluster import SimHost
from odradek.sim.world.world import World


class Over(Exception):
    """The story ends here, since nothing after this proves anything. The arguments are violations."""


@dataclass(slots=True)
class Outcome:
    """What became of a seed."""

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

    def complete(self, world: World, hosts: Iterable[SimHost]) -> None:
        """Add what the world knows when the story is over."""
        self.digest, self.events = world.trace.digest(), world.trace.count
        self.virtual_seconds = world.loop.time()
        self.lives = sum(host.lives for host in hosts)
        if self.violations:
            self.recent = world.trace.recent()


def error_text(error: Exception) -> str:
    """What a client or an auditor could not make sense of: that is the node's doing."""
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    return f"{type(error).__name__}: {error}, in {' < '.join(f.name for f in reversed(frames))}"
