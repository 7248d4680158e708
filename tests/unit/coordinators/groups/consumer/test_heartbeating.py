"""ConsumerGroupHeartbeat: what a member is told, whom the group knows, what a refusal leaves behind."""

import dataclasses
from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.consumer.member import MemberState
from odradek.coordinators.groups.consumer.records import ResolvedRegex, regex_record
from odradek.coordinators.groups.log_format import ModernKey
from odradek.coordinators.records import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    CurrentTopicPartitions,
)
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import at_once
from tests.unit.coordinators.groups.consumers import ConsumerHarness, beat_in_turns

FULL: dict[str, Any] = {"rebalance_timeout_ms": 10_000, "subscribed_topic_names": ("t",)}


def group_of_one(**config: Any) -> tuple[ConsumerHarness, Any]:
    h = ConsumerHarness(**config)
    h.topic("t", 2)
    return h, h.member("a", "t").join()


def test_a_member_that_says_everything_is_told_everything() -> None:
    _, a = group_of_one()
    answer = a.beat(**FULL)
    assert [row.partitions for row in answer.assignment.topic_partitions] == [[0, 1]]
    assert a.beat(rebalance_timeout_ms=10_000, subscribed_topic_regex="").assignment is not None


@pytest.mark.parametrize(
    "fields",
    [
        {},
        {**FULL, "rebalance_timeout_ms": -1},
        {**FULL, "subscribed_topic_names": None},
        {**FULL, "owned": None},
    ],
)
def test_a_member_that_says_less_is_told_only_of_changes(fields: dict[str, Any]) -> None:
    _, a = group_of_one()
    assert a.beat(**fields).assignment is None


def test_a_member_of_no_group_or_of_another_kind_of_group_is_not_found() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.stable(group_id="classic")
    raw = (17).to_bytes(2, "big") + (7).to_bytes(2, "big") + b"streams"
    h.append(ModernKey(17, "streams", raw), b"\0\0group")
    for group_id, epoch in (("none", 1), ("classic", 1), ("streams", 1), ("streams", 0)):
        member = h.member("a", "t", group_id=group_id)
        assert member.code(member_epoch=epoch, owned={}, **FULL) is ErrorCode.GROUP_ID_NOT_FOUND
    assert h.member("a", "t", group_id="none").code(member_epoch=-1) is ErrorCode.GROUP_ID_NOT_FOUND
    assert "none" not in h.shard.groups


def test_a_refused_append_changes_nothing_of_a_group_that_is_there() -> None:
    h, a = group_of_one()
    group = h.consumer_group()
    before = (group.group_epoch, group.assignment_epoch, dict(group.members), dict(group.targets))
    h.append_error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        h.member("b", "t").join()
    with pytest.raises(KafkaError):
        a.beat(subscribed_topic_names=("u",))
    h.append_error = None
    assert (group.group_epoch, group.assignment_epoch, group.members, group.targets) == before
    h.check_reload()


def test_a_static_member_that_is_away_has_nothing_to_revoke() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t", instance_id="i", rebalance_timeout_ms=5_000).join()
    b = h.member("b", "t").join()
    a.beat()
    assert h.consumer_group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    a.leave(-2)
    h.advance(5_000)
    b.beat()
    assert "a" in h.consumer_group().members, "its session is not over"
    h.check_reload()


def test_the_client_that_speaks_last_is_the_one_described() -> None:
    h, a = group_of_one()
    a.beat(client_id="other", client_host="/10.0.0.1")
    (member,) = h.handle(c.DescribeConsumerGroup("g")).members
    assert (member.client_id, member.client_host) == ("other", "/10.0.0.1")


@pytest.mark.parametrize(
    ("assignors", "shares"), [(("range", "uniform"), (2, 0)), (("uniform", "range"), (1, 1))]
)
def test_the_first_assignor_is_taken_where_nobody_asks(
    assignors: tuple[str, ...], shares: tuple[int, int]
) -> None:
    h = ConsumerHarness(consumer_assignors=assignors)
    h.topic("t", 1)
    h.topic("u", 1)
    a, b = h.member("a", "t", "u").join(), h.member("b", "t", "u").join()
    beat_in_turns(a, b)
    assert (len(a.partitions), len(b.partitions)) == shares


def test_an_assignor_that_is_not_configured_any_more_gives_way_to_the_first() -> None:
    h = ConsumerHarness(consumer_assignors=("range", "uniform"))
    h.topic("t", 1)
    h.topic("u", 1)
    a = h.member("a", "t", "u", server_assignor="uniform").join()
    b = h.member("b", "t", "u", server_assignor="uniform").join()
    beat_in_turns(a, b)
    assert (len(a.partitions), len(b.partitions)) == (1, 1)
    h.shard.reconfigure(dataclasses.replace(h.config, consumer_assignors=("range",)))
    h.topic("u", 0)
    beat_in_turns(a, b)
    h.topic("u", 1)
    beat_in_turns(a, b)
    assert (len(a.partitions), len(b.partitions)) == (2, 0)


def test_topics_of_others_do_not_concern_a_group() -> None:
    h, _ = group_of_one()
    assert h.consumer_group().metadata_is_fresh
    h.topic("other", 1)
    assert h.consumer_group().metadata_is_fresh
    h.topic("t", 3)
    assert not h.consumer_group().metadata_is_fresh


def test_an_assignment_without_epochs_was_given_at_the_members() -> None:
    """Releases before 4.3 wrote none."""
    h, a = group_of_one()
    identifier = h.image.topics_by_name["t"].id
    rows = (CurrentTopicPartitions(topic_id=identifier, partitions=(0, 1), assignment_epochs=None),)
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=2,
        previous_member_epoch=1,
        state=MemberState.STABLE,
        assigned_partitions=rows,
        partitions_pending_revocation=(),
    )
    h.append(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), value)
    assert h.consumer_group().members["a"].assigned == {identifier: {0: 2, 1: 2}}
    a.beat()
    h.check_reload()


def test_a_deleted_group_leaves_no_record_behind() -> None:
    h, a = group_of_one()
    h.append(ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue(topics=()))
    a.leave()
    h.append(*regex_record("g", "t.*", ResolvedRegex(frozenset({"t"}), 1, 1)))
    assert h.left_by_compaction()
    assert h.handle(c.DeleteGroup("g")) is ErrorCode.NONE
    assert h.left_by_compaction() == []


def test_an_assignment_that_is_gone_frees_its_partitions() -> None:
    h, _ = group_of_one()
    group = h.consumer_group().copy()
    at_once(group.apply(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="nobody"), None))
    at_once(group.apply(ConsumerGroupCurrentMemberAssignmentKey(group_id="g", member_id="a"), None))
    member = group.members["a"]
    assert (member.member_epoch, member.previous_member_epoch, member.assigned) == (-1, -1, {})
    assert group.owners == {}
