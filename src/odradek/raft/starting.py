"""How a replica begins, from what it wrote down before; and how it ends."""

from odradek.core.types import NO_LEADER
from odradek.raft import elections, moves
from odradek.raft.fetching import Fetching
from odradek.raft.quorum_state import NOT_VOTED, QuorumState
from odradek.raft.replica import Replica
from odradek.raft.roles import Follower, Leader, Observer, Resigned, Role, Unattached
from odradek.raft.voters import ReplicaKey


def initial_role(r: Replica, state: QuorumState) -> Role:
    """As the quorum state says, in its epoch. One that led or stood does not do so again in that epoch:
    records that were lost with a crash would be written twice under one offset and epoch.
    """
    epoch = state.leader_epoch
    voted = None if state.voted_id == NOT_VOTED else ReplicaKey(state.voted_id, state.voted_directory_id)
    if epoch < r.log.epochs.last:
        epoch, voted, state = r.log.epochs.last, None, QuorumState()
    leader_id = state.leader_id
    if leader_id == r.node_id and r.is_voter and r.may_vote:
        return Resigned(epoch, r.node_id, (), voted)
    if leader_id == r.node_id or r.voter_key(leader_id) is None:
        leader_id = NO_LEADER if leader_id == r.node_id and not r.may_vote else leader_id
        return (Unattached if r.is_voter else Observer)(epoch, leader_id, voted)
    return (Follower if r.is_voter else Observer)(epoch, leader_id, voted)


FIRST_LOOK_MS = 150
"""A voter that knows of no leader asks for pre-votes this soon. They disturb nobody: those that have a leader
deny them and name it."""


def start(r: Replica, now_ms: int) -> None:
    """A voter that decides alone stands at once."""
    role = r.role
    r.gate.role = role
    r.gate.touch()
    voted = role.voted
    state = QuorumState(role.leader_id, role.epoch)
    r.gate.want(state if voted is None else state._replace(voted_id=voted.id, voted_directory_id=voted[1]))
    r.fetching = Fetching(now_ms + r.times.update_voter_ms)
    if isinstance(role, Resigned):
        r.resigning = dict.fromkeys(r.others, 0)
        r.leader_endpoints = r.endpoints
    elif role.leader_id != NO_LEADER:
        r.leader_endpoints = r.endpoints_of(role.leader_id)
    following = isinstance(role, Follower | Observer)
    r.deadline_ms = now_ms + (r.times.fetch_timeout_ms if following else r.election_timeout_ms())
    if isinstance(role, Unattached) and role.leader_id == NO_LEADER and role.voted is None:
        r.deadline_ms = now_ms + r.draw(FIRST_LOOK_MS)
    if r.counts and r.may_vote and not r.others:
        if isinstance(role, Resigned):
            moves.to_unattached(r, role.epoch, now_ms, leader_id=NO_LEADER)
        elections.stand(r, now_ms)


def stop(r: Replica, now_ms: int) -> None:
    r.stopping = True
    if isinstance(r.role, Leader):
        moves.to_resigned(r, now_ms)


def fail(r: Replica, now_ms: int) -> None:
    """The disk failed: a leader goes without a word, since it can write nothing down any more."""
    r.failed = r.stopping = True
    if isinstance(r.role, Leader):
        moves.to_resigned(r, now_ms)
    r.resigning = {}
    r.gate.drop_sends()


def rearm(r: Replica, now_ms: int) -> None:
    """The own loop stood still: nothing is concluded from what was not heard meanwhile."""
    if r.leadership is not None:
        r.leadership.check_quorum_ms = now_ms + r.times.check_quorum_ms
    elif isinstance(r.role, Follower | Observer):
        r.deadline_ms = now_ms + r.times.fetch_timeout_ms
    else:
        r.deadline_ms = now_ms + r.election_timeout_ms()
