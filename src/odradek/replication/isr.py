"""The ISR of one partition, and the high watermark that follows from it. Pure.

The controller decides the ISR. A leader reads it from the metadata log. Leaders do not propose changes yet.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The ISR of the metadata log. The high watermark waits for the replicas in `maximal`."""

    members: tuple[int, ...]

    def __post_init__(self) -> None:
        assert len(set(self.members)) == len(self.members), f"twice in the ISR: {self.members}"

    @property
    def maximal(self) -> tuple[int, ...]:
        return self.members


IsrState = CommittedIsr


def high_watermark_of(
    leader_id: int, leader_end: int, follower_ends: Mapping[int, int], isr: IsrState
) -> int:
    """The smallest log end offset of the maximal ISR. A follower that has not fetched yet counts as 0."""
    end = leader_end
    for member in isr.maximal:
        if member != leader_id:
            end = min(end, follower_ends.get(member, 0))
    assert 0 <= end <= leader_end
    return end
