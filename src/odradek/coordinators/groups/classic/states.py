"""The states of a classic group and the table of transitions between them.

        first member joins                all rejoined, or time is up
Empty ---------------------> Preparing ------------------------------> Completing
  ^                          Rebalance <------------------------------  Rebalance
  |                           |    ^    a member joins, leaves, fails       |
  +---------------------------+    |                                        | the leader's
     no one rejoined               +---------------- Stable <---------------+ assignment is
                                     a member joins,                          in the log
                                     leaves, fails
every state --> Dead: the group was deleted
"""

from enum import Enum


class GroupState(Enum):
    EMPTY = "Empty"
    PREPARING_REBALANCE = "PreparingRebalance"
    COMPLETING_REBALANCE = "CompletingRebalance"
    STABLE = "Stable"
    DEAD = "Dead"


TRANSITIONS: dict[GroupState, tuple[GroupState, ...]] = {
    GroupState.EMPTY: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.PREPARING_REBALANCE: (GroupState.COMPLETING_REBALANCE, GroupState.EMPTY, GroupState.DEAD),
    GroupState.COMPLETING_REBALANCE: (GroupState.STABLE, GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.STABLE: (GroupState.PREPARING_REBALANCE, GroupState.DEAD),
    GroupState.DEAD: (),
}


def may_move(before: GroupState, after: GroupState) -> bool:
    return after in TRANSITIONS[before]


def can_rebalance(state: GroupState) -> bool:
    return may_move(state, GroupState.PREPARING_REBALANCE)
