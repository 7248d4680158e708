"""A member's next state, from what it has, what it says it owns, and where it shall get. Pure."""

import uuid
from collections.abc import Mapping

import pytest

from odradek.coordinators.groups.consumer.member import ConsumerMember, MemberState
from odradek.coordinators.groups.consumer.reconciling import Goal, Owned, reconcile
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import at_once

ONE, TWO = uuid.UUID(int=1), uuid.UUID(int=2)
STABLE, UNREVOKED, UNRELEASED = (
    MemberState.STABLE,
    MemberState.UNREVOKED_PARTITIONS,
    MemberState.UNRELEASED_PARTITIONS,
)


def goal(
    target: Mapping[uuid.UUID, frozenset[int]],
    *,
    epoch: int = 5,
    subscribed: frozenset[uuid.UUID] = frozenset({ONE, TWO}),
    owners: Mapping[uuid.UUID, Mapping[int, str]] | None = None,
) -> Goal:
    return Goal(epoch, target, subscribed, lambda topic_id: (owners or {}).get(topic_id, {}))


def member(
    assigned: Mapping[uuid.UUID, Mapping[int, int]],
    revoking: Mapping[uuid.UUID, Mapping[int, int]] | None = None,
    *,
    epoch: int = 5,
    state: MemberState = STABLE,
) -> ConsumerMember:
    return ConsumerMember(
        "a",
        member_epoch=epoch,
        previous_member_epoch=epoch - 1,
        state=state,
        assigned=assigned,
        pending_revocation=revoking or {},
    )


def after(before: ConsumerMember, to: Goal, owned: Owned | None, changed: bool = False) -> ConsumerMember:
    return at_once(reconcile(before, to, owned, changed))


def test_a_member_at_its_target_stays_as_it_is() -> None:
    before = member({ONE: {0: 3}})
    assert after(before, goal({ONE: frozenset({0})}), {ONE: frozenset({0})}) is before


def test_a_changed_subscription_takes_topics_away_before_the_target_follows() -> None:
    before = member({ONE: {0: 3, 1: 4}, TWO: {0: 4}})
    target = {ONE: frozenset({0, 1}), TWO: frozenset({0})}
    changed = after(before, goal(target, subscribed=frozenset({ONE})), {TWO: frozenset({0})}, True)
    assert changed.state is UNREVOKED
    assert (changed.assigned, changed.pending_revocation) == ({ONE: {0: 3, 1: 4}}, {TWO: {0: 4}})
    assert (changed.member_epoch, changed.previous_member_epoch) == (5, 5)


def test_topics_that_the_member_does_not_own_any_more_need_no_revocation() -> None:
    before = member({ONE: {0: 3}, TWO: {0: 4}})
    target = {ONE: frozenset({0}), TWO: frozenset({0})}
    changed = after(before, goal(target, subscribed=frozenset({ONE})), {ONE: frozenset({0})}, True)
    assert (changed.state, changed.assigned, changed.pending_revocation) == (STABLE, {ONE: {0: 3}}, {})


def test_a_changed_subscription_that_ends_no_topic_changes_nothing() -> None:
    before = member({ONE: {0: 3}})
    assert after(before, goal({ONE: frozenset({0})}), {ONE: frozenset({0})}, True) is before


def test_what_a_changed_subscription_ends_joins_what_is_being_revoked() -> None:
    before = member({ONE: {0: 3}, TWO: {1: 4}}, {ONE: {7: 2}, TWO: {0: 4}}, state=UNREVOKED)
    to = goal({}, epoch=6, subscribed=frozenset({ONE}))
    changed = after(before, to, {TWO: frozenset({0, 1})}, True)
    assert changed.assigned == {ONE: {0: 3}}
    assert changed.pending_revocation == {ONE: {7: 2}, TWO: {0: 4, 1: 4}}
    assert (changed.state, changed.member_epoch) == (UNREVOKED, 5)


def test_while_it_revokes_a_member_stays_as_it_is() -> None:
    before = member({ONE: {0: 3}}, {ONE: {1: 3}}, state=UNREVOKED)
    to = goal({ONE: frozenset({0})}, epoch=6)
    for owned in (None, {ONE: frozenset({0, 1})}):
        assert after(before, to, owned) is before
    done = after(before, to, {ONE: frozenset({0})})
    assert (done.state, done.member_epoch, done.assigned) == (STABLE, 6, {ONE: {0: 3}})
    assert done.pending_revocation == {}


def test_what_is_not_owned_any_more_is_revoked_at_once() -> None:
    before = member({ONE: {0: 3, 1: 3}})
    to = goal({ONE: frozenset({0})}, epoch=6)
    assert after(before, to, {ONE: frozenset({0})}).member_epoch == 6
    assert after(before, to, {ONE: frozenset({1})}).member_epoch == 5
    assert after(before, to, None).pending_revocation == {ONE: {1: 3}}


def test_partitions_that_others_have_are_waited_for() -> None:
    before = member({ONE: {0: 3}})
    to = goal({ONE: frozenset({0, 1, 2})}, epoch=6, owners={ONE: {0: "a", 1: "b"}})
    waiting = after(before, to, {})
    assert (waiting.state, waiting.member_epoch) == (UNRELEASED, 6)
    assert waiting.assigned == {ONE: {0: 3, 2: 6}}, "what it had keeps the epoch at which it came"
    freed = after(waiting, goal({ONE: frozenset({0, 1, 2})}, epoch=6, owners={ONE: {0: "a", 2: "a"}}), {})
    assert (freed.state, freed.assigned) == (STABLE, {ONE: {0: 3, 1: 6, 2: 6}})


def test_a_member_takes_back_what_it_was_about_to_give_up() -> None:
    before = member({ONE: {0: 3}}, {ONE: {1: 3}}, state=UNREVOKED)
    to = goal({ONE: frozenset({0, 1})}, epoch=6, owners={ONE: {0: "a", 1: "a"}})
    again = after(before, to, {ONE: frozenset({0})})
    assert (again.state, again.assigned) == (STABLE, {ONE: {0: 3, 1: 6}})


@pytest.mark.parametrize("owned", [None, {ONE: frozenset({0})}])
def test_a_member_in_a_state_of_a_newer_release_has_to_begin_with_empty_hands(owned: Owned | None) -> None:
    before = member({ONE: {0: 3}}, state=MemberState.UNKNOWN)
    with pytest.raises(KafkaError) as refused:
        after(before, goal({ONE: frozenset({0})}, epoch=6), owned)
    assert refused.value.code is ErrorCode.FENCED_MEMBER_EPOCH
    begun = after(before, goal({ONE: frozenset({1})}, epoch=6), {})
    assert (begun.state, begun.member_epoch, begun.assigned) == (STABLE, 6, {ONE: {1: 6}})
