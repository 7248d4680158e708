"""Consumer groups: epochs, reconciliation, timeouts, metadata. Facts observed on Apache Kafka 4.3.1."""

import dataclasses

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.consumer.member import MemberState
from odradek.coordinators.records import (
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
)
from odradek.coordinators.shard import CoordinatorResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import at_once
from tests.unit.coordinators.groups.consumers import ConsumerHarness, beat_in_turns


def test_the_first_member_gets_everything_at_epoch_two() -> None:
    h = ConsumerHarness()
    h.topic("t", 3)
    a = h.member("a", "t").join()
    assert (a.epoch, a.partitions) == (2, [0, 1, 2])
    assert h.consumer_group().state == "Stable"
    assert [type(key).__name__.removeprefix("ConsumerGroup") for key, _ in h.log] == [
        "MemberMetadataKey",
        "MetadataKey",
        "TargetAssignmentMemberKey",
        "TargetAssignmentMetadataKey",
        "CurrentMemberAssignmentKey",
    ]


def test_a_partition_moves_only_when_its_owner_let_go() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t").join()
    b = h.member("b", "t").join()
    assert (b.epoch, b.partitions) == (3, [])
    owned = a.assigned
    a.beat()
    assert (a.epoch, a.partitions) == (2, [0])
    assert h.consumer_group().members["a"].state is MemberState.UNREVOKED_PARTITIONS
    a.beat(owned=owned)
    b.beat()
    assert b.partitions == []
    a.beat()
    assert a.epoch == 3
    b.beat()
    assert b.partitions == [1]


def test_a_member_that_does_not_say_what_it_owns_has_let_nothing_go() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a, _ = h.member("a", "t").join(), h.member("b", "t").join()
    a.beat()
    for _ in range(3):
        a.beat(owned=None)
        assert a.epoch == 2


def test_a_member_that_does_not_revoke_in_time_is_fenced() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a, b = h.member("a", "t").join(), h.member("b", "t").join()
    owned = a.assigned
    a.beat()
    h.advance(6_000)
    a.beat(owned=owned)
    b.beat()
    h.advance(3_999)
    assert "a" in h.consumer_group().members
    h.advance(1)
    assert "a" not in h.consumer_group().members
    assert a.code(owned=owned) is ErrorCode.UNKNOWN_MEMBER_ID
    beat_in_turns(b)
    assert b.partitions == [0, 1]


def test_a_silent_member_is_fenced_when_its_session_ends() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t").join()
    h.advance(44_999)
    a.beat()
    h.advance(44_999)
    assert "a" in h.consumer_group().members
    h.advance(1)
    assert h.consumer_group().state == "Empty"
    assert h.consumer_group().group_epoch == 3


def test_a_groups_own_session_timeout_counts_within_the_bounds() -> None:
    h = ConsumerHarness()
    h.set_group("g", consumer_session_timeout_ms="50000", consumer_heartbeat_interval_ms="1")
    h.topic("t", 1)
    answer = h.member("a", "t").join().beat()
    assert answer.heartbeat_interval == 5_000
    h.advance(49_999)
    assert "a" in h.consumer_group().members
    h.advance(1)
    assert "a" not in h.consumer_group().members


def test_sessions_and_revocations_are_timed_anew_after_a_load() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a, b = h.member("a", "t").join(), h.member("b", "t").join()
    a.beat()
    h.advance(9_000)
    h.reload()
    h.advance(9_999)
    assert "a" in h.consumer_group().members
    h.advance(1)
    assert "a" not in h.consumer_group().members
    h.advance(35_000)
    assert h.consumer_group().members == {}
    assert b.code() is ErrorCode.UNKNOWN_MEMBER_ID


def test_a_lost_answer_can_be_asked_for_again() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a, b = h.member("a", "t").join(), h.member("b", "t").join()
    a.beat()
    a.beat()
    assert a.epoch == 3
    a.epoch = 2
    assert a.beat().member_epoch == 3
    a.epoch = 2
    assert a.code(owned={**a.assigned, next(iter(a.assigned)): frozenset({0, 1})}) is (
        ErrorCode.FENCED_MEMBER_EPOCH
    )
    assert a.code(member_epoch=1) is ErrorCode.FENCED_MEMBER_EPOCH
    assert a.code(member_epoch=4) is ErrorCode.FENCED_MEMBER_EPOCH
    beat_in_turns(a, b)


def test_assignments_are_no_more_frequent_than_the_interval_allows() -> None:
    h = ConsumerHarness(consumer_assignment_interval_ms=1_000)
    h.topic("t", 2)
    a, b = h.member("a", "t").join(), h.member("b", "t").join()
    assert (b.epoch, h.consumer_group().state) == (2, "Assigning")
    h.advance(999)
    b.beat()
    assert h.consumer_group().assignment_epoch == 2
    h.advance(1)
    b.beat()
    assert h.consumer_group().assignment_epoch == 3
    beat_in_turns(a, b)
    assert (a.partitions, b.partitions) == ([0], [1])


def test_settings_that_change_while_the_node_runs_act_at_once() -> None:
    h = ConsumerHarness(consumer_assignment_interval_ms=1_000)
    h.topic("t", 2)
    h.member("a", "t").join()
    b = h.member("b", "t").join()
    assert h.consumer_group().assignment_epoch == 2
    h.shard.reconfigure(dataclasses.replace(h.config, consumer_assignment_interval_ms=0))
    b.beat()
    assert h.consumer_group().assignment_epoch == 3


def test_a_clock_that_was_set_back_does_not_hold_up_assignments() -> None:
    h = ConsumerHarness(consumer_assignment_interval_ms=1_000)
    h.topic("t", 2)
    a = h.member("a", "t").join()
    h.now = h.now._replace(wall_ms=h.now.wall_ms - 3_600_000)
    b = h.member("b", "t").join()
    assert h.consumer_group().assignment_epoch == 3
    beat_in_turns(a, b)


def test_topics_that_come_grow_and_go_give_the_group_a_new_epoch() -> None:
    h = ConsumerHarness()
    a = h.member("a", "t", "u").join()
    assert (a.epoch, a.partitions) == (2, [])
    h.topic("t", 2)
    a.beat()
    assert (a.epoch, a.partitions) == (3, [0, 1])
    h.topic("t", 3)
    a.beat()
    assert (a.epoch, a.partitions) == (4, [0, 1, 2])
    h.topic("other", 3)
    a.beat()
    assert a.epoch == 4
    h.topic("t", 0)
    a.beat()
    a.beat()
    assert (a.epoch, a.partitions) == (5, [])
    h.topic("t", 1)
    a.beat()
    assert (a.epoch, a.partitions) == (6, [0])


def test_a_topic_that_changes_between_two_steps_of_a_heartbeat_is_noticed_with_the_next() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t").join()
    command = c.ConsumerHeartbeat(group_id="g", member_id="a", member_epoch=a.epoch, owned=a.assigned)
    outcome = h.shard.handle(command, 100, h.now)
    assert not isinstance(outcome, CoordinatorResult)
    next(outcome)
    t = h.topic("t", 3)
    h.run(at_once(outcome), 100)
    before = a.epoch
    assert a.beat().member_epoch == before + 1
    assert a.assigned == {t: frozenset({0, 1, 2})}


def test_a_topic_changed_while_nobody_led_is_noticed_after_the_load() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    a = h.member("a", "t").join()
    h.topic("t", 2)
    h.reload()
    a.beat()
    assert a.partitions == [0, 1]
    before = len(h.log)
    h.reload()
    a.beat()
    assert len(h.log) == before, "nothing changed: nothing is written"


def test_a_record_of_older_releases_is_dropped() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    a = h.member("a", "t").join()
    h.append(ConsumerGroupPartitionMetadataKey(group_id="g"), ConsumerGroupPartitionMetadataValue(topics=()))
    h.topic("t", 2)
    a.beat()
    assert (ConsumerGroupPartitionMetadataKey(group_id="g"), None) in h.log
    assert not h.consumer_group().has_partition_metadata


def test_the_preferred_assignor_is_what_most_members_ask_for() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t", server_assignor="range").join()
    describe = c.DescribeConsumerGroup("g")
    assert h.handle(describe).assignor_name == "range"
    h.member("b", "t", server_assignor="uniform").join()
    h.member("c", "t", server_assignor="uniform").join()
    assert h.handle(describe).assignor_name == "uniform"
    a.leave()


def test_a_full_group_takes_nobody_else() -> None:
    h = ConsumerHarness(consumer_max_size=1)
    h.topic("t", 1)
    a = h.member("a", "t").join()
    with pytest.raises(KafkaError, match="maximum capacity of 1") as refused:
        h.member("b", "t").join()
    assert refused.value.code is ErrorCode.GROUP_MAX_SIZE_REACHED
    a.join()


def test_a_refused_append_changes_nothing() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.append_error = KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
    with pytest.raises(KafkaError):
        h.member("a", "t").join()
    h.append_error = None
    assert h.shard.groups == {}
    assert h.shard.next_deadline_ms() is None
    assert h.member("a", "t").join().epoch == 2


# --- static members -------------------------------------------------------------------------------------


def test_a_static_member_keeps_its_partitions_while_it_is_away() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", "t", instance_id="i").join()
    b = h.member("b", "t").join()
    beat_in_turns(a, b)
    kept = a.partitions
    a.leave(-2)
    beat_in_turns(b)
    assert b.partitions == [p for p in (0, 1) if p not in kept]
    again = h.member("a2", "t", instance_id="i").join()
    assert again.partitions == kept
    assert (again.epoch, h.consumer_group().group_epoch) == (3, 3)
    assert a.code(member_epoch=3, instance_id="i") is ErrorCode.FENCED_INSTANCE_ID
    h.check_reload()


def test_a_static_member_that_stays_away_loses_its_place() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    a = h.member("a", "t", instance_id="i").join()
    a.leave(-2)
    h.advance(45_000)
    assert h.consumer_group().members == {}
    assert h.consumer_group().static_members == {}


def test_an_instance_that_did_not_leave_is_not_taken_over() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.member("a", "t", instance_id="i").join()
    with pytest.raises(KafkaError) as refused:
        h.member("b", "t", instance_id="i").join()
    assert refused.value.code is ErrorCode.UNRELEASED_INSTANCE_ID


# --- offsets --------------------------------------------------------------------------------------------


def commit_code(h: ConsumerHarness, topic: str, partition: int, member_id: str, epoch: int) -> ErrorCode:
    offset = c.OffsetToCommit(topic, h.image.topics_by_name[topic].id, partition, 5, -1, "")
    try:
        return ErrorCode(h.handle(c.CommitOffsets("g", member_id, None, epoch, [offset]))[0])
    except KafkaError as e:
        return e.code


def test_offsets_are_committed_at_the_members_epoch_or_for_what_it_has_had_since() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a, b = h.member("a", "t").join(), h.member("b", "t").join()
    assert commit_code(h, "t", 0, "a", 2) is ErrorCode.NONE
    assert commit_code(h, "t", 0, "a", 3) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_code(h, "t", 0, "nobody", 2) is ErrorCode.UNKNOWN_MEMBER_ID
    assert commit_code(h, "t", 0, "", -1) is ErrorCode.UNKNOWN_MEMBER_ID
    beat_in_turns(a, b)
    assert (a.epoch, b.epoch) == (3, 3)
    assert commit_code(h, "t", 0, "a", 2) is ErrorCode.NONE
    assert commit_code(h, "t", 1, "a", 2) is ErrorCode.STALE_MEMBER_EPOCH
    assert commit_code(h, "t", 0, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    a.leave()
    b.leave()
    assert commit_code(h, "t", 0, "", -1) is ErrorCode.NONE


def test_a_transaction_commits_by_the_members_epoch_and_hears_of_generations() -> None:
    h = ConsumerHarness()
    identifier = h.topic("t", 1)
    h.member("a", "t").join()

    def code(member_id: str, epoch: int) -> ErrorCode:
        offset = c.OffsetToCommit("t", identifier, 0, 5, -1, "")
        return ErrorCode(h.code(c.CommitOffsets("g", member_id, None, epoch, [offset], producer=(1, 0))))

    assert code("a", 2) is ErrorCode.NONE
    assert code("", -1) is ErrorCode.NONE, "a producer that knows no group is fenced by its own epoch"
    assert code("a", 3) is ErrorCode.ILLEGAL_GENERATION
    assert code("b", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def fetch_code(h: ConsumerHarness, member_id: str | None, epoch: int) -> ErrorCode:
    try:
        h.handle(c.FetchOffsets("g", None, True, member_id, epoch))
    except KafkaError as e:
        return e.code
    return ErrorCode.NONE


def test_offsets_are_fetched_at_the_members_epoch() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    h.member("a", "t").join()
    assert fetch_code(h, "a", 2) is ErrorCode.NONE
    assert fetch_code(h, None, -1) is ErrorCode.NONE
    assert fetch_code(h, "a", 1) is ErrorCode.STALE_MEMBER_EPOCH
    assert fetch_code(h, "b", 2) is ErrorCode.UNKNOWN_MEMBER_ID


def test_offsets_of_subscribed_topics_neither_expire_nor_can_be_deleted() -> None:
    h = ConsumerHarness(offsets_retention_ms=1_000)
    h.topic("t", 1)
    a = h.member("a", "t").join()
    assert commit_code(h, "t", 0, "a", 2) is ErrorCode.NONE
    h.advance(2_000)
    assert h.handle(c.ExpireOffsets()) == 0
    assert h.handle(c.DeleteOffsets("g", [("t", [0])])) == [[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]]
    with pytest.raises(KafkaError):
        h.handle(c.DeleteGroup("g"))
    a.leave()
    assert h.handle(c.ExpireOffsets()) > 0
    assert h.shard.groups == {}


def test_an_empty_group_is_deleted_whole() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    a = h.member("a", "t").join()
    commit_code(h, "t", 0, "a", 2)
    a.leave()
    assert h.handle(c.DeleteGroup("g")) is ErrorCode.NONE
    assert h.shard.groups == {}
    h.reload()
    assert h.shard.groups == {}
    assert h.member("a", "t").join().epoch == 2


# --- regular expressions ----------------------------------------------------------------------------------


def test_a_regex_is_resolved_after_the_join_and_again_when_topics_come() -> None:
    h = ConsumerHarness()
    h.topic("t-1", 1)
    a = h.member("a", subscribed_topic_regex="t-.*").join(subscribed_topic_names=None)
    assert (a.epoch, a.partitions) == (1, [])
    a.beat()
    assert (a.epoch, a.partitions) == (2, [0])
    h.topic("t-2", 1)
    a.beat()
    assert a.epoch == 2, "not more often than every ten seconds"
    h.advance(10_001)
    a.beat()
    a.beat()
    assert (a.epoch, a.partitions) == (3, [0, 0])
    h.check_reload()
    h.topic("t-1", 0)
    a.beat()
    a.beat()
    assert a.partitions == [0]


def test_what_re2j_refuses_is_no_subscription() -> None:
    h = ConsumerHarness()
    with pytest.raises(KafkaError) as refused:
        h.member("a", subscribed_topic_regex="(?=t)").join(subscribed_topic_names=None)
    assert refused.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
    assert h.shard.groups == {}
    assert h.log == []


def test_a_regex_nobody_has_any_more_is_forgotten() -> None:
    h = ConsumerHarness()
    h.topic("t", 2)
    a = h.member("a", subscribed_topic_regex="t").join(subscribed_topic_names=None)
    b = h.member("b", subscribed_topic_regex="t").join(subscribed_topic_names=None)
    beat_in_turns(a, b)
    assert sorted(a.partitions + b.partitions) == [0, 1]
    a.beat(subscribed_topic_regex="")
    assert list(h.consumer_group().regexes) == ["t"]
    beat_in_turns(a, b)
    assert (a.partitions, b.partitions) == ([], [0, 1])
    b.leave()
    assert h.consumer_group().regexes == {}
    h.check_reload()
