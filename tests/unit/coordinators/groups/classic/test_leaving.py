"""LeaveGroup: by member id, by instance id, several at once; and what is left behind."""

from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import LeaveGroup, LeavingMember
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.harness import Harness


def test_the_last_member_to_leave_empties_the_group() -> None:
    h = Harness()
    (a,) = h.stable()
    assert h.leave(a) == [0]
    assert h.group().state is GroupState.EMPTY
    assert h.group().generation_id == 2
    assert len(h.shard.timers) == 0
    assert h.heartbeat(a, 1) == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.sync(a, 1).error_code == ErrorCode.UNKNOWN_MEMBER_ID
    assert h.leave(a) == [ErrorCode.UNKNOWN_MEMBER_ID]


def test_the_others_rebalance_when_a_member_leaves() -> None:
    h = Harness()
    a, b = h.stable(2)
    assert h.leave(a) == [0]
    assert h.heartbeat(b, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    answer = h.join(member_id=b)
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (2, b)


def test_a_leaver_during_a_rebalance_is_not_waited_for() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=a)
    waiting = h.tickets
    assert h.leave(b) == [0]
    assert [m.member_id for m in h.answers[waiting].members] == [a]


def test_requests_that_wait_under_a_leavers_name_are_answered() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=b, protocols=(h.group().members[b].protocols[0]._replace(metadata=b"x"),))
    joining = h.tickets
    assert h.leave(b) == [0]
    assert h.answers[joining].error_code == ErrorCode.UNKNOWN_MEMBER_ID
    h.join(member_id=a)
    h.join()
    newcomer = h.tickets
    h.join(member_id=a)
    assert h.sync(h.answers[newcomer].member_id, h.group().generation_id) is None
    syncing = h.tickets
    assert h.leave(h.answers[newcomer].member_id) == [0]
    assert h.answers[syncing].error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_each_leaver_is_answered_on_its_own() -> None:
    h = Harness()
    a, b, c = h.stable(3)
    codes = h.leave("ghost", a, LeavingMember(b, "instance"), LeavingMember("", None), c)
    assert codes == [
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
        ErrorCode.UNKNOWN_MEMBER_ID,
        ErrorCode.UNKNOWN_MEMBER_ID,
        0,
    ]
    assert list(h.group().members) == [b]


def test_an_administrator_sends_a_static_member_away_by_its_instance_id() -> None:
    h = Harness()
    h.stable(1, group_instance_id="i")
    assert h.leave(LeavingMember("", "i"), LeavingMember("", "nobody")) == [0, ErrorCode.UNKNOWN_MEMBER_ID]
    assert h.group().state is GroupState.EMPTY


def test_a_fenced_static_member_cannot_leave_for_its_successor() -> None:
    h = Harness()
    (old,) = h.stable(1, group_instance_id="i")
    answer = h.join(group_instance_id="i")
    assert answer is not None
    assert h.leave(LeavingMember(old, "i")) == [ErrorCode.FENCED_INSTANCE_ID]
    assert h.leave(LeavingMember(answer.member_id, "i")) == [0]


def test_a_member_that_only_has_an_id_can_give_it_back() -> None:
    h = Harness()
    h.join(known_member_required=True)
    assert h.leave("member-1") == [0]
    assert h.group().pending_join == {}
    assert len(h.shard.timers) == 0


def test_leaving_an_unknown_group_is_leaving_as_an_unknown_member() -> None:
    h = Harness()
    assert h.code(LeaveGroup("other", [LeavingMember("a", None)])) == ErrorCode.UNKNOWN_MEMBER_ID


def test_leaving_with_nobody_changes_nothing() -> None:
    h = Harness()
    h.stable()
    assert h.leave() == []
    assert h.group().state is GroupState.STABLE


def test_a_leave_the_log_refuses_is_answered_with_its_error_and_finished_later() -> None:
    h = Harness()
    (a,) = h.stable()
    h.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    assert h.code(LeaveGroup("g", [LeavingMember(a, None)])) == ErrorCode.NOT_ENOUGH_REPLICAS
    h.append_error = None
    h.advance(1_000)
    assert h.group().state is GroupState.EMPTY
