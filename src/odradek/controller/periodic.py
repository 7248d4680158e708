"""When the active controller holds elections that nobody asks for. Pure; electing.py decides who is elected.

With `auto.leader.rebalance.enable` preferred leaders come back, once in each
`leader.imbalance.check.interval.seconds`. Unclean elections are held once in each
`unclean.leader.election.interval.ms`: a partition whose topic allows them only after its leader has gone
waits that long at most.
"""

from collections.abc import Sequence

from odradek.controller.elections import Election
from odradek.core.configs import NodeConfig


class PeriodicElections:
    """Begins with the term of a controller: the first elections are due one period later."""

    __slots__ = ("_due_ms", "_periods_ms")

    def __init__(self, config: NodeConfig, now_ms: int) -> None:
        self._periods_ms = {Election.UNCLEAN: config.int("unclean.leader.election.interval.ms")}
        if config.bool("auto.leader.rebalance.enable"):
            seconds = config.int("leader.imbalance.check.interval.seconds")
            self._periods_ms[Election.PREFERRED] = 1000 * seconds
        self._due_ms = {election: now_ms + period for election, period in self._periods_ms.items()}

    @property
    def shortest_ms(self) -> int:
        return min(self._periods_ms.values())

    def take_due(self, now_ms: int) -> Sequence[Election]:
        """The elections to hold now. Each is due again one period later."""
        due = [election for election, due_ms in self._due_ms.items() if now_ms >= due_ms]
        for election in due:
            self._due_ms[election] = now_ms + self._periods_ms[election]
        return due
