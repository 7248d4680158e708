"""Requests of peers and answers to the own ones: what every message says of epoch and leader comes first."""

from collections.abc import Callable
from typing import Any

from odradek.core.errors import ErrorCode
from odradek.raft import elections, epoch_requests, following, leading, moves, upgrading, voter_changes
from odradek.raft import messages as m
from odradek.raft.answers import (
    epoch_answer,
    fetch_error,
    snapshot_error,
    vote_answer,
    voter_change_error,
)
from odradek.raft.events import Answered, Received, Unanswered
from odradek.raft.ready import Answer
from odradek.raft.replica import Replica

# --- requests -------------------------------------------------------------------------------------------


def on_received(r: Replica, event: Received, now_ms: int) -> None:
    request = event.request
    if r.failed:
        r.gate.answer(Answer(event.token, _unavailable(r, request)))
        return
    _REQUESTS[type(request)](r, event.token, request, now_ms)


def _unavailable(r: Replica, request: m.Request) -> m.AnswerBody:
    """After a failure of the disk nothing is answered that a peer could count."""
    error = ErrorCode.BROKER_NOT_AVAILABLE
    if isinstance(request, m.VoteRequest):
        return vote_answer(r, error)
    if isinstance(request, m.FetchRequest):
        return fetch_error(r, error)
    if isinstance(request, m.FetchSnapshotRequest):
        return snapshot_error(r, error, request.snapshot_id)
    if isinstance(request, m.BeginQuorumEpochRequest | m.EndQuorumEpochRequest):
        return epoch_answer(r, error)
    return voter_change_error(r, error, "The metadata log of this node failed")


_REQUESTS: dict[type[m.Request], Callable[[Replica, object, Any, int], None]] = {
    m.VoteRequest: elections.on_request,
    m.BeginQuorumEpochRequest: epoch_requests.on_begin,
    m.EndQuorumEpochRequest: epoch_requests.on_end,
    m.FetchRequest: leading.on_fetch,
    m.FetchSnapshotRequest: leading.on_fetch_snapshot,
    m.AddVoterRequest: voter_changes.on_add,
    m.RemoveVoterRequest: voter_changes.on_remove,
    m.UpdateVoterRequest: voter_changes.on_update,
}

# --- answers --------------------------------------------------------------------------------------------


def on_answered(r: Replica, event: Answered, now_ms: int) -> None:
    request, answer = event.request, event.answer
    if isinstance(answer, m.SupportedVersionsAnswer):
        voter_changes.on_versions(r, event.to, answer, now_ms)
        return
    if not is_current(r, answer, now_ms):
        on_unanswered(r, Unanswered(event.to, request), now_ms)
    elif isinstance(answer, m.FetchAnswer):
        assert isinstance(request, m.FetchRequest)
        following.on_fetch_answer(r, event.to, request, answer, now_ms)
    elif isinstance(answer, m.VoteAnswer):
        assert isinstance(request, m.VoteRequest)
        elections.on_answer(r, event.to, request, answer, now_ms)
    elif isinstance(answer, m.FetchSnapshotAnswer):
        assert isinstance(request, m.FetchSnapshotRequest)
        following.on_snapshot_answer(r, event.to, request, answer, now_ms)
    elif isinstance(answer, m.EpochAnswer):
        _on_epoch_answer(r, event.to, request, answer)
    elif isinstance(request, m.UpdateVoterRequest):
        upgrading.on_answer(r, request, answer)


def is_current(r: Replica, answer: m.AnswerBody, now_ms: int) -> bool:
    """Learn who leads which epoch. False: the answer is of another epoch, or says no more than that."""
    assert not isinstance(answer, m.SupportedVersionsAnswer)
    epoch, error = answer.leader_epoch, answer.error
    if epoch < r.role.epoch or error is ErrorCode.UNKNOWN_LEADER_EPOCH:
        return False
    before = r.role
    moves.heard_of_leader(r, answer.leader_id, epoch, answer.endpoints, now_ms)
    return r.role is before and error not in (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    )


def _on_epoch_answer(r: Replica, to: int, request: m.Request, answer: m.EpochAnswer) -> None:
    """To BeginQuorumEpoch: the voter will fetch. To EndQuorumEpoch: it knows that this one resigned."""
    if isinstance(request, m.EndQuorumEpochRequest):
        if request.leader_epoch == r.role.epoch:
            r.resigning.pop(to, None)
    elif r.leadership is not None:
        r.leadership.announcing.pop(to, None)


def on_unanswered(r: Replica, event: Unanswered, now_ms: int) -> None:
    request = event.request
    if isinstance(request, m.FetchRequest | m.FetchSnapshotRequest):
        following.on_no_answer(r, event.to, request, now_ms)
    elif isinstance(request, m.VoteRequest):
        elections.on_no_answer(r, event.to, request, now_ms)
    elif isinstance(request, m.BeginQuorumEpochRequest):
        if r.leadership is not None:
            r.leadership.announcing.pop(event.to, None)
    elif isinstance(request, m.EndQuorumEpochRequest):
        if event.to in r.resigning and request.leader_epoch == r.role.epoch:
            r.resigning[event.to] = now_ms + r.times.retry_backoff_ms
    elif isinstance(request, m.SupportedVersionsRequest):
        voter_changes.on_versions(r, event.to, None, now_ms)
