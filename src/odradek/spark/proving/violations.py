"""What a proof may find. Pure."""

from typing import NamedTuple

DUPLICATE, LOST, UNKNOWN, FOREIGN = "duplicate", "lost", "unknown", "foreign"
"""Unknown: it cannot be told, so it is not proven. Foreign: in the output, and no decision covers it."""


class Violation(NamedTuple):
    """`amount` is in offsets of the input (ranges) or in records of the output (transactions, rows)."""

    check: str
    kind: str
    amount: int
    stream: str | None
    batch: int | None
    place: str
    told: str


def total(violations: list[Violation], kind: str) -> int:
    """The most that one check has found. Not their sum: they see the same records in different ways."""
    by_check: dict[str, int] = {}
    for violation in violations:
        if violation.kind == kind:
            by_check[violation.check] = by_check.get(violation.check, 0) + violation.amount
    return max(by_check.values(), default=0)
