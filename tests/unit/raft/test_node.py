"""The machine from outside: a voter alone leads at once, commits by its rules, and ends in order."""

from uuid import UUID

import pytest

from odradek.raft import events as e
from odradek.raft.control import QuorumFacts
from odradek.raft.log_state import LogView
from odradek.raft.messages import FetchRequest
from odradek.raft.node import RaftNode
from odradek.raft.quorum_records import KRaftVersion, LeaderChange, Voters
from odradek.raft.quorum_state import QuorumState
from odradek.raft.ready import NOTHING, Append, Ready
from odradek.raft.roles import TRANSITIONS, Follower, Leader, Observer, Resigned, Role, Unattached
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import ReplicaKey, Voter, VoterSet

DIR = UUID(int=700)
NEW = QuorumState()


def node(*voters: int, state: QuorumState = NEW, log_end_offset: int = 0, directory: UUID = DIR) -> RaftNode:
    voter_set = VoterSet(Voter(n, DIR if n == 1 else UUID(int=n + 1000), ()) for n in voters)
    epochs = ((1, 0),) if log_end_offset else ()
    return RaftNode(
        1,
        directory,
        state=state,
        log=LogView(0, log_end_offset, log_end_offset, epochs),
        history=VoterHistory(voter_set),
        times=RaftTimes(),
        draw=lambda n: 0,
    )


def test_the_only_voter_leads_the_next_epoch_at_once() -> None:
    n = node(1, state=QuorumState(leader_epoch=4))
    ready = n.step(e.Start(), 0)
    assert ready.persist == QuorumState(leader_id=1, leader_epoch=5, voted_id=1, voted_directory_id=DIR)
    assert ready.appends == (Append(0, 5, 1, control=(LeaderChange(1, (1,), (1,)),)),)
    assert isinstance(ready.role, Leader)
    assert (n.is_leader, n.epoch, n.leader_id) == (True, 5, 1)
    assert n.next_deadline_ms is None


def test_a_new_log_begins_with_the_version_and_the_voters_that_only_a_snapshot_has() -> None:
    voters = VoterSet([Voter(1, DIR, ())])
    history = VoterHistory()
    history.reset(0, QuorumFacts(1, voters))
    n = RaftNode(
        1, DIR, state=QuorumState(), log=LogView(), history=history, times=RaftTimes(), draw=lambda n: 0
    )
    control = (LeaderChange(1, (1,), (1,)), KRaftVersion(1), Voters(voters))
    assert n.step(e.Start(), 0).appends == (Append(0, 1, 3, control=control),)


@pytest.mark.parametrize("voters", [(1, 2), (1, 2, 3)])
def test_without_a_majority_of_its_own_a_replica_stays_unattached(voters: tuple[int, ...]) -> None:
    n = node(*voters, state=QuorumState(leader_epoch=4))
    n.step(e.Start(), 0)
    assert n.role == Unattached(4)
    assert n.leader_id == -1


def test_a_voters_node_with_another_directory_observes() -> None:
    n = node(1, 2, 3, directory=UUID(int=701))
    n.step(e.Start(), 0)
    assert isinstance(n.role, Observer)


def test_nothing_is_committed_before_the_state_and_a_record_of_the_own_epoch_are_durable() -> None:
    n = node(1, log_end_offset=10)
    n.step(e.Start(), 0)
    assert n.step(e.Appended(11), 0) == NOTHING
    assert n.step(e.Flushed(10), 0) == NOTHING
    assert n.step(e.Flushed(11), 0) == NOTHING
    assert n.high_watermark is None
    assert n.step(e.Persisted(), 0) == Ready(high_watermark=11)
    assert n.step(e.Flushed(11), 0) == NOTHING
    assert n.step(e.Propose(4, "p"), 0) == Ready(appends=(Append(11, 2, 4, "p"),))
    assert n.step(e.Flushed(15), 0) == Ready(high_watermark=15)


def test_a_resigned_leader_commits_nothing_more() -> None:
    n = node(1)
    n.step(e.Start(), 0)
    n.step(e.Persisted(), 0)
    n.step(e.Flushed(1), 0)
    n.step(e.Propose(5), 0)
    n.step(e.Stop(), 0)
    assert isinstance(n.role, Resigned)
    assert n.step(e.Flushed(6), 0) == NOTHING
    assert (n.high_watermark, n.may_stop, n.leader_id) == (1, True, -1)


def test_a_leader_knows_its_observers_until_they_have_been_silent_for_five_minutes() -> None:
    n = node(1)
    n.step(e.Start(), 0)
    n.step(e.Persisted(), 0)
    for observer, now_ms in ((7, 0), (8, 200_000), (9, 300_000)):
        request = FetchRequest(ReplicaKey(observer), 1, 0, 0, 500)
        n.step(e.Received(observer, request), now_ms)
    voters, observers = n.replicas()
    assert [state.key.id for state in voters] == [1]
    assert [(state.key.id, state.last_fetch_ms) for state in observers] == [(8, 200_000), (9, 300_000)]


def test_only_a_leader_takes_proposals() -> None:
    n = node(1, 2, 3)
    n.step(e.Start(), 0)
    with pytest.raises(AssertionError):
        n.step(e.Propose(1), 0)


def test_an_append_that_was_not_written_is_forgotten() -> None:
    n = node(1)
    n.step(e.Start(), 0)
    n.step(e.Propose(5), 0)
    assert n.log_end_offset == 6
    n.step(e.AppendFailed(1), 0)
    assert (n.log_end_offset, n.is_leader) == (1, True)


def test_a_leader_without_its_first_record_resigns() -> None:
    n = node(1)
    n.step(e.Start(), 0)
    n.step(e.AppendFailed(0), 0)
    assert (n.log_end_offset, n.is_leader) == (0, False)


@pytest.mark.parametrize(
    ("state", "role"),
    [
        (QuorumState(), Unattached(0)),
        (QuorumState(leader_id=1, leader_epoch=7), Resigned(7, 1)),
        (QuorumState(leader_id=2, leader_epoch=7), Follower(7, 2)),
        (QuorumState(leader_id=9, leader_epoch=7), Unattached(7, 9)),
        (QuorumState(leader_epoch=7), Unattached(7)),
    ],
)
def test_a_replica_begins_as_it_wrote_down(state: QuorumState, role: Role) -> None:
    n = node(1, 2, 3, state=state)
    n.step(e.Start(), 0)
    assert n.role == role


def test_the_log_may_know_a_newer_epoch_than_the_quorum_state() -> None:
    n = node(1, 2, 3, state=QuorumState(leader_id=2, leader_epoch=0), log_end_offset=5)
    assert n.step(e.Start(), 0).persist == QuorumState(leader_epoch=1)
    assert n.role == Unattached(1)


def test_every_role_has_its_row_in_the_table_and_only_its_moves_are_made() -> None:
    assert {role.__name__ for role in TRANSITIONS} == {
        "Unattached", "Prospective", "Candidate", "Follower", "Leader", "Resigned", "Observer",
    }  # fmt: skip
    n = node(1, 2, 3)
    with pytest.raises(AssertionError):
        n._r.become(Leader(1, 1, 0, ()))
