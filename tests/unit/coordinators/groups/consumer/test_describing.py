"""ConsumerGroupDescribe: what a member has and shall have, by name."""

from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.consumers import ConsumerHarness


def described(h: ConsumerHarness) -> Any:
    return h.handle(c.DescribeConsumerGroup("g"))


def partitions(assignment: Any) -> list[tuple[str, list[int]]]:
    return [(row.topic_name, list(row.partitions)) for row in assignment.topic_partitions]


def test_a_member_is_described_with_what_it_has_and_what_it_shall_have() -> None:
    h = ConsumerHarness(consumer_assignors=("uniform", "range"))
    identifier = h.topic("t", 3)
    h.member("a", "t", rack_id="r", instance_id="i").join()
    group = described(h)
    assert (group.group_state, group.group_epoch, group.assignment_epoch) == ("Stable", 2, 2)
    assert group.assignor_name == "uniform"
    (member,) = group.members
    assert (member.member_id, member.instance_id, member.rack_id) == ("a", "i", "r")
    assert (member.member_epoch, member.subscribed_topic_names, member.member_type) == (2, ["t"], 1)
    assert partitions(member.assignment) == [("t", [0, 1, 2])]
    assert partitions(member.target_assignment) == [("t", [0, 1, 2])]
    assert member.assignment.topic_partitions[0].topic_id == identifier


def test_what_a_member_has_to_give_up_is_its_own_until_it_has() -> None:
    h = ConsumerHarness()
    h.topic("t", 4)
    a = h.member("a", "t").join()
    h.member("b", "t").join()
    a.beat()
    group = described(h)
    assert group.group_state == "Reconciling"
    member = next(member for member in group.members if member.member_id == "a")
    assert partitions(member.assignment) == [("t", [0, 1, 2, 3])]
    assert partitions(member.target_assignment) == [("t", [0, 1])]


def test_a_deleted_topic_is_not_described() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.topic("u", 2)
    h.member("a", "t", "u").join()
    h.topic("t", 0)
    (member,) = described(h).members
    assert partitions(member.assignment) == [("u", [0, 1])]


def test_an_unknown_group_and_a_classic_one_are_not_described() -> None:
    h = ConsumerHarness()
    h.stable()
    for group_id in ("g", "none"):
        with pytest.raises(KafkaError) as refused:
            h.handle(c.DescribeConsumerGroup(group_id))
        assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
