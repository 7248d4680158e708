"""The votes of one election as they come in. Counting is quorum.py's."""

from collections.abc import Iterable

from odradek.raft.quorum import has_majority, majority


class Ballot:
    """Of a prospective or a candidate, which grants itself. `retry_ms` is when to ask a voter again.

    `insists`: it knows that the leader is gone. The others will soon: it asks those again that refuse.
    """

    __slots__ = ("granted", "insists", "rejected", "retry_ms")

    def __init__(self, own_id: int, others: Iterable[int]) -> None:
        self.granted = {own_id: None}
        self.insists = False
        self.rejected: dict[int, None] = {}
        self.retry_ms: dict[int, int | None] = dict.fromkeys(others, 0)

    def record(self, voter_id: int, granted: bool) -> None:
        """A later answer of the same voter goes before its first one."""
        self.retry_ms.pop(voter_id, None)
        (self.rejected if granted else self.granted).pop(voter_id, None)
        (self.granted if granted else self.rejected)[voter_id] = None

    def is_granted(self, voters: tuple[int, ...]) -> bool:
        return has_majority(voters, self.granted)

    def is_rejected(self, voters: tuple[int, ...]) -> bool:
        """Whether those who may still grant it are no majority."""
        rejected = sum(voter in self.rejected for voter in voters)
        return len(voters) - rejected < majority(len(voters))

    def due(self, now_ms: int) -> list[int]:
        """Voters to ask now."""
        return [voter for voter, at_ms in self.retry_ms.items() if at_ms is not None and at_ms <= now_ms]

    @property
    def next_ms(self) -> int | None:
        waiting = [at_ms for at_ms in self.retry_ms.values() if at_ms is not None]
        return min(waiting) if waiting else None
