"""The rules of replication, by their names, and what must have happened in a run that proves something. Pure.

truth.py holds one partition to the rules, at_rest.py all of them when everything is over.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

NEVER_LOST: Final = "what the high watermark passed is on every clean leader and in the whole ISR"
CLEAN: Final = "without unclean elections a leader comes from the ISR or the ELR"
MAXIMAL: Final = "the maximal ISR of a leader contains the controller's ISR"
LEAST_END: Final = "a high watermark is at most the least log end of the maximal ISR"
MIN_ISR: Final = "a high watermark moves only at or above min ISR"
ACKNOWLEDGED: Final = "what was acknowledged with acks=all is fixed"
EPOCHS: Final = "leader, partition and broker epochs rise"
OFFSETS: Final = "an offset is not used again once it is fixed"
SEQUENCES: Final = "the sequences of a producer have no gap"
READ: Final = "what a consumer reads is fixed"
LIVENESS: Final = "a healed cluster replicates everything"
SAME_BATCHES: Final = "replicas at rest have the same batches"
SAME_EPOCHS: Final = "replicas at rest have the same leader epochs"
SAME_PRODUCERS: Final = "replicas at rest have the same producers"
SAME_ABORTED: Final = "replicas at rest have the same aborted transactions"
COMMITTED_OFFSETS: Final = "the committed offset of a group is the last acknowledged one"
RULES: Final = (
    NEVER_LOST,
    CLEAN,
    MAXIMAL,
    LEAST_END,
    MIN_ISR,
    ACKNOWLEDGED,
    EPOCHS,
    OFFSETS,
    SEQUENCES,
    READ,
    LIVENESS,
    SAME_BATCHES,
    SAME_EPOCHS,
    SAME_PRODUCERS,
    SAME_ABORTED,
    COMMITTED_OFFSETS,
)


@dataclass(slots=True)
class Counters:
    """How much happened that puts the rules to the test."""

    fixed: int = 0
    elections: int = 0
    elected_from_elr: int = 0
    unclean_elections: int = 0
    losses: int = 0
    truncated: int = 0
    rejected: int = 0
    shrunk: int = 0
    expanded: int = 0
    leaders_killed: int = 0

    def add(self, other: "Counters") -> None:
        for each in fields(self):
            setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))

    def as_dict(self) -> dict[str, int]:
        return {each.name: getattr(self, each.name) for each in fields(self)}


MUST_HAPPEN: Final = {
    "truncated": "a divergence was truncated",
    "rejected": "an AlterPartition was rejected",
    "elected_from_elr": "a leader was elected from the ELR",
    "leaders_killed": "a leader was killed",
}


def missing(happened: Mapping[str, int]) -> list[str]:
    """What never happened: rules that were never put to the test."""
    return [text for name, text in MUST_HAPPEN.items() if not happened.get(name)]
