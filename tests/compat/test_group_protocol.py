"""The classic group protocol request by request: ids, generations, timeouts, fences, commits."""

import time

import pytest

from tests.support.group import MEMBER_ID_REQUIRED, SUBSCRIPTION, Member

UNKNOWN_MEMBER_ID, ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS = 25, 22, 27
INCONSISTENT_GROUP_PROTOCOL, INVALID_SESSION_TIMEOUT, INVALID_GROUP_ID = 23, 26, 24
FENCED_INSTANCE_ID, OFFSET_METADATA_TOO_LARGE, UNKNOWN_TOPIC_OR_PARTITION = 82, 12, 3


@pytest.fixture
def group(unique):
    return unique("group")


@pytest.fixture
def member(bootstrap, group):
    with Member(bootstrap, group) as m:
        yield m


@pytest.fixture
def other(bootstrap, group):
    with Member(bootstrap, group) as m:
        yield m


def rebalance(old: Member, new: Member) -> None:
    """`new` joins the group of `old`; both end up in the next generation, not yet synced."""
    new.send_join()
    assert int(new.receive_join().error_code) == MEMBER_ID_REQUIRED
    new.send_join()
    wait_for_heartbeat(old, REBALANCE_IN_PROGRESS)
    assert old.join().error_code == 0
    assert new.receive_join().error_code == 0


def wait_for_heartbeat(member: Member, code: int, timeout_s: float = 15) -> None:
    deadline = time.monotonic() + timeout_s
    while (got := member.heartbeat()) != code:
        assert time.monotonic() < deadline, f"heartbeat says {got}, not {code}"
        time.sleep(0.02)


def test_a_new_member_is_given_an_id_before_it_may_join(member):
    member.send_join()
    answer = member.receive_join()
    assert int(answer.error_code) == MEMBER_ID_REQUIRED
    assert answer.member_id.startswith("raw-"), "the id begins with the client id"
    member.send_join()
    answer = member.receive_join()
    assert (int(answer.error_code), answer.generation_id, answer.leader) == (0, 1, answer.member_id)
    assert (answer.protocol_type, answer.protocol_name) == ("consumer", "range")
    assert [(m.member_id, m.metadata) for m in answer.members] == [(answer.member_id, SUBSCRIPTION)]


def test_a_client_before_v4_joins_at_once(member):
    member.send_join(3)
    answer = member.receive_join(3)
    assert (int(answer.error_code), answer.generation_id) == (0, 1)


def test_the_leaders_assignment_reaches_every_member(member, other):
    member.stabilise()
    rebalance(member, other)
    assert member.generation == other.generation == 2
    assert sorted(m.member_id for m in member.members) == sorted([member.member_id, other.member_id])
    assert other.members == [], "only the leader learns the members"
    assert member.sync({member.member_id: b"mine", other.member_id: b"theirs"}).assignment == b"mine"
    answer = other.sync()
    assert (int(answer.error_code), answer.assignment) == (0, b"theirs")
    assert member.heartbeat() == other.heartbeat() == 0


def test_a_leaving_member_triggers_a_rebalance_at_once(member, other):
    member.stabilise()
    rebalance(member, other)
    member.sync({member.member_id: b"", other.member_id: b""})
    other.sync()
    assert other.leave().members[0].error_code == 0
    wait_for_heartbeat(member, REBALANCE_IN_PROGRESS, timeout_s=5)
    assert member.join().generation_id == 3
    assert [m.member_id for m in member.members] == [member.member_id]


def test_a_silent_member_is_expelled_after_its_session_timeout(member, other):
    member.stabilise()
    other.send_join(session_timeout=6000)
    assert int(other.receive_join().error_code) == MEMBER_ID_REQUIRED
    other.send_join(session_timeout=6000)
    wait_for_heartbeat(member, REBALANCE_IN_PROGRESS)
    member.join()
    other.receive_join()
    member.sync({member.member_id: b"", other.member_id: b""})
    other.sync()
    began = time.monotonic()
    wait_for_heartbeat(member, REBALANCE_IN_PROGRESS, timeout_s=20)
    assert 5 < time.monotonic() - began < 9
    assert other.heartbeat() == UNKNOWN_MEMBER_ID


def test_strangers_and_old_generations_are_refused(member):
    member.stabilise()
    assert member.heartbeat(member_id="nobody") == UNKNOWN_MEMBER_ID
    assert member.heartbeat(generation_id=member.generation + 1) == ILLEGAL_GENERATION
    assert int(member.sync(generation_id=0).error_code) == ILLEGAL_GENERATION
    assert int(member.sync(member_id="nobody").error_code) == UNKNOWN_MEMBER_ID
    assert member.heartbeat() == 0


def test_a_heartbeat_to_an_unknown_group_knows_no_member(member):
    assert member.heartbeat(member_id="x", generation_id=1) == UNKNOWN_MEMBER_ID


@pytest.mark.parametrize(
    ("over", "code"),
    [
        ({"session_timeout": 5999}, INVALID_SESSION_TIMEOUT),
        ({"session_timeout": 1_800_001}, INVALID_SESSION_TIMEOUT),
        ({"group_id": ""}, INVALID_GROUP_ID),
        ({"protocols": []}, INCONSISTENT_GROUP_PROTOCOL),
        ({"protocol_type": ""}, INCONSISTENT_GROUP_PROTOCOL),
        ({"member_id": "nobody"}, UNKNOWN_MEMBER_ID),
    ],
)
def test_a_join_that_cannot_be_is_refused(member, over, code):
    assert int(member.join(**over).error_code) == code


def test_protocols_without_a_common_one_are_refused(member, other):
    member.stabilise()
    answer = other.join(protocols=[{"name": "sticky", "metadata": b""}])
    assert int(answer.error_code) == INCONSISTENT_GROUP_PROTOCOL
    answer = other.join(protocol_type="connect")
    assert int(answer.error_code) == INCONSISTENT_GROUP_PROTOCOL


def test_the_protocol_that_all_members_prefer_wins(member, other):
    both = [{"name": "a", "metadata": b"a"}, {"name": "b", "metadata": b"b"}]
    member.join(protocols=both)
    member.sync({member.member_id: b""}, protocol_name="a")
    other.send_join(protocols=both[::-1][:1])
    assert int(other.receive_join().error_code) == MEMBER_ID_REQUIRED
    other.send_join(protocols=both[::-1][:1])
    wait_for_heartbeat(member, REBALANCE_IN_PROGRESS)
    assert member.join(protocols=both).protocol_name == "b"
    assert other.receive_join().protocol_name == "b"


def test_a_static_member_comes_back_without_a_rebalance(bootstrap, group):
    with Member(bootstrap, group, instance_id="one") as first:
        answer = first.join()
        assert (int(answer.error_code), answer.generation_id) == (0, 1), (
            "a static member needs no second join"
        )
        first.sync({first.member_id: b"kept"})
        with Member(bootstrap, group, instance_id="one") as again:
            answer = again.join()
            assert (int(answer.error_code), answer.generation_id) == (0, 1)
            assert again.member_id != first.member_id
            assert again.sync().assignment == b"kept"
            assert first.heartbeat() == FENCED_INSTANCE_ID
            assert again.heartbeat() == 0


def test_a_fenced_instance_can_neither_commit_nor_sync(bootstrap, group, topic):
    with (
        Member(bootstrap, group, instance_id="one") as old,
        Member(bootstrap, group, instance_id="one") as new,
    ):
        old.stabilise()
        new.join()
        assert old.commit(topic, 5) == FENCED_INSTANCE_ID
        assert int(old.sync().error_code) == FENCED_INSTANCE_ID
        assert new.commit(topic, 5) == 0


def test_a_static_member_is_removed_by_instance_id(bootstrap, group, raw):
    with Member(bootstrap, group, instance_id="one") as static:
        static.stabilise()
        answer = raw.call(
            13, 5, {"group_id": group, "members": [{"member_id": "", "group_instance_id": "one"}]}
        )
        assert int(answer.members[0].error_code) == 0
        assert static.heartbeat() in (UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID)
        answer = raw.call(
            13, 5, {"group_id": group, "members": [{"member_id": "", "group_instance_id": "one"}]}
        )
        assert int(answer.members[0].error_code) == UNKNOWN_MEMBER_ID


def test_commits_are_kept_with_their_metadata(member, topic):
    member.stabilise()
    assert member.commit(topic, 17, metadata="note") == 0
    assert member.committed(topic) == (17, "note", 0)
    assert member.commit(topic, 3, metadata="") == 0
    assert member.committed(topic) == (3, "", 0)


def test_an_unknown_group_has_no_offsets_and_no_error(member, topic):
    assert member.committed(topic) == (-1, "", 0)
    assert member.committed("no-such-topic") == (-1, "", 0)


def test_commits_of_strangers_and_old_generations_are_refused(member, topic):
    member.stabilise()
    assert member.commit(topic, 1, member_id="nobody") == UNKNOWN_MEMBER_ID
    assert member.commit(topic, 1, generation_id_or_member_epoch=9) == ILLEGAL_GENERATION
    assert member.commit(topic, 1, generation_id_or_member_epoch=-1, member_id="") == UNKNOWN_MEMBER_ID
    assert member.committed(topic) == (-1, "", 0)


def test_a_commit_without_a_group_needs_no_membership(member, topic):
    assert member.commit(topic, 4, generation_id_or_member_epoch=-1, member_id="") == 0
    assert member.committed(topic) == (4, "", 0)


def test_a_commit_during_a_rebalance_is_taken_until_all_have_joined(member, other, topic):
    member.stabilise()
    other.send_join()
    other.receive_join()
    other.send_join()
    wait_for_heartbeat(member, REBALANCE_IN_PROGRESS)
    assert member.commit(topic, 5) == 0
    member.join()
    assert member.commit(topic, 6) == REBALANCE_IN_PROGRESS
    assert other.receive_join().error_code == 0
    assert member.committed(topic)[0] == 5


def test_commit_metadata_has_a_limit(member, topic):
    member.stabilise()
    assert member.commit(topic, 1, metadata="x" * 4096) == 0
    assert member.commit(topic, 2, metadata="x" * 4097) == OFFSET_METADATA_TOO_LARGE
    assert member.committed(topic)[0] == 1


def test_a_commit_for_an_unknown_topic_is_refused(member, unique):
    member.stabilise()
    assert member.commit(unique("none"), 1) == UNKNOWN_TOPIC_OR_PARTITION
