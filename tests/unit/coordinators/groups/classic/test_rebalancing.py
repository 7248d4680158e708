"""What a rebalance leaves behind: timers that were stopped, sessions that began, members that are known."""

from odradek.coordinators.groups import commands as c
from odradek.coordinators.groups.classic.states import GroupState
from odradek.core.errors import ErrorCode, KafkaError
from tests.unit.coordinators.groups.harness import RANGE, Harness, subscription

STICKY = c.MemberProtocol("sticky", subscription("t"))


def static_pair(h: Harness) -> tuple[str, str]:
    for instance in ("A", "B"):
        h.join(group_instance_id=instance)
    h.advance(0)
    a, b = (h.group().static_members[instance] for instance in ("A", "B"))
    assert h.sync(b, 1, group_instance_id="B") is None
    h.sync(a, 1, group_instance_id="A", assignments=[(a, b"1"), (b, b"2")])
    return a, b


def stay(h: Harness, seconds: int, *members: str) -> None:
    for _ in range(seconds):
        h.advance(1_000)
        for member_id in members:
            assert h.heartbeat(member_id, h.group().generation_id) == ErrorCode.NONE


def test_a_rebalance_that_is_over_is_not_ended_again() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=a)
    h.join(member_id=b)
    generation = h.group().generation_id
    assert h.group().state is GroupState.COMPLETING_REBALANCE
    assert h.sync(b, generation) is None
    h.sync(a, generation, assignments=[(a, b"1"), (b, b"2")])
    stay(h, 61, a, b)
    assert (h.group().state, h.group().generation_id) == (GroupState.STABLE, generation)


def test_a_first_generation_that_nobody_else_joins_waits_only_once() -> None:
    h = Harness(initial_rebalance_delay_ms=3_000)
    h.join()
    h.advance(2_999)
    assert h.group().state is GroupState.PREPARING_REBALANCE
    h.advance(1)
    assert h.group().state is GroupState.COMPLETING_REBALANCE


def test_a_second_sync_of_a_waiting_member_overtakes_the_first() -> None:
    h = Harness()
    tickets = []
    for _ in range(2):
        h.join()
        tickets.append(h.tickets)
    h.advance(0)
    a, b = (h.answers[ticket].member_id for ticket in tickets)
    assert h.sync(b, 1) is None
    first = h.tickets
    assert h.sync(b, 1) is None
    assert h.answers[first].error_code == ErrorCode.REBALANCE_IN_PROGRESS
    second = h.tickets
    h.sync(a, 1, assignments=[(a, b"1"), (b, b"2")])
    assert h.answers[second].assignment == b"2"


def test_a_session_begins_when_the_assignment_is_given() -> None:
    h = Harness()
    tickets = []
    for _ in range(2):
        h.join()
        tickets.append(h.tickets)
    h.advance(0)
    a, b = (h.answers[ticket].member_id for ticket in tickets)
    assert h.sync(b, 1) is None
    for _ in range(12):
        h.advance(1_000)
        h.heartbeat(a, 1)
    h.sync(a, 1, assignments=[(a, b"1"), (b, b"2")])
    stay(h, 9, a)
    assert b in h.group().members
    h.advance(1_000)
    assert b not in h.group().members


def test_a_member_brings_its_timeouts_and_protocols_with_every_join() -> None:
    h = Harness()
    (a,) = h.stable()
    for protocols in ((*RANGE, STICKY), (STICKY,)):
        answer = h.join(member_id=a, session_timeout_ms=30_000, protocols=protocols)
        assert answer is not None
        assert answer.error_code == ErrorCode.NONE
    h.sync(a, 3, protocol_name="sticky", assignments=[(a, b"1")])
    h.advance(29_999)
    assert a in h.group().members
    assert h.code(h.join_command(protocols=RANGE)) == ErrorCode.INCONSISTENT_GROUP_PROTOCOL
    assert h.join(protocols=(*RANGE, STICKY)) is None


def test_the_leader_sees_what_members_joined_with_last() -> None:
    h = Harness()
    a, b = h.stable(2)
    h.join(member_id=b, protocols=(c.MemberProtocol("range", subscription("u")),))
    answer = h.join(member_id=a)
    assert answer is not None
    assert {m.member_id: m.metadata for m in answer.members}[b] == subscription("u")


def test_a_protocol_that_one_member_lacks_is_not_chosen() -> None:
    h = Harness()
    h.join(protocols=(STICKY, *RANGE))
    first = h.tickets
    h.join(protocols=RANGE)
    h.advance(0)
    assert h.answers[first].protocol_name == "range"


def test_topics_count_as_soon_as_everybody_has_joined() -> None:
    h = Harness()
    h.commit(5, topic="t")
    h.commit(5, topic="u")
    h.join()
    h.advance(0)
    assert h.group().state is GroupState.COMPLETING_REBALANCE
    assert h.handle(c.DeleteOffsets("g", [("t", [0]), ("u", [0])])) == [
        [ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC],
        [ErrorCode.NONE],
    ]


def test_a_consumer_whose_topics_cannot_be_read_reads_them_all() -> None:
    h = Harness()
    h.commit(5, topic="u")
    h.stable(protocols=(c.MemberProtocol("range", b"what?"),))
    assert h.handle(c.DeleteOffsets("g", [("u", [0])])) == [[ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC]]


# --- static members -------------------------------------------------------------------------------------


def test_an_instance_that_was_sent_away_may_come_back_as_a_new_member() -> None:
    h = Harness()
    a, b = static_pair(h)
    assert h.leave(c.LeavingMember("", "A")) == [ErrorCode.NONE]
    assert h.join(group_instance_id="A") is None
    assert h.heartbeat(a, 1, instance="A") == ErrorCode.FENCED_INSTANCE_ID
    answer = h.join(member_id=b, group_instance_id="B")
    assert answer is not None
    assert len(h.group().members) == 2


def test_a_successor_in_a_rebalance_fences_at_once() -> None:
    h = Harness()
    a, b = static_pair(h)
    assert h.join(member_id=b, group_instance_id="B", protocols=(STICKY, *RANGE)) is None
    assert h.group().state is GroupState.PREPARING_REBALANCE
    assert h.heartbeat(a, 1, instance="A") == ErrorCode.REBALANCE_IN_PROGRESS
    h.join(group_instance_id="A")
    assert h.heartbeat(a, h.group().generation_id, instance="A") == ErrorCode.FENCED_INSTANCE_ID
    assert h.group().static_members["A"] != a


def test_a_successor_has_a_session_of_its_own() -> None:
    h = Harness()
    _, b = static_pair(h)
    h.advance(9_000)
    assert h.heartbeat(b, 1, instance="B") == ErrorCode.NONE
    answer = h.join(group_instance_id="A")
    assert answer is not None
    for _ in range(9):
        h.advance(1_000)
        assert h.heartbeat(b, 1, instance="B") == ErrorCode.NONE
    assert answer.member_id in h.group().members
    h.advance(1_000)
    assert answer.member_id not in h.group().members


def test_a_successor_leads_where_its_predecessor_led_after_a_load_too() -> None:
    h = Harness()
    static_pair(h)
    answer = h.join(group_instance_id="A")
    assert answer is not None
    assert h.group().leader_id == answer.member_id
    h.reload()
    assert h.group().leader_id == answer.member_id


def test_a_takeover_the_log_refused_is_not_in_the_next_generation() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.append_error = KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    assert h.code(h.join_command(group_instance_id="A")) != ErrorCode.NONE
    h.append_error = None
    h.join(member_id=b, group_instance_id="B", protocols=(STICKY, *RANGE))
    h.join(member_id=a, group_instance_id="A")
    assert h.group().generation_id == 2
    h.sync(b, 2, group_instance_id="B")
    h.sync(a, 2, group_instance_id="A", assignments=[(a, b"1"), (b, b"2")])
    assert (h.group().state, sorted(h.group().members)) == (GroupState.STABLE, sorted([a, b]))


def test_a_rebalance_without_its_leader_is_completed_when_time_is_up_again() -> None:
    h = Harness()
    a, b = static_pair(h)
    h.join(member_id=a, group_instance_id="A")
    h.leave(a)
    for _ in range(7):
        h.advance(9_000)
        assert h.heartbeat(b, 1, instance="B") == ErrorCode.REBALANCE_IN_PROGRESS
    assert h.group().state is GroupState.PREPARING_REBALANCE
    h.join(group_instance_id="C")
    for _ in range(7):
        h.advance(9_000)
        h.heartbeat(b, h.group().generation_id, instance="B")
    assert h.group().state is not GroupState.PREPARING_REBALANCE


# --- after a load ---------------------------------------------------------------------------------------


def test_a_member_that_is_silent_after_a_load_is_dropped() -> None:
    h = Harness()
    h.stable(2)
    h.reload()
    h.advance(9_999)
    assert len(h.group().members) == 2
    h.advance(1)
    assert h.group().state is GroupState.EMPTY


def test_a_group_as_large_as_it_may_be_is_loaded_as_it_is() -> None:
    h = Harness(max_size=2)
    h.stable(2)
    h.reload()
    assert h.group().state is GroupState.STABLE


def test_a_group_without_members_knows_after_a_load_since_when() -> None:
    h = Harness(offsets_retention_ms=100_000)
    (a,) = h.stable()
    h.commit(5, a, 1)
    h.advance(5_000)
    h.leave(a)
    h.advance(99_000)
    h.reload()
    assert h.handle(c.ExpireOffsets()) == 0
    h.advance(1_000)
    assert h.handle(c.ExpireOffsets()) > 0
