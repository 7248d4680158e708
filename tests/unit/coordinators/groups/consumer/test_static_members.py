"""Static members (KIP-345): they return with a new member id, fence the old one, without a rebalance."""

import pytest

from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import MemberProtocol
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.harness import Harness, subscription


def static_pair(h: Harness) -> tuple[str, str]:
    """Static members A (the leader) and B in a stable generation."""
    assert h.join(group_instance_id="A") is None
    a = h.tickets
    assert h.join(group_instance_id="B") is None
    b = h.tickets
    h.advance(0)
    a_id, b_id = h.answers[a].member_id, h.answers[b].member_id
    h.sync(b_id, 1, group_instance_id="B")
    h.sync(a_id, 1, group_instance_id="A", assignments=[(a_id, b"aa"), (b_id, b"bb")])
    assert h.group().state is GroupState.STABLE
    return a_id, b_id


def test_a_static_member_needs_no_id_first() -> None:
    h = Harness()
    assert h.join(group_instance_id="A", known_member_required=True) is None
    h.advance(0)
    assert h.group().static_members == {"A": "member-1"}


def test_a_leader_that_comes_back_is_told_to_skip_the_assignment() -> None:
    h = Harness()
    a, b = static_pair(h)
    before = len(h.log)
    answer = h.join(group_instance_id="A")
    assert answer is not None
    assert (answer.generation_id, answer.skip_assignment, answer.leader) == (1, True, answer.member_id)
    assert [m.member_id for m in answer.members] == [b, answer.member_id]
    ((_, value),) = h.log[before:]
    assert [(m.member_id, m.group_instance_id, m.assignment) for m in value.members] == [
        (b, "B", b"bb"),
        (answer.member_id, "A", b"aa"),
    ]
    assert value.leader == answer.member_id != a
    assert h.group().state is GroupState.STABLE
    assert h.sync(answer.member_id, 1, group_instance_id="A").assignment == b"aa"


def test_an_older_client_is_told_that_its_former_self_leads() -> None:
    h = Harness()
    a, _ = static_pair(h)
    answer = h.join(group_instance_id="A", can_skip_assignment=False)
    assert answer is not None
    assert (answer.leader, list(answer.members), answer.skip_assignment) == (a, [], False)
    assert h.group().leader_id == answer.member_id


@pytest.mark.parametrize("can_skip_assignment", [True, False])
def test_a_follower_that_comes_back_gets_its_place(can_skip_assignment: bool) -> None:
    h = Harness()
    a, _ = static_pair(h)
    answer = h.join(group_instance_id="B", can_skip_assignment=can_skip_assignment)
    assert answer is not None
    assert (answer.generation_id, answer.leader, list(answer.members)) == (1, a, [])
    assert answer.skip_assignment is False
    assert h.sync(answer.member_id, 1, group_instance_id="B").assignment == b"bb"


def test_the_old_id_is_fenced_everywhere() -> None:
    h = Harness()
    a, _ = static_pair(h)
    h.join(group_instance_id="A")
    fenced = ErrorCode.FENCED_INSTANCE_ID
    assert h.heartbeat(a, 1, instance="A") == fenced
    assert h.sync(a, 1, group_instance_id="A").error_code == fenced
    assert h.commit(7, a, 1, instance="A") == fenced
    answer = h.join(member_id=a, group_instance_id="A")
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (fenced, a)
    assert h.heartbeat(a, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_the_old_id_has_no_session_left_to_run_out() -> None:
    h = Harness()
    a, b = static_pair(h)
    answer = h.join(group_instance_id="A")
    assert answer is not None
    for _ in range(3):
        h.advance(9_000)
        assert h.heartbeat(b, 1, instance="B") == h.heartbeat(answer.member_id, 1, instance="A") == 0
    assert a not in h.group().members


def test_a_new_subscription_under_the_same_protocol_rebalances_nobody() -> None:
    h = Harness()
    static_pair(h)
    answer = h.join(group_instance_id="B", protocols=(MemberProtocol("range", subscription("u")),))
    assert answer is not None
    assert h.group().state is GroupState.STABLE
    assert h.group().topics == {"t", "u"}


def test_a_static_member_that_changes_the_chosen_protocol_begins_a_rebalance() -> None:
    h = Harness()
    both = (MemberProtocol("range", b"r"), MemberProtocol("sticky", b"s"))
    h.stable(1, group_instance_id="A", protocols=both)
    answer = h.join(group_instance_id="A", protocols=(both[1],))
    assert answer is not None, "it is alone: the generation begins at once"
    assert (answer.generation_id, answer.protocol_name, answer.skip_assignment) == (2, "sticky", False)


def test_a_successor_during_a_rebalance_answers_for_its_predecessor() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.join(member_id=b, group_instance_id="B", protocols=(MemberProtocol("range", b"x"),))
    old_join = h.tickets
    assert h.join(group_instance_id="B") is None
    successor = h.tickets
    assert (h.answers[old_join].error_code, h.answers[old_join].member_id) == (
        ErrorCode.FENCED_INSTANCE_ID,
        b,
    )
    h.join(member_id=a, group_instance_id="A")
    assert h.answers[successor].generation_id == 2


def test_a_successor_while_the_leader_assigns_begins_another_generation() -> None:
    h = Harness()
    h.join(group_instance_id="A")
    h.join(group_instance_id="B")
    b_join = h.tickets
    h.advance(0)
    b = h.answers[b_join].member_id
    h.sync(b, 1, group_instance_id="B")
    old_sync = h.tickets
    assert h.join(group_instance_id="B") is None
    assert h.answers[old_sync].error_code == ErrorCode.FENCED_INSTANCE_ID
    assert h.group().state is GroupState.PREPARING_REBALANCE


def test_static_members_may_be_late_for_a_generation() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.join(member_id=b, group_instance_id="B", protocols=(MemberProtocol("range", b"x"),))
    for _ in range(7):
        h.advance(9_000)
        h.heartbeat(a, 1, instance="A")
    assert h.group().generation_id == 2
    assert h.group().leader_id == b
    assert list(h.group().members) == [a, b]


def test_a_group_whose_members_are_all_late_waits_on() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.join(member_id=a, group_instance_id="A")
    h.leave(a)
    for _ in range(20):
        h.advance(9_000)
        assert h.heartbeat(b, 1, instance="B") == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.group().state is GroupState.PREPARING_REBALANCE
    h.advance(10_000)
    assert h.group().state is GroupState.EMPTY


def test_a_takeover_the_log_refuses_leaves_the_old_member_in_place() -> None:
    h = Harness()
    a, _ = static_pair(h)
    h.append_error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    with pytest.raises(KafkaError) as e:
        h.join(group_instance_id="A")
    assert e.value.code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert h.heartbeat(a, 1, instance="A") == ErrorCode.NONE
    assert h.group().static_members["A"] == a


def test_static_members_are_known_after_a_load() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.reload()
    assert h.group().static_members == {"A": a, "B": b}
    answer = h.join(group_instance_id="A")
    assert answer is not None
    assert answer.skip_assignment
