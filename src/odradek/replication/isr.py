"""The in-sync set of one partition, and the high watermark it allows. Pure.

Who is in the set is the controller's decision; a leader learns it from the metadata log. A leader that
proposes a change will hold one of the pending forms beside `CommittedIsr` while the answer is out.
"""

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class CommittedIsr:
    """The set as the metadata log has it; `maximal` is what the high watermark must wait for."""

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
    """The smallest log end over the maximal in-sync set; an unheard follower holds everything back."""
    end = leader_end
    for member in isr.maximal:
        if member != leader_id:
            end = min(end, follower_ends.get(member, 0))
    assert 0 <= end <= leader_end
    return end
