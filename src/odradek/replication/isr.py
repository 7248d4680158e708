"""The ISR of one partition, committed or with a proposed change, and the high watermark that follows. Pure.

The controller decides the ISR. While a proposal waits for its answer, nobody knows whether it was applied, so
the high watermark waits for the replicas of both: the committed ISR and the proposed one. A new member counts
at once. A member that is to leave counts until the controller has let it go.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from odradek.replication.progress import FollowerProgress


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The ISR of the metadata log. The high watermark waits for the replicas in `maximal`."""

    members: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(set(self.members)) == len(self.members), f"twice in the ISR: {self.members}"

    @property
    def maximal(self) -> tuple[int, ...]:
        return self.members


@dataclass(frozen=True, slots=True, eq=False)
class PendingExpand:
    """A replica is to join. Proposals are compared by identity: an answer belongs to one of them."""

    committed: CommittedIsr
    joining: int

    def __post_init__(self) -> None:
        assert self.joining not in self.members

    @property
    def members(self) -> tuple[int, ...]:
        return self.committed.members

    @property
    def maximal(self) -> tuple[int, ...]:
        return (*self.committed.members, self.joining)

    @property
    def proposed(self) -> tuple[int, ...]:
        return self.maximal


@dataclass(frozen=True, slots=True, eq=False)
class PendingShrink:
    """Members are to leave. They count until the controller has answered."""

    committed: CommittedIsr
    leaving: tuple[int, ...]

    def __post_init__(self) -> None:
        assert self.leaving and set(self.leaving) < set(self.members)

    @property
    def members(self) -> tuple[int, ...]:
        return self.committed.members

    @property
    def maximal(self) -> tuple[int, ...]:
        return self.committed.members

    @property
    def proposed(self) -> tuple[int, ...]:
        return tuple(member for member in self.members if member not in self.leaving)


PendingIsr = PendingExpand | PendingShrink
IsrState = CommittedIsr | PendingIsr


def high_watermark_of(
    leader_end: int,
    in_sync: Iterable[FollowerProgress],
    outside: Iterable[FollowerProgress],
    may_join: Callable[[FollowerProgress], bool],
) -> int:
    """The smallest log end of the leader, of the followers in the maximal ISR, and of those outside that may
    join any moment: they must not lack committed records when they do.

    A follower in the ISR that has not fetched yet counts as 0.
    """
    end = leader_end
    for follower in in_sync:
        if follower.log_end_offset < end:
            end = max(follower.log_end_offset, 0)
    for follower in outside:
        if follower.log_end_offset < end and may_join(follower):
            end = max(follower.log_end_offset, 0)
    assert 0 <= end <= leader_end
    return end
