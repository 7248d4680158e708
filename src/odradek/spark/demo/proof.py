"""The proof: the topics, compared with what must be in them. Pure, and independent of Spark.

Only what a reader at read_committed is shown counts. Expected are the orders that were made; of the outputs,
what is computed here, once more, from the orders that are in the input topic.
"""

from collections.abc import Hashable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from odradek.spark.demo.orders import Order, Revenue, Window, enrich, sum_windows

K = TypeVar("K", bound=Hashable)


class Tally(NamedTuple):
    """A topic beside what should be in it."""

    expected: int
    found: int
    duplicates: int
    """Records that are there once more than once."""
    lost: int
    wrong: int
    """Records that are there, with something else in them."""
    unexpected: int
    """Records that nothing expected has the key of."""

    @property
    def is_exact(self) -> bool:
        return not (self.duplicates or self.lost or self.wrong or self.unexpected)


class Proof(NamedTuple):
    inputs: Tally
    enriched: Tally
    windows: Tally
    windows_open: int
    """At the end no order had closed them yet, so that they are in no output."""
    aborted: int
    """Records that were written and then aborted, for what was killed: only read_uncommitted shows them."""
    open_transactions: int

    @property
    def tallies(self) -> dict[str, Tally]:
        return {"inputs": self.inputs, "enriched orders": self.enriched, "windows": self.windows}

    @property
    def duplicates(self) -> int:
        return sum(tally.duplicates for tally in self.tallies.values())

    @property
    def lost(self) -> int:
        return sum(tally.lost for tally in self.tallies.values())

    @property
    def findings(self) -> list[str]:
        """What is not as it has to be, in words."""
        found = []
        for name, tally in self.tallies.items():
            kinds = ("duplicates", "lost", "wrong", "unexpected")
            amounts = [f"{getattr(tally, kind):,} {kind}" for kind in kinds if getattr(tally, kind)]
            if amounts:
                found.append(f"{name}: {', '.join(amounts)}")
        if self.open_transactions:
            found.append(f"{self.open_transactions} transactions are open")
        return found


class Contents(NamedTuple):
    """What the topics hold, as it was read."""

    inputs: list[Order]
    enriched: list[dict[str, Any]]
    revenue: list[tuple[Window, Revenue]]
    aborted: int
    open_transactions: int


def prove(made: Iterable[Order], contents: Contents) -> Proof:
    closed, windows_open = sum_windows(contents.inputs)
    return Proof(
        inputs=tally({order.order: order for order in made}, ((o.order, o) for o in contents.inputs)),
        enriched=tally(
            {order.order: enrich(order) for order in contents.inputs},
            ((int(value["order"]), value) for value in contents.enriched),
        ),
        windows=tally(closed, contents.revenue),
        windows_open=windows_open,
        aborted=contents.aborted,
        open_transactions=contents.open_transactions,
    )


def tally(expected: Mapping[K, Any], found: Iterable[tuple[K, Any]]) -> Tally:
    seen: set[K] = set()
    count = duplicates = wrong = unexpected = 0
    for key, value in found:
        count += 1
        if key in seen:
            duplicates += 1
        elif key not in expected:
            unexpected += 1
        elif value != expected[key]:
            wrong += 1
        seen.add(key)
    lost = sum(key not in seen for key in expected)
    return Tally(len(expected), count, duplicates, lost, wrong, unexpected)
