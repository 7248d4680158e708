"""What the controller of a node counts of its decisions, through all its claims. Numbers only."""

from odradek.controller.elections import ElectionKind
from odradek.core.metrics import TimeMetrics


class ControllerMetrics:
    """`queue` is how long decisions waited for their turn, `processing` how long they took.

    `timed_out_heartbeats` counts heartbeats that were answered after half a session: the broker has given
    them up by then. `elections` counts leaders that this controller elected, by where they came from.
    """

    __slots__ = ("elections", "processing", "queue", "timed_out_heartbeats")

    def __init__(self) -> None:
        self.queue = TimeMetrics()
        self.processing = TimeMetrics()
        self.timed_out_heartbeats = 0
        self.elections = dict.fromkeys(ElectionKind, 0)
