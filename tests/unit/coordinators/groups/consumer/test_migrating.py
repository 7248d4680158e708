"""Groups that change their protocol while they run, and classic members inside consumer groups.

Facts observed on Apache Kafka 4.3.1.
"""

from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.group import ClassicGroup
from odradek.coordinators.groups.classic.states import GroupState
from odradek.core.errors import ErrorCode, KafkaError
from odradek.wire import consumer_protocol as wire
from tests.unit.coordinators.groups.consumer.classic_consumers import (
    ClassicConsumer,
    assignment,
    classic_group,
    consumer_group_with_classic,
)
from tests.unit.coordinators.groups.consumers import ConsumerHarness, beat_in_turns


def test_a_classic_group_is_upgraded_when_a_consumer_joins() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    old = classic_group(h)
    generation = old.generation
    new = h.member("new", "t").join()
    group = h.consumer_group()
    assert (group.group_epoch, new.epoch, new.partitions) == (generation + 1, generation + 1, [])
    assert group.members[old.member_id].member_epoch == generation
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    joined = old.join()
    assert joined is not None
    assert (joined.generation_id, joined.leader, joined.protocol_name) == (generation, "", "range")
    old.sync()
    assert old.owned == {"t": [0]}
    old.follow()
    assert old.generation == generation + 1
    assert old.beat() is ErrorCode.NONE
    new.beat()
    assert new.partitions == [1]
    h.check_reload()


def test_members_that_wait_in_the_classic_group_are_sent_back() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    old = classic_group(h)
    other = ClassicConsumer(h)
    assert other.join() is None
    waiting = h.tickets
    h.member("new", "t").join()
    assert h.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert len(h.consumer_group().members) == 3
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS


@pytest.mark.parametrize("policy", ["disabled", "downgrade"])
def test_without_the_policy_a_classic_group_stays_classic(policy: str) -> None:
    h = ConsumerHarness(consumer_migration_policy=policy)
    h.topic("t", 2)
    old = classic_group(h)
    with pytest.raises(KafkaError, match="online upgrade is disabled") as refused:
        h.member("new", "t").join()
    assert refused.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    assert old.beat() is ErrorCode.NONE


def test_a_custom_assignors_data_would_be_lost_so_that_the_group_stays_classic() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    classic_group(h, wire.encode_assignment(wire.Assignment(assigned_partitions=[], user_data=b"mine")))
    with pytest.raises(KafkaError, match="unsupported custom assignor"):
        h.member("new", "t").join()
    assert isinstance(h.shard.groups["g"], ClassicGroup)


def test_an_empty_classic_group_becomes_a_consumer_group_and_keeps_its_offsets() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.commit(7)
    a = h.member("a", "t").join()
    assert a.epoch == 2
    assert h.committed() == 7
    a.leave()
    h.reload()
    assert h.committed() == 7


def test_an_empty_consumer_group_becomes_classic_when_a_classic_member_joins() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    h.member("a", "t").join().leave()
    classic_group(h)
    h.reload()
    assert h.group().state is GroupState.STABLE


def test_a_classic_member_joins_a_consumer_group() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h)
    assert (new.epoch, old.generation) == (3, 3)
    described = {m.member_id: m.member_type for m in h.handle(c.DescribeConsumerGroup("g")).members}
    assert described == {"a": 1, "z": 0}
    assert h.commit(5, old.member_id, 3) == ErrorCode.NONE
    assert h.commit(5, old.member_id, 4) == ErrorCode.ILLEGAL_GENERATION
    h.check_reload()


def test_a_new_classic_member_is_first_given_an_id() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    h.member("a", "t").join()
    old = ClassicConsumer(h)
    answer = old.join(known_member_required=True)
    assert answer is not None
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert len(h.consumer_group().members) == 1
    again = old.join(known_member_required=True)
    assert again is not None
    assert again.error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "nobody"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "a"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation": 99}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_classic_member_is_known_by_id_and_epoch(fields: dict[str, Any], code: ErrorCode) -> None:
    h = ConsumerHarness()
    _, old = consumer_group_with_classic(h)
    member_id = fields.get("member_id", old.member_id)
    generation = fields.get("generation", old.generation)
    assert h.heartbeat(member_id, generation) == code
    assert h.code(h_sync(member_id, generation)) == code


def h_sync(member_id: str, generation: int) -> c.SyncGroup:
    return c.SyncGroup(
        group_id="g",
        member_id=member_id,
        group_instance_id=None,
        generation_id=generation,
        protocol_type="consumer",
        protocol_name="range",
        assignments=[],
    )


def test_a_classic_member_that_does_not_rejoin_in_time_is_fenced() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h, rebalance_timeout_ms=20_000, session_timeout_ms=30_000)
    h.topic("t", 3)
    new.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    h.advance(19_000)
    new.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    h.advance(1_000)
    assert old.member_id not in h.consumer_group().members


def test_a_classic_member_that_joins_and_never_syncs_is_fenced() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    h.member("a", "t").join()
    old = ClassicConsumer(h, member_id="z", rebalance_timeout_ms=10_000, session_timeout_ms=30_000)
    old.join()
    h.advance(10_000)
    assert "z" not in h.consumer_group().members


def test_the_group_is_downgraded_when_its_last_consumer_leaves() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h)
    new.leave()
    group = h.group()
    assert group.state is GroupState.PREPARING_REBALANCE
    assert group.generation_id == 3
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    answer = old.join()
    assert answer is not None
    assert (answer.error_code, answer.leader, old.generation) == (ErrorCode.NONE, old.member_id, 4)
    old.sync([(old.member_id, assignment(t=[0, 1]))])
    h.reload()
    assert h.group().state is GroupState.STABLE


def test_the_group_is_downgraded_when_its_last_consumer_dies() -> None:
    h = ConsumerHarness()
    _, old = consumer_group_with_classic(h, session_timeout_ms=1_000_000)
    h.advance(45_000)
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert h.group().state is GroupState.PREPARING_REBALANCE


def test_without_the_policy_a_consumer_group_of_classic_members_stays_one() -> None:
    h = ConsumerHarness(consumer_migration_policy="upgrade")
    new, old = consumer_group_with_classic(h)
    new.leave()
    for _ in range(4):
        h.topic("other", 1)
        old.follow()
    group = h.consumer_group()
    assert list(group.members) == [old.member_id]
    assert group.group_epoch == 4


def test_with_migration_disabled_no_classic_member_joins_a_consumer_group() -> None:
    h = ConsumerHarness(consumer_migration_policy="disabled")
    h.topic("t", 2)
    h.member("a", "t").join()
    with pytest.raises(KafkaError) as refused:
        ClassicConsumer(h, member_id="z").join()
    assert refused.value.code is ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_static_member_takes_its_place_from_the_consumer_to_the_classic_protocol() -> None:
    """The last one that did: the group is classic from there on, and goes on without a rebalance."""
    h = ConsumerHarness()
    h.topic("t", 2)
    new = h.member("a", "t", instance_id="i").join()
    new.leave(-2)
    old = ClassicConsumer(h, group_instance_id="i")
    answer = old.join()
    assert answer is not None
    assert (answer.error_code, answer.generation_id) == (ErrorCode.NONE, 2)
    group = h.group()
    assert (group.state, group.generation_id, list(group.static_members)) == (GroupState.STABLE, 2, ["i"])
    assert assigned_of(h, old) == {"t": [0, 1]}
    h.reload()
    assert h.group().state is GroupState.STABLE


def assigned_of(h: ConsumerHarness, old: ClassicConsumer) -> dict[str, list[int]]:
    member = h.group().members[old.member_id]
    found = wire.decode_assignment(member.assignment)
    return {row.topic: list(row.partitions) for row in found.assigned_partitions}


def test_a_static_member_takes_its_place_from_the_classic_to_the_consumer_protocol() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    old = classic_group(h, group_instance_id="i")
    new = h.member("new", "t", instance_id="i").join()
    group = h.consumer_group()
    assert list(group.members) == ["new"]
    assert (new.epoch, new.partitions) == (old.generation, [0, 1])
    beat_in_turns(new)


def test_leave_group_sends_members_of_either_protocol_away() -> None:
    h = ConsumerHarness(consumer_migration_policy="upgrade")
    _, old = consumer_group_with_classic(h)
    assert h.leave(old.member_id, "nobody") == [ErrorCode.NONE, ErrorCode.UNKNOWN_MEMBER_ID]
    assert list(h.consumer_group().members) == ["a"]
    assert h.leave("a") == [ErrorCode.NONE]
    assert h.consumer_group().state == "Empty"
