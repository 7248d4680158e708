"""SyncGroup, Heartbeat and sessions: when an assignment counts, and how a member is known to live."""

import pytest

from odradek.coordinators.groups.classic.states import GroupState
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.harness import START_MS, Harness


def completing(h: Harness, members: int = 2) -> list[str]:
    """A generation that waits for its leader's assignment; ids, the leader first."""
    tickets = []
    for _ in range(members):
        h.join()
        tickets.append(h.tickets)
    h.advance(0)
    return [h.answers[ticket].member_id for ticket in tickets]


def test_the_assignment_is_in_the_log_before_anybody_has_it() -> None:
    h = Harness()
    a, b = completing(h)
    assert h.sync(b, 1) is None
    waiting = h.tickets
    before = len(h.log)
    answer = h.sync(a, 1, assignments=[(a, b"1"), (b, b"2"), ("stranger", b"3")])
    assert (answer.error_code, answer.assignment) == (0, b"1")
    assert h.answers[waiting].assignment == b"2"
    ((key, value),) = h.log[before:]
    assert key.group == "g"
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == (
        "consumer",
        1,
        "range",
        a,
    )
    assert [(m.member_id, m.assignment) for m in value.members] == [(a, b"1"), (b, b"2")]
    assert value.current_state_timestamp == START_MS
    assert h.group().state is GroupState.STABLE


def test_a_member_the_leader_forgot_gets_an_empty_assignment() -> None:
    h = Harness()
    a, b = completing(h)
    h.sync(a, 1, assignments=[(a, b"1")])
    answer = h.sync(b, 1)
    assert (answer.error_code, answer.assignment) == (0, b"")


def test_a_member_of_a_stable_group_gets_its_assignment_again() -> None:
    h = Harness()
    a, b = h.stable(2)
    for member_id in (a, b, a):
        answer = h.sync(member_id, 1)
        assert answer.assignment == f"for {member_id}".encode()
        assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"group_instance_id": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"protocol_type": "connect"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_name": "sticky"}, ErrorCode.INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": None, "protocol_name": None}, ErrorCode.NONE),
    ],
)
def test_a_sync_is_checked_against_member_generation_and_protocol(
    fields: dict[str, object], code: ErrorCode
) -> None:
    h = Harness()
    (a,) = h.stable()
    answer = h.sync(**{"member_id": a, "generation_id": 1, **fields})  # type: ignore[arg-type]
    assert answer.error_code == code
    if code:
        assert (answer.protocol_type, answer.protocol_name, answer.assignment) == (None, None, b"")


def test_an_assignment_the_log_refuses_is_nobodys() -> None:
    h = Harness()
    a, b = completing(h)
    h.sync(b, 1)
    waiting = h.tickets
    h.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    answer = h.sync(a, 1, assignments=[(a, b"1"), (b, b"2")])
    assert answer.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.answers[waiting].error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert [m.assignment for m in h.group().members.values()] == [b"", b""]
    h.append_error = None
    h.join(member_id=a)
    h.join(member_id=b)
    assert h.group().generation_id == 2


def test_members_that_never_sync_are_dropped_when_the_rebalance_timeout_ends() -> None:
    h = Harness()
    a, b = completing(h)
    h.sync(a, 1, assignments=[])
    for _ in range(7):
        assert h.group().state is GroupState.STABLE
        h.advance(8_000)
        h.heartbeat(a, 1)
        h.heartbeat(b, 1)
    h.advance(4_000)
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert list(h.group().members) == [a]


def test_a_sync_of_everybody_stops_the_sync_timer() -> None:
    h = Harness()
    ids = h.stable(2)
    for _ in range(10):
        h.advance(9_000)
        for member_id in ids:
            assert h.heartbeat(member_id, 1) == ErrorCode.NONE
    assert h.group().state is GroupState.STABLE


def test_a_leader_that_dies_before_it_assigns_is_replaced() -> None:
    h = Harness()
    _, b = completing(h)
    h.sync(b, 1)
    waiting = h.tickets
    h.advance(10_000)
    assert h.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = h.join(member_id=b)
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (2, b)


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, ErrorCode.NONE),
        ({"group_id": "other"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"member_id": "ghost"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"instance": "i"}, ErrorCode.UNKNOWN_MEMBER_ID),
        ({"generation_id": 0}, ErrorCode.ILLEGAL_GENERATION),
        ({"generation_id": 2}, ErrorCode.ILLEGAL_GENERATION),
    ],
)
def test_a_heartbeat_is_checked_against_member_and_generation(
    fields: dict[str, object], code: ErrorCode
) -> None:
    h = Harness()
    (a,) = h.stable()
    assert h.heartbeat(**{"member_id": a, "generation_id": 1, **fields}) == code  # type: ignore[arg-type]


def test_heartbeats_count_while_the_generation_completes() -> None:
    h = Harness()
    a, b = completing(h)
    for _ in range(3):
        h.advance(9_000)
        assert h.heartbeat(a, 1) == h.heartbeat(b, 1) == ErrorCode.NONE
    assert h.group().state is GroupState.COMPLETING_REBALANCE


def test_a_member_without_heartbeats_is_dropped_after_its_session_timeout() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.advance(9_999)
    h.heartbeat(a, 1)
    assert h.group().state is GroupState.STABLE
    h.advance(1)
    assert list(h.group().members) == [a]
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.heartbeat(b, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_session_of_a_waiting_member_does_not_run_out() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=a)
    waiting = h.tickets
    for _ in range(4):
        h.advance(9_000)
        h.heartbeat(b, 1)
    assert a in h.group().members
    h.join(member_id=b)
    assert h.answers[waiting].generation_id == 2


def test_the_last_member_to_fail_leaves_an_empty_generation_in_the_log() -> None:
    h = Harness()
    h.stable()
    h.advance(10_000)
    group = h.group()
    assert (group.state, group.generation_id, group.leader_id) == (GroupState.EMPTY, 2, None)
    _, value = h.log[-1]
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == (
        "consumer",
        2,
        None,
        None,
    )
    assert (value.members, value.current_state_timestamp) == ((), START_MS + 10_000)


def test_an_empty_generation_the_log_refuses_is_written_later() -> None:
    h = Harness()
    h.stable()
    h.append_error = KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
    h.advance(10_000)
    assert h.group().state is GroupState.PREPARING_REBALANCE
    h.append_error = None
    h.advance(1_000)
    assert h.group().state is GroupState.EMPTY
    assert h.group().generation_id == 2


def test_sessions_begin_anew_when_a_shard_is_loaded() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.advance(9_000)
    h.reload()
    assert h.group().state is GroupState.STABLE
    h.advance(9_000)
    assert h.heartbeat(a, 1) == h.heartbeat(b, 1) == ErrorCode.NONE
    assert h.sync(b, 1).assignment == f"for {b}".encode()
    h.advance(10_000)
    assert h.group().state is GroupState.EMPTY
