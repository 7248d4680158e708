"""Offsets: who may commit, who is fenced, what a reader gets. Facts observed on Apache Kafka 4.3.1."""

import uuid
from typing import Any

import pytest

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.log_format import ModernKey
from odradek.coordinators.records import OffsetCommitKey, OffsetCommitValue
from odradek.coordinators.shard import CoordinatorResult
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ZERO_UUID
from tests.unit.coordinators.groups.consumers import ConsumerHarness
from tests.unit.coordinators.groups.harness import START_MS, Harness

PRODUCER = 9


def fetch_all(h: Harness, group_id: str = "g", *, require_stable: bool = False) -> dict[str, dict[int, Any]]:
    topics = h.handle(c.FetchOffsets(group_id, None, require_stable))
    return {t.name: {p.partition_index: p for p in t.partitions} for t in topics}


def pending(
    h: Harness, offset: int, producer_id: int = PRODUCER, group_id: str = "g", partition: int = 0
) -> None:
    """Stage an offset in a producer's open transaction."""
    key = OffsetCommitKey(group=group_id, topic="t", partition=partition)
    value = OffsetCommitValue(offset=offset, metadata="", commit_timestamp=h.now.wall_ms)
    h.append(key, value, producer_id)


def test_a_commit_is_a_record_and_read_back() -> None:
    h = Harness()
    topic_id = uuid.UUID(int=77)
    wanted = c.OffsetToCommit("t", topic_id, 3, 42, 5, "note")
    assert h.handle(c.CommitOffsets("g", "", None, -1, [wanted])) == [ErrorCode.NONE]
    ((key, value),) = h.log
    assert key == OffsetCommitKey(group="g", topic="t", partition=3)
    assert value == OffsetCommitValue(
        offset=42, leader_epoch=5, metadata="note", commit_timestamp=START_MS, topic_id=topic_id
    )
    row = fetch_all(h)["t"][3]
    assert (row.committed_offset, row.committed_leader_epoch, row.metadata) == (42, 5, "note")


def test_a_commit_without_a_group_makes_a_simple_one() -> None:
    h = Harness()
    assert h.commit(5) == ErrorCode.NONE
    assert (h.group().state, h.group().protocol_type) == (GroupState.EMPTY, None)
    assert h.commit(6) == ErrorCode.NONE
    assert h.committed() == 6


@pytest.mark.parametrize(("illegal", "code"), [(True, "ILLEGAL_GENERATION"), (False, "GROUP_ID_NOT_FOUND")])
def test_a_member_of_no_group_cannot_commit(illegal: bool, code: str) -> None:
    h = Harness()
    answer = h.commit(5, "m", 3, unknown_group_is_illegal_generation=illegal)
    assert answer == ErrorCode[code]
    assert h.shard.groups == {}


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"member_id": "m"}, ErrorCode.NONE),
        ({"instance": "i"}, ErrorCode.NONE),
        ({"member_id": "m", "generation_id": 4}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_an_empty_group_takes_commits_without_a_generation(fields: dict[str, Any], code: ErrorCode) -> None:
    h = Harness()
    h.commit(1)
    assert h.commit(5, **fields) == code


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"generation_id": 1}, ErrorCode.NONE),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": -1, "member_id": ""}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1, "member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 1, "instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
    ],
)
def test_a_stable_group_takes_commits_of_its_generation_only(fields: dict[str, Any], code: ErrorCode) -> None:
    h = Harness()
    (a,) = h.stable()
    assert h.commit(5, **{"member_id": a, **fields}) == code


def test_a_generation_that_is_being_assigned_cannot_commit_yet() -> None:
    h = Harness()
    (a,) = h.stable()
    h.join(member_id=a)
    assert h.group().state is GroupState.COMPLETING_REBALANCE
    assert h.commit(5, a, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.commit(5, a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert h.commit(5, a) == ErrorCode.ILLEGAL_GENERATION
    assert h.commit(5) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_old_generation_commits_until_the_next_begins() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join()
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.commit(5, a, 1) == ErrorCode.NONE
    h.join(member_id=a)
    h.join(member_id=b)
    assert h.commit(6, a, 1) == ErrorCode.ILLEGAL_GENERATION
    assert h.committed() == 5


def test_a_generation_the_log_never_had_cannot_commit() -> None:
    """Else, if the coordinator moved now, generation 1 would be the current one again and commit after it."""
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=a)
    h.join(member_id=b)
    assert h.group().generation_id == 2
    h.leave(b)
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.commit(5, a, 2) == ErrorCode.REBALANCE_IN_PROGRESS
    h.reload()
    assert h.commit(5, a, 2) == ErrorCode.ILLEGAL_GENERATION
    assert h.commit(6, a, 1) == ErrorCode.NONE


def test_a_commit_keeps_its_member_alive() -> None:
    h = Harness()
    (a,) = h.stable()
    for offset in range(5):
        h.advance(9_000)
        assert h.commit(offset, a, 1) == ErrorCode.NONE
    assert h.group().state is GroupState.STABLE


def test_metadata_is_measured_as_java_measures_it() -> None:
    h = Harness(offset_metadata_max_bytes=8)
    assert h.commit(1, metadata="x" * 8) == ErrorCode.NONE
    assert h.commit(2, metadata="é" * 8) == ErrorCode.NONE
    assert h.commit(3, metadata="x" * 9) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert h.commit(4, metadata="🙂" * 5) == ErrorCode.OFFSET_METADATA_TOO_LARGE
    assert h.committed() == 2


def test_one_offset_refused_does_not_refuse_the_others() -> None:
    h = Harness(offset_metadata_max_bytes=1)
    offsets = [c.OffsetToCommit("t", ZERO_UUID, p, p, -1, "x" * p) for p in range(3)]
    codes = h.handle(c.CommitOffsets("g", "", None, -1, offsets))
    assert codes == [0, 0, ErrorCode.OFFSET_METADATA_TOO_LARGE]
    assert list(fetch_all(h)["t"]) == [0, 1]


def test_a_commit_of_nothing_writes_nothing() -> None:
    h = Harness()
    assert h.handle(c.CommitOffsets("g", "", None, -1, [])) == []
    assert h.log == []


def test_an_append_that_fails_commits_nothing() -> None:
    h = Harness()
    h.commit(1)
    h.append_error = KafkaError(ErrorCode.MESSAGE_TOO_LARGE)
    assert h.commit(2) == ErrorCode.MESSAGE_TOO_LARGE
    assert h.committed() == 1


def test_what_was_never_committed_has_no_offset_and_no_error() -> None:
    h = Harness()
    assert h.committed("nobody") == -1
    h.commit(5)
    assert h.committed(topic="u") == -1
    assert h.committed(partition=9) == -1
    assert fetch_all(h, "nobody") == {}


def test_an_offset_of_a_deleted_topic_is_not_its_successors() -> None:
    h = Harness()
    old, new = uuid.UUID(int=1), uuid.UUID(int=2)
    h.handle(c.CommitOffsets("g", "", None, -1, [c.OffsetToCommit("t", old, 0, 5, -1, "")]))
    for topic_id, offset in [(old, 5), (new, -1), (ZERO_UUID, 5)]:
        (topic,) = h.handle(c.FetchOffsets("g", [c.WantedTopic("t", topic_id, [0])], False))
        assert topic.partitions[0].committed_offset == offset


# --- transactions, as other brokers leave them in the log -------------------------------------------------


def test_an_offset_in_an_open_transaction_is_not_read_but_seen_as_unstable() -> None:
    h = Harness()
    h.commit(1)
    h.commit(1, partition=1)
    pending(h, 7)
    rows = fetch_all(h)["t"]
    assert (rows[0].committed_offset, rows[0].error_code) == (1, ErrorCode.NONE)
    rows = fetch_all(h, require_stable=True)["t"]
    assert (rows[0].committed_offset, rows[0].error_code) == (-1, ErrorCode.UNSTABLE_OFFSET_COMMIT)
    assert (rows[1].committed_offset, rows[1].error_code) == (1, ErrorCode.NONE)


@pytest.mark.parametrize(("committed", "offset"), [(True, 7), (False, 1)])
def test_the_end_of_a_transaction_decides_its_offsets(committed: bool, offset: int) -> None:
    h = Harness()
    h.commit(1)
    pending(h, 7)
    h.shard.replay_marker(PRODUCER, committed)
    assert h.committed() == offset
    assert fetch_all(h, require_stable=True)["t"][0].error_code == ErrorCode.NONE
    h.shard.replay_marker(PRODUCER, committed)
    assert h.committed() == offset


def test_a_later_commit_outlives_an_earlier_one_in_a_transaction() -> None:
    h = Harness()
    pending(h, 7)
    h.commit(9)
    h.shard.replay_marker(PRODUCER, True)
    assert h.committed() == 9


def test_transactions_of_two_producers_end_apart() -> None:
    h = Harness()
    pending(h, 7, producer_id=1)
    pending(h, 8, producer_id=2, partition=1)
    h.shard.replay_marker(1, True)
    assert h.committed() == 7
    assert h.committed(partition=1) == -1
    h.shard.replay_marker(2, True)
    assert h.committed(partition=1) == 8


# --- deleting ---------------------------------------------------------------------------------------------


def test_offsets_are_deleted_one_by_one() -> None:
    h = Harness()
    h.commit(5)
    h.commit(6, partition=1)
    assert h.handle(c.DeleteOffsets("g", [("t", [0, 7]), ("u", [0])])) == [[0, 0], [0]]
    assert (h.committed(), h.committed(partition=1)) == (-1, 6)
    assert len(h.log) == 3


def test_an_offset_that_is_named_often_is_deleted_once() -> None:
    h = Harness()
    h.commit(5)
    assert h.handle(c.DeleteOffsets("g", [("t", [0] * 50)])) == [[0] * 50]
    assert h.committed() == -1
    assert len(h.log) == 2


def test_offsets_of_an_unknown_group_cannot_be_deleted() -> None:
    h = Harness()
    assert h.code(c.DeleteOffsets("g", [("t", [0])])) == ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_topics_the_group_reads_stay() -> None:
    h = Harness()
    (a,) = h.stable()
    h.commit(5, a, 1)
    h.commit(5, a, 1, topic="u")
    codes = h.handle(c.DeleteOffsets("g", [("t", [0]), ("u", [0])]))
    assert codes == [[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC], [ErrorCode.NONE]]
    assert (h.committed(), h.committed(topic="u")) == (5, -1)


def test_offsets_of_a_group_that_is_not_a_consumers_stay_while_it_has_members() -> None:
    h = Harness()
    (a,) = h.stable(1, protocol_type="connect")
    h.commit(5, a, 1)
    assert h.code(c.DeleteOffsets("g", [("t", [0])])) == ErrorCode.NON_EMPTY_GROUP
    h.leave(a)
    assert h.handle(c.DeleteOffsets("g", [("t", [0])])) == [[0]]


def test_a_pending_offset_is_deleted_too() -> None:
    h = Harness()
    pending(h, 7)
    assert h.handle(c.DeleteOffsets("g", [("t", [0])])) == [[0]]
    h.shard.replay_marker(PRODUCER, True)
    assert h.committed() == -1


# --- at the edges ---------------------------------------------------------------------------------------


def test_generation_zero_is_a_generation() -> None:
    """Only a negative one means that no member speaks."""
    h = Harness()
    assert h.commit(5, "m", 0, group_id="none") == ErrorCode.GROUP_ID_NOT_FOUND
    h.stable()
    assert h.commit(5, "", 0, producer=(1, 0)) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.commit(5, "", -1, producer=(1, 0)) == ErrorCode.NONE


def test_many_offsets_are_committed_at_once() -> None:
    h = Harness()
    offsets = [c.OffsetToCommit("t", ZERO_UUID, partition, partition, -1, "") for partition in range(40)]
    assert h.handle(c.CommitOffsets("g", "", None, -1, offsets)) == [ErrorCode.NONE] * 40
    assert [h.committed(partition=partition) for partition in range(40)] == list(range(40))


def test_a_commit_is_written_in_the_transaction_of_its_producer() -> None:
    h = Harness()
    wanted = c.OffsetToCommit("t", ZERO_UUID, 0, 5, -1, "")
    for producer in (None, (7, 3)):
        result = h.shard.handle(c.CommitOffsets("g", "", None, -1, [wanted], producer=producer), 1, h.now)
        assert isinstance(result, CoordinatorResult)
        assert result.producer == producer


def test_members_of_a_streams_group_are_not_known_here() -> None:
    h = Harness()
    raw = (17).to_bytes(2, "big") + (1).to_bytes(2, "big") + b"g"
    h.append(ModernKey(17, "g", raw), b"\0\0group")
    assert h.commit(5) == ErrorCode.NONE
    assert h.commit(5, "", 0) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.commit(5, "m") == ErrorCode.UNKNOWN_MEMBER_ID
    for member_id, epoch, code in (
        (None, -1, ErrorCode.NONE),
        ("m", -1, ErrorCode.NONE),
        ("m", 0, ErrorCode.UNKNOWN_MEMBER_ID),
    ):
        assert h.code(c.FetchOffsets("g", None, True, member_id, epoch)) == code


def test_a_client_too_old_for_consumer_groups_is_told_so() -> None:
    h = ConsumerHarness()
    h.topic("t", 1)
    a = h.member("a", "t").join()
    assert (
        h.commit(5, "a", a.epoch, unknown_group_is_illegal_generation=True) == ErrorCode.UNSUPPORTED_VERSION
    )
    assert h.commit(5, "a", a.epoch) == ErrorCode.NONE
    a.leave()
    assert h.commit(5, "", 0) == ErrorCode.UNKNOWN_MEMBER_ID
