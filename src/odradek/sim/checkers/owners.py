"""Owners: checks that in consumer groups no partition has two owners. Pure.

A member owns a partition from the answer that assigns it until the request that reports its revocation, or
until the broker may have removed the member: at the earliest one session timeout after an answered request.
"""

from dataclasses import dataclass, field

from odradek.core.types import TopicPartition

SESSION_TIMEOUT_MS = 6_000


@dataclass(slots=True)
class _Owner:
    until: float = 0.0
    partitions: set[TopicPartition] = field(default_factory=set)


class Owners:
    """The partitions of every member. Times are in seconds of the broker's clock."""

    def __init__(self) -> None:
        self._owners: dict[str, dict[str, _Owner]] = {}

    def given(
        self, group: str, member: str, partitions: set[TopicPartition], *, asked: float, now: float
    ) -> list[str]:
        """A request sent at `asked` was answered: the member may read these partitions. Returns violations.

        Partitions that it must revoke stay its own until it reports that.
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
        """The member is about to report that it owns only these partitions."""
        owner = self._owners.get(group, {}).get(member)
        if owner is not None:
            owner.partitions &= partitions

    def gone(self, group: str, member: str) -> None:
        """The member is about to leave, or has learned that it was removed."""
        self._owners.get(group, {}).pop(member, None)

    def forget(self) -> None:
        """The broker may have lost its state."""
        self._owners.clear()
