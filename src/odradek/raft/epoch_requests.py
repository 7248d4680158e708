"""BeginQuorumEpoch and EndQuorumEpoch: a leader says that it leads, or that it resigns."""

from odradek.core.errors import ErrorCode
from odradek.raft import moves
from odradek.raft.answers import epoch_answer, is_for_another, refused_by_voter
from odradek.raft.messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from odradek.raft.ready import Answer, Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Follower, Resigned


def on_begin(r: Replica, token: object, request: BeginQuorumEpochRequest, now_ms: int) -> None:
    error = refused_by_voter(r, request.leader_id, request.leader_epoch)
    if error is None:
        leader_id, epoch = request.leader_id, request.leader_epoch
        moves.heard_of_leader(r, leader_id, epoch, request.endpoints, now_ms, itself=True)
        error = ErrorCode.INVALID_VOTER_KEY if is_for_another(r, request.voter) else ErrorCode.NONE
    r.gate.answer(Answer(token, epoch_answer(r, error)))


def on_end(r: Replica, token: object, request: EndQuorumEpochRequest, now_ms: int) -> None:
    """Stand after a backoff by the place among the successors: the first one at once."""
    error = refused_by_voter(r, request.leader_id, request.leader_epoch)
    if error is None:
        moves.heard_of_leader(r, request.leader_id, request.leader_epoch, request.endpoints, now_ms)
        if isinstance(r.role, Follower) and r.role.leader_id == request.leader_id:
            r.deadline_ms = now_ms + backoff_ms(r, request)
            r.fetching.has_fetched = False
        error = ErrorCode.NONE
    r.gate.answer(Answer(token, epoch_answer(r, error)))


def backoff_ms(r: Replica, request: EndQuorumEpochRequest) -> int:
    """Twice as long for each place; the longest for one that is not named."""
    most_ms = r.times.election_backoff_max_ms
    successors = request.preferred_successors
    for place, key in enumerate(successors):
        if not is_for_another(r, key):
            return 0 if not place else min(most_ms, (most_ms >> (len(successors) - 1)) << (place - 1))
    return most_ms if successors else 0


def tell_resigned(r: Replica, now_ms: int) -> None:
    """EndQuorumEpoch to the voters that have not acknowledged it."""
    role = r.role
    assert isinstance(role, Resigned)
    for voter_id, at_ms in r.resigning.items():
        if at_ms is not None and at_ms <= now_ms:
            r.resigning[voter_id] = None
            request = EndQuorumEpochRequest(
                r.node_id, role.epoch, role.preferred_successors, r.leader_endpoints
            )
            r.gate.send(Send(voter_id, request, r.endpoints_of(voter_id)))
