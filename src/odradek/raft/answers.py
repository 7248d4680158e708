"""Answers that carry what this replica knows of the leader, and the checks that refuse a request."""

from odradek.core.errors import ErrorCode
from odradek.raft.messages import EpochAnswer, FetchAnswer, FetchSnapshotAnswer, VoteAnswer, VoterChangeAnswer
from odradek.raft.replica import Replica
from odradek.raft.roles import Leader
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import ReplicaKey


def vote_answer(r: Replica, error: ErrorCode, *, granted: bool = False) -> VoteAnswer:
    return VoteAnswer(error, r.role.leader_id, r.role.epoch, granted, r.endpoints_of(r.role.leader_id))


def epoch_answer(r: Replica, error: ErrorCode) -> EpochAnswer:
    return EpochAnswer(error, r.role.leader_id, r.role.epoch, r.endpoints_of(r.role.leader_id))


def fetch_error(r: Replica, error: ErrorCode) -> FetchAnswer:
    leader_id = r.role.leader_id
    return FetchAnswer(error, leader_id, r.role.epoch, endpoints=r.endpoints_of(leader_id))


def snapshot_error(r: Replica, error: ErrorCode, snapshot_id: SnapshotId) -> FetchSnapshotAnswer:
    leader_id = r.role.leader_id
    return FetchSnapshotAnswer(
        error, leader_id, r.role.epoch, snapshot_id, endpoints=r.endpoints_of(leader_id)
    )


def voter_change_error(r: Replica, error: ErrorCode, message: str | None) -> VoterChangeAnswer:
    leader_id = r.role.leader_id
    return VoterChangeAnswer(error, message, leader_id, r.role.epoch, r.endpoints_of(leader_id))


# --- checks ---------------------------------------------------------------------------------------------


def refused_by_voter(r: Replica, sender_id: int, epoch: int) -> ErrorCode | None:
    """Vote, BeginQuorumEpoch, EndQuorumEpoch: from a node that has an id, and not from an older epoch."""
    if epoch < r.role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    return ErrorCode.INVALID_REQUEST if sender_id < 0 or sender_id == r.node_id else None


def refused_by_leader(r: Replica, epoch: int) -> ErrorCode | None:
    """Fetch and FetchSnapshot: the sender must know exactly the epoch that is led here."""
    role = r.role
    if epoch < role.epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if epoch > role.epoch:
        return ErrorCode.UNKNOWN_LEADER_EPOCH
    if not isinstance(role, Leader):
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return None


def is_for_another(r: Replica, voter: ReplicaKey | None) -> bool:
    """A request names the voter it is meant for; one that names none is meant for its receiver."""
    if voter is None or voter.id < 0:
        return False
    unknown = ReplicaKey(voter.id).directory_id
    return voter.id != r.node_id or voter.directory_id not in (unknown, r.key.directory_id)
