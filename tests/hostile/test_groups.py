"""Groups of many members: what one request, or the clock, does to all of them is done in slices."""

from collections.abc import Iterator

import pytest

from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.consumer.group import ConsumerGroup
from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.cases import taken
from tests.hostile.crowds import CONNECTIONS, Crowd, crowd
from tests.hostile.world import StagedWorld

MEMBERS = 250
"""As many as it takes to give twenty slices to what is done to all of them."""
CONSUMERS = 350


@pytest.fixture
def people(world: StagedWorld) -> Iterator[Crowd]:
    with crowd(world) as made:
        yield made


def check(people: Crowd, what: str) -> None:
    measured = taken(people.world, what)
    print(measured)
    measured.check(connections=CONNECTIONS)


# --- the classic protocol -----------------------------------------------------------------------------------


def classic(people: Crowd) -> ClassicGroup:
    group = next(
        s.groups[people.group] for s in people.world.stage.node.groups.shards() if people.group in s.groups
    )
    assert isinstance(group, ClassicGroup)
    return group


def begin(people: Crowd) -> None:
    """The first generation: everybody has joined, nobody has synced."""
    people.joined(people.join_all(MEMBERS))


def begin_and_sync(people: Crowd) -> None:
    begin(people)
    for person in people.followers:
        people.sync(person)
    people.world.stage.wait_until_idle()
    people.assign()
    people.synced()
    assert classic(people).state is GroupState.STABLE


def test_an_assignment_for_many_members_is_handed_out_in_slices(people: Crowd) -> None:
    begin(people)
    for person in people.followers:
        people.sync(person)
    people.world.stage.wait_until_idle()
    with people.world.stage.work.counting():
        people.assign()
        people.synced()
        check(people, "the assignment of the leader")


def test_the_last_of_many_members_to_come_back_is_answered_in_slices(people: Crowd) -> None:
    begin_and_sync(people)
    before, counts = people.generation_id, people.counts()
    people.rejoin([people.leader, *people.followers[1:]])
    with people.world.stage.work.counting():
        people.rejoin(people.followers[:1])
        people.joined(counts)
        check(people, "the last JoinGroup")
    assert people.generation_id == before + 1


def test_many_members_that_wait_for_their_assignment_are_sent_back_in_slices(people: Crowd) -> None:
    """One of them leaves before the leader has assigned."""
    begin(people)
    followers = people.followers
    gone, waiting = followers[-1], followers[:-1]
    for person in waiting:
        people.sync(person)
    stage = people.world.stage
    stage.wait_until_idle()
    identity = request_types(ApiKey.LEAVE_GROUP).MemberIdentity(member_id=gone.member_id)
    with stage.client() as other, stage.work.counting():
        people.ask(other, ApiKey.LEAVE_GROUP, 3, "LeaveGroupRequest", members=[identity])
        people.people = waiting
        people.synced(ErrorCode.REBALANCE_IN_PROGRESS)
        check(people, "a LeaveGroup")


def test_many_members_that_fall_silent_are_removed_in_slices(people: Crowd) -> None:
    """Their sessions end in the same moment."""
    begin_and_sync(people)
    group, stage = classic(people), people.world.stage
    with stage.work.counting():
        stage.until(lambda: group.state is GroupState.EMPTY)
        check(people, "the end of their sessions")
    assert not group.members


def test_a_group_of_many_members_is_described_in_slices(people: Crowd) -> None:
    begin_and_sync(people)
    stage = people.world.stage
    with stage.client() as other:
        answer = people.world.call(other, ApiKey.DESCRIBE_GROUPS, 5, groups=[people.group])
        assert len(answer.groups[0].members) == MEMBERS
        with stage.work.counting():
            people.world.call(other, ApiKey.DESCRIBE_GROUPS, 5, groups=[people.group])
            check(people, "DescribeGroups")


# --- the consumer protocol ----------------------------------------------------------------------------------


def consumers(people: Crowd) -> ConsumerGroup:
    group = next(
        s.groups[people.group] for s in people.world.stage.node.groups.shards() if people.group in s.groups
    )
    assert isinstance(group, ConsumerGroup)
    return group


def subscribe_all(people: Crowd) -> None:
    """Members of the consumer protocol, who share the partitions of the wide topic."""
    for i in range(CONSUMERS):
        people.subscribe(people.clients[i % CONNECTIONS], f"member-{i:04d}", "wide")
    let_assign(people)
    people.subscribe(people.clients[0], "member-0000", "wide")
    assert len(consumers(people).members) == CONSUMERS


def let_assign(people: Crowd) -> None:
    """Let the least time between two assignments pass."""
    people.world.stage.loop.pass_time(1.1)
    people.world.stage.wait_until_idle()


@pytest.mark.parametrize("topics", [("wide",), ("wide", "known-0001", "known-0002")], ids=["alike", "mixed"])
def test_a_member_that_joins_many_others_is_assigned_to_in_slices(
    people: Crowd, topics: tuple[str, ...]
) -> None:
    subscribe_all(people)
    before = consumers(people).assignment_epoch
    let_assign(people)
    with people.world.stage.work.counting():
        people.subscribe(people.clients[0], "newcomer", *topics)
        check(people, "a join")
    group = consumers(people)
    assert group.assignment_epoch == before + 1
    assert {p for target in group.targets.values() for some in target.values() for p in some} == set(
        range(people.world.size.wide)
    )


def test_a_classic_group_of_many_members_is_converted_in_slices(people: Crowd) -> None:
    """A member of the consumer protocol joins: all others are members of another kind from then on."""
    begin_and_sync(people)
    with people.world.stage.client() as other, people.world.stage.work.counting():
        people.subscribe(other, "newcomer", "wide")
        check(people, "a join that converts the group")
    assert len(consumers(people).members) == MEMBERS + 1
