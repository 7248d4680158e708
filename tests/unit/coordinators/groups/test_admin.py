"""Groups listed, described, deleted, expired. Facts observed on Apache Kafka 4.3.1."""

import uuid
from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.log_format import ModernKey
from odradek.coordinators.groups.modern import ModernGroup
from odradek.coordinators.records import (
    ConsumerGroupMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from odradek.coordinators.shard import CoordinatorResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from odradek.runtime.slices import at_once
from tests.unit.coordinators.groups.consumers import ConsumerHarness
from tests.unit.coordinators.groups.harness import Harness

RETENTION_MS = 1_000_000


def modern_key(group_id: str, record_type: int, member: str = "") -> ModernKey:
    name, more = group_id.encode(), member.encode()
    data = record_type.to_bytes(2, "big") + len(name).to_bytes(2, "big") + name
    if member:
        data += len(more).to_bytes(2, "big") + more
    return ModernKey(record_type, group_id, data)


def expiring() -> Harness:
    return Harness(offsets_retention_ms=RETENTION_MS)


def expire(h: Harness) -> int:
    return int(h.handle(c.ExpireOffsets()))


def test_groups_are_listed_with_their_state() -> None:
    h = Harness()
    h.commit(1, group_id="simple")
    h.stable(1, "stable")
    h.join("new", known_member_required=True)
    rows = [(r.group_id, r.protocol_type, r.group_state, r.group_type) for r in h.handle(c.ListGroups())]
    assert rows == [
        ("simple", "", "Empty", "classic"),
        ("stable", "consumer", "Stable", "classic"),
        ("new", "", "Empty", "classic"),
    ]


@pytest.mark.parametrize(
    ("states", "types", "found"),
    [
        ({"empty"}, {}, ["simple", "modern"]),
        ({"stable"}, {}, ["stable"]),
        ({"stable", "empty"}, {"classic"}, ["simple", "stable"]),
        ({}, {"streams"}, ["modern"]),
        ({"nonsense"}, {}, []),
        ({}, {"share"}, []),
    ],
)
def test_lists_are_filtered(states: set[str], types: set[str], found: list[str]) -> None:
    h = Harness()
    h.commit(1, group_id="simple")
    h.stable(1, "stable")
    h.append(modern_key("modern", 17), b"\0\0")
    rows = h.handle(c.ListGroups(frozenset(states), frozenset(types)))
    assert [r.group_id for r in rows] == found


def test_a_stable_group_is_described_with_its_members() -> None:
    h = Harness()
    (a,) = h.stable()
    found = h.handle(c.DescribeGroup("g"))
    assert (found.group_state, found.protocol_type, found.protocol_data) == ("Stable", "consumer", "range")
    (member,) = found.members
    assert (member.member_id, member.client_id, member.client_host) == (a, "client", "/127.0.0.1")
    assert member.member_assignment == f"for {a}".encode()
    assert member.member_metadata.startswith(b"\0\0")


def test_an_unstable_group_is_described_without_assignments() -> None:
    h = Harness()
    (a,) = h.stable()
    h.join()
    found = h.handle(c.DescribeGroup("g"))
    assert (found.group_state, found.protocol_data) == ("PreparingRebalance", "")
    assert [(m.member_metadata, m.member_assignment) for m in found.members] == [(b"", b"")] * 2
    assert found.members[0].member_id == a


def test_an_unknown_group_is_not_found() -> None:
    h = Harness()
    with pytest.raises(KafkaError, match=r"Group nobody not found\.") as e:
        h.handle(c.DescribeGroup("nobody"))
    assert e.value.code == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_group_takes_its_offsets_with_it() -> None:
    h = Harness()
    (a,) = h.stable()
    h.commit(5, a, 1)
    assert h.code(c.DeleteGroup("g")) == ErrorCode.NON_EMPTY_GROUP
    h.leave(a)
    h.commit(6, partition=1)
    group = h.group()
    assert h.handle(c.DeleteGroup("g")) == ErrorCode.NONE
    assert [key for key, value in h.log if value is None] == [
        OffsetCommitKey(group="g", topic="t", partition=0),
        OffsetCommitKey(group="g", topic="t", partition=1),
        GroupMetadataKey(group="g"),
    ]
    assert h.shard.groups == {}
    assert h.committed() == -1
    assert group.state is GroupState.DEAD
    assert h.code(c.DeleteGroup("g")) == ErrorCode.GROUP_ID_NOT_FOUND


def test_a_deleted_group_forgets_the_ids_it_gave_out() -> None:
    h = Harness()
    h.join(known_member_required=True)
    h.handle(c.DeleteGroup("g"))
    assert len(h.shard.timers) == 0
    answer = h.join(member_id="member-1")
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


# --- expiry -----------------------------------------------------------------------------------------------


def test_a_simple_groups_offsets_expire_from_their_commit_on() -> None:
    h = expiring()
    h.commit(1)
    h.advance(RETENTION_MS - 1)
    h.commit(2, partition=1)
    assert expire(h) == 0
    h.advance(1)
    assert expire(h) == 1
    assert (h.committed(), h.committed(partition=1)) == (-1, 2)
    h.advance(RETENTION_MS)
    assert expire(h) == 2, "the last offset and the group"
    assert h.shard.groups == {}


def test_an_empty_groups_offsets_expire_from_its_last_member_on() -> None:
    h = expiring()
    (a,) = h.stable(1, session_timeout_ms=1 << 30)
    h.commit(1, a, 1)
    h.advance(5 * RETENTION_MS)
    h.leave(a)
    h.advance(RETENTION_MS - 1)
    assert expire(h) == 0
    h.advance(1)
    assert expire(h) == 2
    assert h.shard.groups == {}


def test_a_stable_group_keeps_the_offsets_of_what_it_reads() -> None:
    h = expiring()
    (a,) = h.stable(1, session_timeout_ms=1 << 30)
    h.commit(1, a, 1, topic="t")
    h.commit(2, a, 1, topic="former")
    h.advance(RETENTION_MS)
    assert expire(h) == 1
    assert (h.committed(topic="t"), h.committed(topic="former")) == (1, -1)
    assert h.group().state is GroupState.STABLE


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": (c.MemberProtocol("range", b"?"),)}]
)
def test_a_group_whose_topics_are_unknown_keeps_everything(fields: dict[str, Any]) -> None:
    h = expiring()
    (a,) = h.stable(1, session_timeout_ms=1 << 30, **fields)
    h.commit(1, a, 1)
    h.advance(5 * RETENTION_MS)
    assert expire(h) == 0
    assert h.committed() == 1


def test_a_group_in_a_rebalance_keeps_everything() -> None:
    h = expiring()
    (a,) = h.stable(1, session_timeout_ms=1 << 30, rebalance_timeout_ms=1 << 30)
    h.commit(1, a, 1, topic="former")
    h.join(known_member_required=True, session_timeout_ms=1 << 30)
    h.join(member_id="member-2", session_timeout_ms=1 << 30)
    h.advance(RETENTION_MS)
    h.join(member_id=a, session_timeout_ms=1 << 30)
    assert h.group().state is not GroupState.STABLE
    assert expire(h) == 0


def test_a_commit_may_bring_its_own_retention() -> None:
    h = expiring()
    h.commit(1, retention_time_ms=500)
    _, value = h.log[0]
    assert value.expire_timestamp == h.now.wall_ms + 500
    h.commit(2, partition=1)
    h.advance(499)
    assert expire(h) == 0
    h.advance(1)
    assert expire(h) == 1
    assert (h.committed(), h.committed(partition=1)) == (-1, 2)


def test_an_offset_a_transaction_is_about_to_change_does_not_expire() -> None:
    h = expiring()
    h.commit(1)
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    h.append(key, OffsetCommitValue(offset=2, metadata="", commit_timestamp=h.now.wall_ms), producer_id=9)
    h.advance(5 * RETENTION_MS)
    assert expire(h) == 0
    h.shard.replay_marker(9, False)
    assert expire(h) == 2


def test_a_group_with_only_a_pending_offset_stays() -> None:
    h = expiring()
    key = OffsetCommitKey(group="g", topic="t", partition=0)
    h.append(key, OffsetCommitValue(offset=2, metadata="", commit_timestamp=h.now.wall_ms), producer_id=9)
    h.advance(5 * RETENTION_MS)
    assert expire(h) == 0


def test_an_empty_group_without_offsets_is_removed() -> None:
    h = expiring()
    (a,) = h.stable()
    assert expire(h) == 0
    h.leave(a)
    assert expire(h) == 1
    assert h.shard.groups == {}


def test_a_group_somebody_is_about_to_join_is_not_removed() -> None:
    h = expiring()
    h.join(known_member_required=True)
    assert expire(h) == 0
    h.advance(10_000)
    assert expire(h) == 1


def test_offsets_of_deleted_topics_go_with_them() -> None:
    h = Harness()
    old, new = uuid.UUID(int=1), uuid.UUID(int=2)
    for topic, topic_id, partition in [("t", old, 0), ("t", new, 1), ("t", ZERO_UUID, 2), ("u", old, 0)]:
        h.handle(
            c.CommitOffsets("g", "", None, -1, [c.OffsetToCommit(topic, topic_id, partition, 5, -1, "")])
        )
    assert h.handle(c.ForgetTopics({"t": old})) == 2
    assert [h.committed(partition=p) for p in range(3)] == [-1, 5, -1]
    assert h.committed(topic="u") == 5


# --- groups of protocols that are not served --------------------------------------------------------------


def modern(h: Harness, group_id: str = "g", first_type: int = 17) -> None:
    h.append(modern_key(group_id, first_type), b"\0\0group")
    h.append(modern_key(group_id, first_type + 2, "member"), b"\0\0member")


def test_a_streams_group_keeps_its_records_and_serves_its_offsets() -> None:
    h = Harness()
    modern(h)
    assert h.commit(5) == ErrorCode.NONE
    assert h.committed() == 5
    group = h.shard.groups["g"]
    assert isinstance(group, ModernGroup)
    assert list(group.records.values()) == [b"\0\0group", b"\0\0member"]
    assert h.commit(6, "member", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.heartbeat("member", 1) == ErrorCode.UNKNOWN_MEMBER_ID
    with pytest.raises(KafkaError, match="Group g is not a classic group"):
        h.handle(c.DescribeGroup("g"))


def test_a_streams_group_ends_with_its_last_record() -> None:
    h = Harness()
    modern(h)
    h.append(modern_key("g", 19, "member"), None)
    assert "g" in h.shard.groups
    h.append(modern_key("g", 17), None)
    assert "g" not in h.shard.groups
    h.append(modern_key("g", 17), None)


def test_a_classic_member_turns_a_streams_group_into_a_classic_one() -> None:
    h = Harness()
    modern(h)
    h.commit(5)
    before = len(h.log)
    h.join(known_member_required=True)
    written = [
        (type(key).__name__, getattr(key, "record_type", None), value is None)
        for key, value in h.log[before:]
    ]
    assert written == [("ModernKey", 19, True), ("ModernKey", 17, True), ("GroupMetadataKey", None, False)]
    assert h.group().state is GroupState.EMPTY
    assert h.committed() == 5


def test_a_share_group_is_no_place_for_a_classic_member() -> None:
    h = Harness()
    modern(h, first_type=11)
    answer = h.join()
    assert answer is not None
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL


def test_a_streams_group_is_deleted_members_first() -> None:
    h = Harness()
    modern(h)
    h.commit(5)
    h.handle(c.DeleteGroup("g"))
    assert [getattr(key, "record_type", "offset") for key, value in h.log if value is None] == [
        "offset",
        19,
        17,
    ]
    assert h.shard.groups == {}


def test_a_streams_group_outlives_the_simple_one_its_offsets_made() -> None:
    h = Harness()
    h.commit(5)
    modern(h)
    assert isinstance(h.shard.groups["g"], ModernGroup)
    assert h.committed() == 5


# --- what is written ------------------------------------------------------------------------------------


@pytest.mark.parametrize("command", [c.ExpireOffsets(), c.ForgetTopics({})])
def test_tombstones_of_many_groups_need_not_fit_into_one_batch(command: Any) -> None:
    h = Harness()
    outcome = h.shard.handle(command, 1, h.now)
    assert not isinstance(outcome, CoordinatorResult)
    assert not at_once(outcome).atomic


def test_a_consumer_group_is_listed_with_its_type() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.member("a", "t").join()
    (row,) = h.handle(c.ListGroups(frozenset(), frozenset()))
    assert (row.group_id, row.protocol_type, row.group_state, row.group_type) == (
        "g",
        "consumer",
        "Stable",
        "consumer",
    )


def test_a_group_that_is_deleted_waits_for_nothing() -> None:
    """By a tombstone in the log: an administrator cannot delete a group that has members."""
    h = ConsumerHarness()
    h.topic("t", 1)
    h.member("a", "t").join()
    h.join("classic")
    h.advance(0)
    h.append(ConsumerGroupMetadataKey(group_id="g"), None)
    h.append(GroupMetadataKey(group="classic"), None)
    assert h.shard.groups == {}
    assert h.shard.next_deadline_ms() is None
