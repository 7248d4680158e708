"""The table of group states is Kafka's: which state may follow which."""

import pytest

from odradek.coordinators.groups.classic.states import TRANSITIONS, GroupState, can_rebalance, may_move

EMPTY, PREPARING, COMPLETING, STABLE, DEAD = GroupState

VALID_BEFORE = {
    EMPTY: {PREPARING},
    PREPARING: {EMPTY, COMPLETING, STABLE},
    COMPLETING: {PREPARING},
    STABLE: {COMPLETING},
    DEAD: {EMPTY, PREPARING, COMPLETING, STABLE},
}


@pytest.mark.parametrize("before", GroupState)
@pytest.mark.parametrize("after", GroupState)
def test_a_state_follows_only_the_states_kafka_lets_it_follow(before: GroupState, after: GroupState) -> None:
    assert may_move(before, after) == (before in VALID_BEFORE[after])


def test_a_rebalance_begins_from_every_state_without_one() -> None:
    assert [state for state in GroupState if can_rebalance(state)] == [EMPTY, COMPLETING, STABLE]


def test_every_state_has_a_row() -> None:
    assert set(TRANSITIONS) == set(GroupState)


def test_states_are_named_as_clients_read_them() -> None:
    assert [state.value for state in GroupState] == [
        "Empty",
        "PreparingRebalance",
        "CompletingRebalance",
        "Stable",
        "Dead",
    ]
