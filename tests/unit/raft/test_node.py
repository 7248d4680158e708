"""The replica's machine: who may lead, and what a leader may call committed."""

from uuid import UUID

import pytest

from odradek.raft.node import (
    TRANSITIONS,
    AdvanceHighWatermark,
    BeginEpoch,
    Candidate,
    Flushed,
    Leader,
    Persist,
    RaftNode,
    Resigned,
    Start,
    Stop,
    Unattached,
)
from odradek.raft.quorum_state import QuorumState
from odradek.raft.voters import Voter, VoterSet

DIR = UUID(int=700)


def node(*voters: int, epoch: int = 0, log_end_offset: int = 0, directory: UUID = DIR) -> RaftNode:
    voter_set = VoterSet(Voter(n, DIR if n == 1 else UUID(int=n + 1000), ()) for n in voters)
    return RaftNode(1, directory, voter_set, QuorumState(leader_epoch=epoch), log_end_offset)


def test_the_only_voter_leads_the_next_epoch_at_once() -> None:
    n = node(1, epoch=4)
    assert n.step(Start()) == [Persist(QuorumState(leader_id=1, leader_epoch=5)), BeginEpoch(5, (1,))]
    assert isinstance(n.role, Leader)
    assert (n.epoch, n.leader_id) == (5, 1)


@pytest.mark.parametrize("voters", [(1, 2), (1, 2, 3), (2,)])
def test_without_a_majority_of_its_own_a_replica_stays_unattached(voters: tuple[int, ...]) -> None:
    n = node(*voters, epoch=4)
    assert n.step(Start()) == []
    assert n.role == Unattached(4)
    assert n.leader_id == -1


def test_a_voters_node_with_another_directory_is_not_the_voter() -> None:
    n = node(1, directory=UUID(int=701))
    assert n.step(Start()) == []


def test_nothing_is_committed_before_a_record_of_the_own_epoch() -> None:
    n = node(1, log_end_offset=10)
    n.step(Start())
    assert n.step(Flushed(10)) == []
    assert n.high_watermark is None
    assert n.step(Flushed(11)) == [AdvanceHighWatermark(11)]
    assert n.step(Flushed(11)) == []
    assert n.step(Flushed(15)) == [AdvanceHighWatermark(15)]


def test_a_resigned_leader_commits_nothing_more() -> None:
    n = node(1)
    n.step(Start())
    n.step(Flushed(3))
    n.step(Stop())
    assert isinstance(n.role, Resigned)
    assert n.step(Flushed(9)) == []
    assert n.high_watermark == 3


def test_every_role_has_its_row_in_the_table_and_only_its_steps_are_taken() -> None:
    assert set(TRANSITIONS) == {Unattached, Candidate, Leader, Resigned}
    n = node(1)
    with pytest.raises(AssertionError):
        n._become(Leader(1, 0, (), {}))
