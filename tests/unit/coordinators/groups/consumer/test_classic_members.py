"""Members of the classic protocol in a consumer group: what they may join with, and what keeps them in it."""

from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.consumer.member import MemberState
from odradek.core.errors import ErrorCode
from tests.unit.coordinators.groups.consumer.classic_consumers import (
    ClassicConsumer,
    classic_group,
    consumer_group_with_classic,
    subscription,
)
from tests.unit.coordinators.groups.consumers import ConsumerHarness


def joined_code(answer: Any) -> ErrorCode:
    assert answer is not None
    return ErrorCode(answer.error_code)


def sync_code(h: ConsumerHarness, member: ClassicConsumer, **fields: Any) -> ErrorCode:
    known: dict[str, Any] = {
        "group_id": "g",
        "member_id": member.member_id,
        "group_instance_id": None,
        "generation_id": member.generation,
        "protocol_type": "consumer",
        "protocol_name": "range",
        "assignments": [],
    }
    return ErrorCode(h.code(c.SyncGroup(**{**known, **fields})))


def join_code(h: ConsumerHarness, **fields: Any) -> ErrorCode:
    return ErrorCode(h.code(h.join_command(**fields)))


def test_classic_members_of_a_consumer_group_share_a_protocol() -> None:
    h = ConsumerHarness()
    consumer_group_with_classic(h)
    other = (c.MemberProtocol("sticky", subscription("t")),)
    both = (*other, c.MemberProtocol("range", subscription("t")))
    assert join_code(h, member_id="y", protocols=other) is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert join_code(h, member_id="y", protocol_type="connect") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert "y" not in h.consumer_group().members
    assert join_code(h, member_id="y", protocols=both) is ErrorCode.NONE


def test_a_full_group_takes_no_classic_member_either() -> None:
    h = ConsumerHarness(consumer_max_size=2)
    _, old = consumer_group_with_classic(h)
    assert join_code(h, member_id="y") is ErrorCode.GROUP_MAX_SIZE_REACHED
    assert joined_code(old.join()) is ErrorCode.NONE, "it is in the group already"


def test_a_sync_names_the_protocol_that_was_joined_with() -> None:
    h = ConsumerHarness()
    _, old = consumer_group_with_classic(h)
    assert sync_code(h, old, protocol_type="connect") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert sync_code(h, old, protocol_name="sticky") is ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert sync_code(h, old, protocol_type=None, protocol_name=None) is ErrorCode.NONE


def test_a_member_behind_the_assignment_has_to_join_before_it_syncs() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h, rebalance_timeout_ms=20_000, session_timeout_ms=45_000)
    h.topic("t", 4)
    new.beat()
    assert sync_code(h, old) is ErrorCode.REBALANCE_IN_PROGRESS
    h.advance(19_999)
    assert old.member_id in h.consumer_group().members
    h.advance(1)
    assert old.member_id not in h.consumer_group().members, "it was told to join, and did not in time"


def test_a_member_that_joined_and_synced_in_time_is_not_waited_for_any_more() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h, rebalance_timeout_ms=20_000, session_timeout_ms=45_000)
    h.topic("t", 4)
    new.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS
    assert joined_code(old.join()) is ErrorCode.NONE
    old.sync()
    h.advance(20_001)
    assert old.member_id in h.consumer_group().members


@pytest.mark.parametrize("way", ["heartbeat", "sync", "join"])
def test_every_request_of_a_classic_member_begins_its_session_again(way: str) -> None:
    h = ConsumerHarness(consumer_session_timeout_ms=60_000)
    new, old = consumer_group_with_classic(h, session_timeout_ms=30_000)
    h.advance(29_999)
    new.beat()
    if way == "heartbeat":
        assert old.beat() is ErrorCode.NONE
    elif way == "sync":
        assert sync_code(h, old) is ErrorCode.NONE
    else:
        assert joined_code(old.join()) is ErrorCode.NONE
    h.advance(29_999)
    assert old.member_id in h.consumer_group().members
    h.advance(1)
    assert old.member_id not in h.consumer_group().members


def test_a_member_is_called_back_only_when_there_is_something_to_get() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    new = h.member("a", "t").join()
    old = ClassicConsumer(h, member_id="z")
    assert joined_code(old.join()) is ErrorCode.NONE
    old.sync()
    assert old.owned == {}
    assert h.consumer_group().members["z"].state is MemberState.UNRELEASED_PARTITIONS
    assert old.beat() is ErrorCode.NONE, "the other member still has what it shall get"
    new.beat()
    assert old.beat() is ErrorCode.NONE
    new.beat()
    assert old.beat() is ErrorCode.REBALANCE_IN_PROGRESS


def test_a_static_classic_member_keeps_its_instance_and_is_sent_away_by_it() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    h.member("a", "t").join()
    old = ClassicConsumer(h, group_instance_id="i")
    assert joined_code(old.join()) is ErrorCode.NONE
    assert h.consumer_group().members[old.member_id].instance_id == "i"
    assert joined_code(old.join()) is ErrorCode.NONE
    assert join_code(h, member_id="other", group_instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    assert h.leave(c.LeavingMember("", "i")) == [ErrorCode.NONE]
    assert list(h.consumer_group().members) == ["a"]


def test_a_rack_that_a_subscription_does_not_name_is_kept() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t", instance_id="i", rack_id="r").join()
    h.member("b", "t").join()
    a.leave(-2)
    old = ClassicConsumer(h, group_instance_id="i")
    assert joined_code(old.join()) is ErrorCode.NONE
    member = h.consumer_group().members[old.member_id]
    assert (member.rack_id, member.instance_id) == ("r", "i")


def test_a_join_looks_at_the_topics_as_they_are() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    h.member("a", "t").join()
    h.topic("t", 3)
    assert not h.consumer_group().metadata_is_fresh
    old = ClassicConsumer(h, member_id="z")
    assert joined_code(old.join()) is ErrorCode.NONE
    assert h.consumer_group().metadata_is_fresh


# --- a group that becomes classic ---------------------------------------------------------------------------


def test_a_group_as_large_as_a_classic_one_may_be_is_downgraded() -> None:
    h = ConsumerHarness(max_size=1)
    new, old = consumer_group_with_classic(h)
    new.leave()
    assert list(h.group().members) == [old.member_id]


def test_a_group_larger_than_a_classic_one_may_be_stays_a_consumer_group() -> None:
    h = ConsumerHarness(max_size=1)
    new, _ = consumer_group_with_classic(h)
    other = ClassicConsumer(h, member_id="y")
    assert joined_code(other.join()) is ErrorCode.NONE
    new.leave()
    assert sorted(h.consumer_group().members) == ["y", "z"]


def test_members_of_a_downgraded_group_have_sessions() -> None:
    h = ConsumerHarness()
    new, old = consumer_group_with_classic(h, session_timeout_ms=30_000, rebalance_timeout_ms=60_000)
    new.leave()
    assert old.member_id in h.group().members
    h.advance(29_999)
    assert old.member_id in h.group().members
    h.advance(1)
    assert old.member_id not in h.group().members


def test_a_downgraded_group_leaves_no_record_of_the_consumer_group() -> None:
    h = ConsumerHarness()
    new, _ = consumer_group_with_classic(h)
    new.leave()
    assert [name for name in h.left_by_compaction() if name.startswith("Consumer")] == []
    assert h.left_by_compaction() == ["GroupMetadataKey"]


def test_a_classic_group_as_large_as_a_consumer_group_may_be_is_upgraded() -> None:
    h = ConsumerHarness(consumer_max_size=2)
    h.topic("t", 2)
    classic_group(h)
    h.member("a", "t").join()
    assert len(h.consumer_group().members) == 2
