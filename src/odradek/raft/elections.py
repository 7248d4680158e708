"""Votes and pre-votes: who is asked, who grants, what follows from the answers (KIP-595, KIP-996)."""

from odradek.core.errors import ErrorCode
from odradek.raft import moves
from odradek.raft.answers import is_for_another, refused_by_voter, vote_answer
from odradek.raft.messages import VoteAnswer, VoteRequest
from odradek.raft.ready import Answer, Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Candidate, Follower, Leader, Observer, Prospective, Resigned, Unattached
from odradek.raft.voters import ReplicaKey

# --- asking ---------------------------------------------------------------------------------------------


def stand(r: Replica, now_ms: int) -> None:
    """Ask for pre-votes. A replica that decides alone needs none."""
    insists = r.fetching.leader_gone
    moves.to_prospective(r, now_ms)
    assert r.ballot is not None
    r.ballot.insists = insists
    count(r, now_ms)


def ask(r: Replica, now_ms: int) -> None:
    """Send the vote requests that are due."""
    ballot = r.ballot
    if ballot is None:
        return
    for voter_id in ballot.due(now_ms):
        ballot.retry_ms[voter_id] = None
        request = VoteRequest(
            r.role.epoch,
            r.key,
            r.voter_key(voter_id),
            r.log.epochs.last,
            r.log.end_offset,
            isinstance(r.role, Prospective),
        )
        r.gate.send(Send(voter_id, request, r.endpoints_of(voter_id)))


def on_answer(r: Replica, to: int, request: VoteRequest, answer: VoteAnswer, now_ms: int) -> None:
    """An answer of this election; the epoch and the leader it names have been looked at."""
    if not _is_current(r, request):
        return
    assert r.ballot is not None
    if answer.error is not ErrorCode.NONE:
        r.ballot.retry_ms[to] = now_ms + r.times.retry_backoff_ms
        return
    r.ballot.record(to, answer.granted)
    if r.ballot.insists and not answer.granted:
        r.ballot.retry_ms[to] = now_ms + r.times.retry_backoff_ms
    count(r, now_ms)


def on_no_answer(r: Replica, to: int, request: VoteRequest, now_ms: int) -> None:
    if _is_current(r, request):
        assert r.ballot is not None
        r.ballot.retry_ms[to] = now_ms + r.times.retry_backoff_ms


def _is_current(r: Replica, request: VoteRequest) -> bool:
    asking = Prospective if request.pre_vote else Candidate
    return isinstance(r.role, asking) and request.epoch == r.role.epoch


def count(r: Replica, now_ms: int) -> None:
    """Won, lost, or still open. A candidate that lost waits for the rest of its election timeout."""
    assert r.ballot is not None and r.voters is not None
    voters = r.voters.ids
    if isinstance(r.role, Prospective):
        if r.ballot.is_granted(voters):
            moves.to_candidate(r, now_ms)
            count(r, now_ms)
        elif r.ballot.is_rejected(voters) and not r.ballot.insists:
            give_up(r, now_ms)
    elif r.ballot.is_granted(voters):
        moves.to_leader(r, now_ms)


def give_up(r: Replica, now_ms: int) -> None:
    """A prospective that lost goes back to the leader that it knows of."""
    role = r.role
    assert isinstance(role, Prospective)
    reachable = r.has_leader and role.leader_id != r.node_id and r.voter_key(role.leader_id) is not None
    if reachable or (r.has_leader and r.leader_endpoints):
        moves.follow(r, role.epoch, role.leader_id, r.endpoints_of(role.leader_id), now_ms)
    else:
        r.deadline_ms = None
        moves.to_unattached(r, role.epoch, now_ms, leader_id=role.leader_id)


def on_timeout(r: Replica, now_ms: int) -> None:
    """The election timeout, or the fetch timeout of a follower."""
    role = r.role
    if isinstance(role, Prospective):
        give_up(r, now_ms)
    elif isinstance(role, Resigned):
        moves.to_unattached(r, role.epoch + 1, now_ms)
    elif r.may_vote and not r.stopping:
        stand(r, now_ms)
    else:
        r.deadline_ms = now_ms + r.election_timeout_ms()


# --- granting -------------------------------------------------------------------------------------------


def on_request(r: Replica, token: object, request: VoteRequest, now_ms: int) -> None:
    r.gate.answer(Answer(token, _answer(r, request, now_ms)))


def _answer(r: Replica, request: VoteRequest, now_ms: int) -> VoteAnswer:
    last_epoch = request.last_epoch
    too_new = last_epoch > request.epoch if request.pre_vote else last_epoch >= request.epoch
    if too_new or last_epoch < 0 or request.last_offset < 0:
        return vote_answer(r, ErrorCode.INVALID_REQUEST)
    refused = refused_by_voter(r, request.candidate.id, request.epoch)
    if refused is not None:
        return vote_answer(r, refused)
    if request.epoch > r.role.epoch:
        moves.to_unattached(r, request.epoch, now_ms)
    if is_for_another(r, request.voter):
        return vote_answer(r, ErrorCode.INVALID_VOTER_KEY)
    granted = may_grant(r, request)
    if granted and not request.pre_vote and r.role.voted is None:
        note_vote(r, request.candidate, now_ms)
    return vote_answer(r, ErrorCode.NONE, granted=granted)


def may_grant(r: Replica, request: VoteRequest) -> bool:
    """Whether to grant a vote or pre-vote in the epoch that this replica has.

    A vote is given once in an epoch, and to nobody in an epoch that has a leader. A follower that has fetched
    from its leader grants no pre-vote.
    """
    role = r.role
    if not r.may_vote or r.stopping or isinstance(role, Leader):
        return False
    if request.pre_vote:
        if isinstance(role, Follower | Observer) and r.fetching.has_fetched:
            return False
        return log_is_up_to_date(r, request)
    if not isinstance(role, Unattached | Prospective | Observer):
        return False
    if role.voted is not None:
        return voted_for(role.voted, request.candidate)
    return not r.has_leader and log_is_up_to_date(r, request)


def voted_for(voted: ReplicaKey, candidate: ReplicaKey) -> bool:
    """The same candidate asks again. A vote without a directory was for the node."""
    return voted.id == candidate.id and voted.directory_id in (
        ReplicaKey(voted.id).directory_id,
        candidate.directory_id,
    )


def log_is_up_to_date(r: Replica, request: VoteRequest) -> bool:
    """The candidate's log ends with a newer epoch, or with the same one and is not shorter."""
    own = (r.log.epochs.last, r.log.end_offset)
    return (request.last_epoch, request.last_offset) >= own


def note_vote(r: Replica, candidate: ReplicaKey, now_ms: int) -> None:
    """Written down before the answer leaves. The candidate gets time: it has as good a chance as this one."""
    role = r.role
    assert isinstance(role, Unattached | Prospective | Observer) and role.voted is None, f"{role} voted"
    ballot, deadline_ms, fetching = r.ballot, r.deadline_ms, r.fetching
    r.become(role._replace(voted=candidate))
    r.ballot, r.deadline_ms, r.fetching = ballot, deadline_ms, fetching
    if isinstance(role, Unattached):
        r.deadline_ms = now_ms + r.election_timeout_ms()
