"""The network between simulated replicas: messages are delayed, lost, doubled, overtaken, cut off.

A request is answered once or fails once, as the driver's contract says. The receiver may see it late, twice
or not at all.
"""

from random import Random


class Network:
    """How it behaves now. `cut` has pairs (from, to) between which nothing passes."""

    __slots__ = ("cut", "doubled", "lost", "most_ms", "random")

    def __init__(self, random: Random) -> None:
        self.random = random
        self.cut: set[tuple[int, int]] = set()
        self.lost = 0.0
        self.doubled = 0.0
        self.most_ms = 5

    def delay_ms(self, sender: int, receiver: int) -> int | None:
        """How long a message takes; None: it is lost."""
        random = self.random.random
        if self.cut and (sender, receiver) in self.cut:
            return None
        if self.lost and random() < self.lost:
            return None
        return 1 + int(random() * self.most_ms)

    def is_doubled(self) -> bool:
        return self.doubled > 0 and self.random.random() < self.doubled

    def heal(self) -> None:
        self.cut.clear()
        self.lost = self.doubled = 0.0
        self.most_ms = 5
