"""Who may read what in groups whose assignments the broker makes: no partition has two owners. Pure.

A member owns a partition from the answer that gives it until the request that says it is rid of it, or until
the broker may have given the member up: no sooner than a session after a request that it has answered.
"""

from dataclasses import dataclass, field

from odradek.core.types import TopicPartition

SESSION_TIMEOUT_MS = 6_000


@dataclass(slots=True)
class _Owner:
    until: float = 0.0
    partitions: set[TopicPartition] = field(default_factory=set)


class Owners:
    """What every member was given, as it knows. Times are in seconds, by the clock of the broker."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, _Owner]] = {}

    def given(
        self, group: str, member: str, partitions: set[TopicPartition], *, asked: float, now: float
    ) -> list[str]:
        """A request sent at `asked` was answered: the member may read these now. What that violates.

        What it had before and may no longer read stays with it until it says so.
        """
        members = self._owners.setdefault(group, {})
        mine = members.setdefault(member, _Owner())
        mine.until = asked + SESSION_TIMEOUT_MS / 1000
        mine.partitions |= partitions
        return [
            f"{group}: {tp} was assigned to {member}, but {other} owns it until {owner.until:.3f} s at least"
            for other, owner in members.items()
            if other != member and now < owner.until
            for tp in sorted(owner.partitions & partitions)
        ]

    def keeps(self, group: str, member: str, partitions: set[TopicPartition]) -> None:
        """The member is about to say that this is all it has."""
        owner = self._owners.get(group, {}).get(member)
        if owner is not None:
            owner.partitions &= partitions

    def gone(self, group: str, member: str) -> None:
        """The member is about to leave, or has learnt that it was given up."""
        self._owners.get(group, {}).pop(member, None)

    def forget(self) -> None:
        """The broker may have lost what it knew."""
        self._owners.clear()
