"""JoinGroup: ids, protocols, sizes, and when a generation begins. Facts observed on Apache Kafka 4.3.1."""

import pytest

from odradek.coordinators.groups.classic.states import GroupState
from odradek.coordinators.groups.commands import MemberProtocol
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.harness import RANGE, Harness, subscription

SESSION_MS = 10_000
REBALANCE_MS = 60_000


def test_a_new_group_is_in_the_log_before_its_first_member_has_an_id() -> None:
    h = Harness()
    answer = h.join(known_member_required=True)
    assert answer is not None
    assert answer.error_code == ErrorCode.MEMBER_ID_REQUIRED
    assert answer.member_id == "member-1"
    ((key, value),) = h.log
    assert key.group == "g"
    assert (value.protocol_type, value.generation, value.protocol, value.leader) == ("", 0, None, None)
    assert h.group().state is GroupState.EMPTY


def test_a_member_with_the_id_it_was_given_joins() -> None:
    h = Harness()
    h.join(known_member_required=True)
    assert h.join(member_id="member-1", known_member_required=True) is None
    ticket = h.tickets
    h.advance(0)
    answer = h.answers[ticket]
    assert (answer.error_code, answer.generation_id, answer.leader) == (0, 1, "member-1")
    assert [m.member_id for m in answer.members] == ["member-1"]
    assert answer.members[0].metadata == subscription("t")
    assert h.group().state is GroupState.COMPLETING_REBALANCE


def test_a_given_id_is_forgotten_after_the_session_timeout() -> None:
    h = Harness()
    h.join(known_member_required=True)
    h.advance(SESSION_MS - 1)
    assert "member-1" in h.group().pending_join
    h.advance(1)
    assert "member-1" not in h.group().pending_join
    answer = h.join(member_id="member-1")
    assert answer is not None
    assert answer.error_code == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_static_member_may_not_use_an_id_given_to_a_dynamic_one() -> None:
    h = Harness()
    h.join(known_member_required=True)
    with pytest.raises(KafkaError) as e:
        h.join(member_id="member-1", group_instance_id="i")
    assert e.value.code == ErrorCode.UNKNOWN_SERVER_ERROR


def test_an_unknown_member_of_no_group_leaves_nothing_in_the_log() -> None:
    h = Harness()
    answer = h.join(member_id="ghost")
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "ghost")
    assert h.log == []
    assert h.shard.groups == {}


def test_an_unknown_member_of_a_group_is_told_so() -> None:
    h = Harness()
    h.stable()
    answer = h.join(member_id="ghost")
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "ghost")


@pytest.mark.parametrize("fields", [{"protocol_type": ""}, {"protocols": ()}])
def test_a_member_without_protocols_is_refused(fields: dict[str, object]) -> None:
    h = Harness()
    answer = h.join(**fields)
    assert answer is not None
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert h.group().state is GroupState.EMPTY


@pytest.mark.parametrize(
    "fields", [{"protocol_type": "connect"}, {"protocols": (MemberProtocol("roundrobin", b""),)}]
)
def test_a_member_that_shares_no_protocol_with_all_others_is_refused(fields: dict[str, object]) -> None:
    h = Harness()
    h.stable()
    answer = h.join(**fields)
    assert answer is not None
    assert answer.error_code == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert h.group().state is GroupState.STABLE


def test_the_protocol_most_members_put_first_is_chosen_among_those_all_support() -> None:
    h = Harness()
    range_, sticky, mine = (
        MemberProtocol("range", b"r"),
        MemberProtocol("sticky", b"s"),
        MemberProtocol("mine", b"m"),
    )
    h.join(protocols=(mine, range_, sticky))
    ticket = h.tickets
    h.join(protocols=(sticky, range_))
    h.join(protocols=(sticky, range_))
    h.advance(0)
    answer = h.answers[ticket]
    assert answer.protocol_name == "sticky"
    assert [m.metadata for m in answer.members] == [b"s", b"s", b"s"]


def test_only_the_leader_learns_of_the_members() -> None:
    h = Harness()
    h.join()
    leader = h.tickets
    h.join()
    follower = h.tickets
    h.advance(0)
    assert len(h.answers[leader].members) == 2
    assert h.answers[follower].members == []
    assert h.answers[follower].leader == h.answers[leader].member_id


def test_the_first_generation_waits_for_more_members_and_longer_while_they_come() -> None:
    h = Harness(initial_rebalance_delay_ms=3_000)
    h.join()
    first = h.tickets
    h.advance(2_000)
    h.join()
    h.advance(1_000)
    assert first not in h.answers
    h.advance(2_999)
    assert first not in h.answers
    h.advance(1)
    assert len(h.answers[first].members) == 2


def test_the_first_generation_waits_no_longer_than_a_rebalance_may_take() -> None:
    h = Harness(initial_rebalance_delay_ms=3_000)
    h.join(rebalance_timeout_ms=5_000)
    first = h.tickets
    for _ in range(4):
        h.advance(1_000)
        h.join(rebalance_timeout_ms=5_000)
    assert first not in h.answers
    h.advance(1_000)
    assert len(h.answers[first].members) == 5


def test_a_new_member_calls_the_others_back() -> None:
    h = Harness()
    (a,) = h.stable()
    assert h.join() is None
    newcomer = h.tickets
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.heartbeat(a, 1) == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.sync(a, 1).error_code == ErrorCode.REBALANCE_IN_PROGRESS
    answer = h.join(member_id=a)
    assert answer is not None
    assert (answer.generation_id, answer.leader) == (2, a)
    assert h.answers[newcomer].generation_id == 2


def test_dynamic_members_that_do_not_come_back_in_time_are_dropped() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join()
    newcomer = h.tickets
    for _ in range(7):
        h.advance(9_000)
        h.heartbeat(a, 1)
        h.heartbeat(b, 1)
    answer = h.answers[newcomer]
    assert answer.generation_id == 2
    assert answer.leader == answer.member_id
    assert h.heartbeat(a, 1) == ErrorCode.UNKNOWN_MEMBER_ID


def test_a_rebalance_waits_as_long_as_its_slowest_member_allows() -> None:
    h = Harness()
    a, b = h.stable(2, session_timeout_ms=1_000_000, rebalance_timeout_ms=20_000)
    assert h.join(member_id=a, rebalance_timeout_ms=90_000) is None
    ticket = h.tickets
    h.advance(89_999)
    assert ticket not in h.answers
    assert b in h.group().members
    h.advance(1)
    assert [m.member_id for m in h.answers[ticket].members] == [a]


def test_a_new_member_that_nobody_hears_of_again_is_dropped_after_five_minutes() -> None:
    h = Harness()
    (a,) = h.stable(rebalance_timeout_ms=1_000_000, session_timeout_ms=1_000_000)
    h.join(rebalance_timeout_ms=1_000_000)
    newcomer = h.tickets
    h.advance(5 * 60_000 - 1)
    assert newcomer not in h.answers
    h.advance(1)
    answer = h.answers[newcomer]
    assert (answer.error_code, answer.member_id) == (ErrorCode.UNKNOWN_MEMBER_ID, "")
    assert list(h.group().members) == [a]


def test_a_follower_that_asks_again_gets_the_generation_again() -> None:
    h = Harness()
    _, b = h.stable(2)
    answer = h.join(member_id=b)
    assert answer is not None
    assert (answer.generation_id, list(answer.members), answer.skip_assignment) == (1, [], False)
    assert h.group().state is GroupState.STABLE


def test_a_leader_that_asks_again_wants_a_rebalance() -> None:
    h = Harness()
    a, _ = h.stable(2)
    assert h.join(member_id=a) is None
    assert h.group().state is GroupState.PREPARING_REBALANCE


def test_a_follower_with_a_new_subscription_begins_a_rebalance() -> None:
    h = Harness()
    _, b = h.stable(2)
    assert h.join(member_id=b, protocols=(MemberProtocol("range", subscription("u")),)) is None
    assert h.group().state is GroupState.PREPARING_REBALANCE


def test_a_member_that_missed_the_answer_gets_it_again_while_the_generation_completes() -> None:
    h = Harness()
    h.join()
    h.advance(0)
    answer = h.join(member_id="member-1")
    assert answer is not None
    assert answer.generation_id == 1
    assert len(answer.members) == 1


def test_a_changed_subscription_while_the_generation_completes_begins_another() -> None:
    h = Harness()
    h.join()
    h.join()
    h.advance(0)
    assert h.sync("member-2", 1) is None
    waiting = h.tickets
    assert h.join(member_id="member-1", protocols=(MemberProtocol("range", b"\0\0\0\0\0\0"),)) is None
    assert h.answers[waiting].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.group().state is GroupState.PREPARING_REBALANCE


def test_a_second_join_of_a_waiting_member_overtakes_the_first() -> None:
    h = Harness()
    (a,) = h.stable()
    h.join()
    newcomer = h.tickets
    first_id = next(m for m in h.group().members if m != a)
    assert h.join(member_id=first_id) is None
    again = h.tickets
    assert h.answers[newcomer].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    h.join(member_id=a)
    assert h.answers[again].generation_id == 2


def test_a_group_takes_no_more_members_than_its_size() -> None:
    h = Harness(max_size=2)
    a, b = h.stable(2)
    answer = h.join()
    assert answer is not None
    assert (answer.error_code, answer.member_id) == (ErrorCode.GROUP_MAX_SIZE_REACHED, "")
    assert h.group().state is GroupState.STABLE
    assert list(h.group().members) == [a, b]


def test_the_last_to_come_back_to_a_group_over_its_size_has_to_go() -> None:
    h = Harness()
    ids = h.stable(3)
    h.config = h.shard.config = type(h.config)(max_size=2, initial_rebalance_delay_ms=0)
    h.reload()
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.join(member_id=ids[0]) is None
    assert h.join(member_id=ids[1]) is None
    tickets = [h.tickets - 1, h.tickets]
    answer = h.join(member_id=ids[2])
    assert answer is not None
    assert answer.error_code == ErrorCode.GROUP_MAX_SIZE_REACHED
    assert [h.answers[t].generation_id for t in tickets] == [2, 2]


def test_a_failed_append_leaves_no_group_behind() -> None:
    h = Harness()
    h.append_error = KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS)
    with pytest.raises(KafkaError) as e:
        h.join()
    assert e.value.code == ErrorCode.NOT_ENOUGH_REPLICAS
    assert h.shard.groups == {}
    assert len(h.shard.timers) == 0


def test_the_same_protocols_are_the_same_bytes_in_the_same_order() -> None:
    h = Harness()
    _, b = h.stable(2, protocols=(*RANGE, MemberProtocol("sticky", b"s")))
    assert h.join(member_id=b, protocols=(MemberProtocol("sticky", b"s"), *RANGE)) is None
