"""The server-side assignors: everything goes to exactly one subscriber, evenly, and what can stay stays."""

import random
import uuid
from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from odradek.coordinators.groups.consumer import assignors
from odradek.coordinators.groups.consumer.assignors import Assignment, GroupSpec
from odradek.runtime.slices import at_once

ASSIGNORS = tuple(assignors.ASSIGNORS)
TOPICS = [uuid.UUID(int=i) for i in range(1, 5)]
A, B = TOPICS[:2]


def assign(name: str, spec: GroupSpec) -> dict[str, Assignment]:
    return at_once(assignors.ASSIGNORS[name](spec))


def uniform(spec: GroupSpec) -> dict[str, Assignment]:
    return assign("uniform", spec)


def range_(spec: GroupSpec) -> dict[str, Assignment]:
    return assign("range", spec)


def member_names(count: int) -> list[str]:
    return [f"m{i}" for i in range(count)]


@st.composite
def specs(draw: st.DrawFn, *, alike: bool = False) -> GroupSpec:
    """Groups that were assigned before, under other circumstances."""
    members = member_names(draw(st.integers(1, 7)))
    counts = {topic: draw(st.integers(1, 9)) for topic in TOPICS}
    topics = st.frozensets(st.sampled_from(TOPICS))
    if alike:
        subscriptions = dict.fromkeys(members, draw(topics))
    else:
        subscriptions = {member: draw(topics) for member in members}
    had: dict[str, dict[uuid.UUID, set[int]]] = {}
    for topic in TOPICS:
        for partition in range(draw(st.integers(0, 11))):
            owner = draw(st.sampled_from([None, "gone", *members]))
            if owner is not None:
                had.setdefault(owner, {}).setdefault(topic, set()).add(partition)
    frozen = {m: {t: frozenset(p) for t, p in topics.items()} for m, topics in had.items()}
    instances = {m: f"i{draw(st.integers(0, 3))}-{m}" for m in members if draw(st.booleans())}
    return GroupSpec(subscriptions, frozen, counts, instances)


def size(assignment: Assignment) -> int:
    return sum(map(len, assignment.values()))


def owners(assignment: Mapping[str, Assignment]) -> dict[tuple[uuid.UUID, int], str]:
    found: dict[tuple[uuid.UUID, int], str] = {}
    for member, topics in assignment.items():
        for topic, partitions in topics.items():
            for partition in partitions:
                assert (topic, partition) not in found, "assigned twice"
                found[topic, partition] = member
    return found


@pytest.mark.parametrize("name", ASSIGNORS)
@given(spec=specs())
def test_every_subscribed_partition_has_exactly_one_owner_who_subscribes(name: str, spec: GroupSpec) -> None:
    assigned = assign(name, spec)
    assert assigned.keys() == spec.subscriptions.keys()
    subscribed = {topic for topics in spec.subscriptions.values() for topic in topics}
    found = owners(assigned)
    assert found.keys() == {(t, p) for t in subscribed for p in range(spec.partition_counts[t])}
    assert all(topic in spec.subscriptions[member] for (topic, _), member in found.items())


@given(spec=specs(alike=True))
def test_uniform_is_balanced_within_one(spec: GroupSpec) -> None:
    sizes = [size(a) for a in uniform(spec).values()]
    assert max(sizes) - min(sizes) <= 1


@given(spec=specs())
def test_uniform_leaves_nothing_that_one_move_would_even_out(spec: GroupSpec) -> None:
    assigned = uniform(spec)
    for (topic, _), owner in owners(assigned).items():
        for member, topics in spec.subscriptions.items():
            if topic in topics:
                assert size(assigned[owner]) - size(assigned[member]) <= 1


@given(spec=specs())
def test_uniform_moves_nothing_when_nothing_changed(spec: GroupSpec) -> None:
    once = uniform(spec)
    assert uniform(spec._replace(had=once)) == once


@given(spec=specs(alike=True), data=st.data())
def test_a_member_that_leaves_a_uniform_group_moves_only_its_own(
    spec: GroupSpec, data: st.DataObject
) -> None:
    before = uniform(spec)
    leaver = data.draw(st.sampled_from(sorted(before)))
    rest = {m: s for m, s in spec.subscriptions.items() if m != leaver}
    if not rest:
        return
    after = owners(uniform(spec._replace(subscriptions=rest, had=before)))
    for partition, owner in owners(before).items():
        assert owner == leaver or after[partition] == owner


@given(spec=specs(alike=True))
def test_a_member_that_joins_a_uniform_group_takes_no_more_than_its_share(spec: GroupSpec) -> None:
    before = uniform(spec)
    topics = next(iter(spec.subscriptions.values()))
    after = uniform(spec._replace(subscriptions={**spec.subscriptions, "newcomer": topics}, had=before))
    was = owners(before)
    moved = [p for p, owner in owners(after).items() if was[p] != owner]
    assert len(moved) == size(after["newcomer"])


@pytest.mark.parametrize("name", ASSIGNORS)
@given(spec=specs(), seed=st.integers(0, 1_000))
def test_the_order_of_members_does_not_matter(name: str, spec: GroupSpec, seed: int) -> None:
    members = list(spec.subscriptions)
    random.Random(seed).shuffle(members)
    shuffled = spec._replace(subscriptions={m: spec.subscriptions[m] for m in members})
    assert assign(name, shuffled) == assign(name, spec)


@given(spec=specs())
def test_range_gives_neighbours_topic_by_topic_within_one(spec: GroupSpec) -> None:
    assigned = range_(spec)
    for topic in TOPICS:
        subscribers = [m for m, topics in spec.subscriptions.items() if topic in topics]
        shares = [assigned[m].get(topic, frozenset()) for m in subscribers]
        if shares:
            assert max(map(len, shares)) - min(map(len, shares)) <= 1
        for share in shares:
            assert not share or max(share) - min(share) + 1 == len(share)


def test_range_goes_by_instance_ids_first_and_forgets_what_members_had() -> None:
    """As Apache 4.3.1 was seen to assign it."""
    spec = GroupSpec(
        {"member-a": frozenset({A}), "member-b": frozenset({A})},
        {"member-a": {A: frozenset({0, 1})}},
        {A: 2},
        {"member-b": "instance"},
    )
    assert range_(spec) == {"member-b": {A: frozenset({0})}, "member-a": {A: frozenset({1})}}


def test_range_assigns_topics_alike_so_that_they_can_be_joined() -> None:
    spec = GroupSpec(dict.fromkeys(("x", "y", "z"), frozenset({A, B})), {}, {A: 7, B: 7})
    assert {m: topics[A] for m, topics in range_(spec).items()} == {
        "x": frozenset({0, 1, 2}),
        "y": frozenset({3, 4}),
        "z": frozenset({5, 6}),
    }
    assert all(topics[A] == topics[B] for topics in range_(spec).values())
