"""Changes of the voters (KIP-853): one at a time, after the own epoch has committed, acting when appended.

Refusals and their order are Apache Kafka's. An update of a voter is answered when appended, the others when
committed.
"""

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID, uuid_to_text
from odradek.raft import moves
from odradek.raft.answers import refused_by_leader, voter_change_error
from odradek.raft.leadership import CAUGHT_UP_MS, NEVER_MS, Leadership, VoterChange
from odradek.raft.messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    SupportedVersionsAnswer,
    SupportedVersionsRequest,
    UpdateVoterRequest,
)
from odradek.raft.quorum_records import Voters
from odradek.raft.ready import Answer, Send
from odradek.raft.replica import Replica
from odradek.raft.voters import ReplicaKey, Voter, VoterSet

_PREVIOUS = "Request timed out waiting for leader to handle previous voter change request"
_NO_HIGH_WATERMARK = "Request timed out waiting for leader to establish HWM and fence previous voter changes"


def answer(r: Replica, token: object, error: ErrorCode, message: str | None = None) -> None:
    r.gate.answer(Answer(token, voter_change_error(r, error, message)))


def leading(r: Replica, token: object) -> Leadership | None:
    """The leadership, or None: refused, since somebody else leads."""
    if r.leadership is None:
        answer(r, token, ErrorCode.NOT_LEADER_OR_FOLLOWER, "This node is not the leader of the quorum")
    return r.leadership


def is_busy(r: Replica, lead: Leadership, token: object) -> bool:
    """Whether a change must wait: another one is under way, or nothing of the own epoch is committed."""
    if lead.change is not None:
        answer(r, token, ErrorCode.REQUEST_TIMED_OUT, _PREVIOUS)
    elif lead.high_watermark is None:
        answer(r, token, ErrorCode.REQUEST_TIMED_OUT, _NO_HIGH_WATERMARK)
    else:
        return False
    return True


def is_fixed(r: Replica, lead: Leadership, token: object, verb: str) -> bool:
    """Whether the voters cannot be changed now: kraft.version 0, or the last change is not committed."""
    version = r.history.last.kraft_version
    if version < 1:
        message = f"Cluster doesn't support {verb} voter because the kraft.version feature is {version}"
        answer(r, token, ErrorCode.UNSUPPORTED_VERSION, message)
        return True
    return is_uncommitted(r, lead, token)


def is_uncommitted(r: Replica, lead: Leadership, token: object) -> bool:
    assert lead.high_watermark is not None
    offset = r.history.last_offset
    if offset < lead.high_watermark:
        return False
    message = (
        f"Request timed out waiting for voters to commit the latest voter change at {offset} "
        f"with HWM {lead.high_watermark}"
    )
    answer(r, token, ErrorCode.REQUEST_TIMED_OUT, message)
    return True


# --- adding ---------------------------------------------------------------------------------------------


def on_add(r: Replica, token: object, request: AddVoterRequest, now_ms: int) -> None:
    """Ask the new voter which kraft.versions it supports; its answer goes on from there."""
    lead = leading(r, token)
    if lead is None:
        return
    voter = request.voter
    if voter.id < 0 or not request.endpoints:
        message = "Add voter request didn't include a voter and its listeners"
        answer(r, token, ErrorCode.INVALID_REQUEST, message)
        return
    if is_busy(r, lead, token) or is_fixed(r, lead, token, "adding"):
        return
    assert r.voters is not None
    if r.voters.get(voter.id) is not None:
        message = f"The voter id for {_text(voter)} is already part of the set of voters {_texts(r.voters)}."
        answer(r, token, ErrorCode.DUPLICATE_VOTER, message)
        return
    wait_ms = r.times.request_timeout_ms
    if request.timeout_ms > 0:
        wait_ms = min(wait_ms, request.timeout_ms)
    lead.change = VoterChange(token, now_ms + wait_ms, voter, request.endpoints, request.ack_when_committed)
    r.gate.send(Send(voter.id, SupportedVersionsRequest(), request.endpoints))


def on_versions(r: Replica, to: int, versions: SupportedVersionsAnswer | None, now_ms: int) -> None:
    """What the new voter supports, or None: it did not answer."""
    lead = r.leadership
    change = None if lead is None else lead.change
    if lead is None or change is None or change.voter is None or change.end_offset is not None:
        return
    voter = change.voter
    if voter.id != to:
        return
    level = r.history.last.kraft_version
    if versions is None or versions.error is not ErrorCode.NONE:
        error = ErrorCode.REQUEST_TIMED_OUT if versions is None else versions.error
        message = f"Aborted add voter operation for since API_VERSIONS returned an error {error.name}"
        _end(r, lead, ErrorCode.REQUEST_TIMED_OUT, message)
    elif not versions.min_kraft_version <= level <= versions.max_kraft_version:
        message = (
            f"Aborted add voter operation for {_text(voter)} since the kraft.version range "
            f"(min: {versions.min_kraft_version}, max: {versions.max_kraft_version}) doesn't support the "
            f"finalized version {level}"
        )
        _end(r, lead, ErrorCode.INVALID_REQUEST, message)
    elif not has_caught_up(lead, voter, now_ms):
        message = f"Aborted add voter operation for {_text(voter)} since it is lagging behind"
        _end(r, lead, ErrorCode.REQUEST_TIMED_OUT, message)
    else:
        assert r.voters is not None
        low, high = versions.min_kraft_version, versions.max_kraft_version
        record = r.voters.with_voter(Voter(voter.id, voter.directory_id, change.endpoints, low, high))
        change.end_offset = append_voters(r, record, now_ms)
        if not change.ack_when_committed:
            answer(r, change.token, ErrorCode.NONE)
            change.token = None


def has_caught_up(lead: Leadership, voter: ReplicaKey, now_ms: int) -> bool:
    """It reached the end of the log once, and still fetches."""
    state = lead.observers.get(voter)
    if state is None or state.last_caught_up_ms == NEVER_MS:
        return False
    return state.last_fetch_ms > now_ms - CAUGHT_UP_MS


def append_voters(r: Replica, voters: VoterSet, now_ms: int) -> int:
    end_offset = moves.append_control(r, (Voters(voters),))
    moves.voters_changed(r)
    return end_offset


# --- removing, updating ---------------------------------------------------------------------------------


def on_remove(r: Replica, token: object, request: RemoveVoterRequest, now_ms: int) -> None:
    lead = leading(r, token)
    if lead is None:
        return
    if request.voter.id < 0:
        answer(r, token, ErrorCode.INVALID_REQUEST, "Remove voter request didn't include a valid voter")
        return
    if is_busy(r, lead, token) or is_fixed(r, lead, token, "removing"):
        return
    assert r.voters is not None
    if r.voter_key(request.voter.id) != request.voter:
        message = f"Cannot remove voter {_text(request.voter)} from the set of voters {_texts(r.voters)}"
        answer(r, token, ErrorCode.VOTER_NOT_FOUND, message)
        return
    if len(r.voters.ids) == 1:
        answer(r, token, ErrorCode.INVALID_REQUEST, "Cannot remove the last voter")
        return
    change = lead.change = VoterChange(token, now_ms + r.times.request_timeout_ms)
    change.end_offset = append_voters(r, r.voters.without(request.voter.id), now_ms)


def on_update(r: Replica, token: object, request: UpdateVoterRequest, now_ms: int) -> None:
    """Where a voter listens and what it supports. With kraft.version 0 the leader only remembers it."""
    refused = refused_by_leader(r, request.leader_epoch)
    if refused is not None:
        answer(r, token, refused)
        return
    lead = leading(r, token)
    if lead is None or is_busy(r, lead, token):
        return
    assert r.voters is not None
    level = r.history.last.kraft_version
    if level >= 1 and is_uncommitted(r, lead, token):
        return
    key = request.voter
    supports = request.min_kraft_version <= level <= request.max_kraft_version
    if key.id < 0 or not request.endpoints or not supports:
        answer(r, token, ErrorCode.INVALID_REQUEST)
        return
    known = r.voters.get(key.id)
    if known is None or (level >= 1 and known.directory_id != key.directory_id):
        answer(r, token, ErrorCode.VOTER_NOT_FOUND)
        return
    updated = Voter(*key, request.endpoints, request.min_kraft_version, request.max_kraft_version)
    if level < 1:
        lead.volatile[key.id] = updated
    elif updated != known:
        append_voters(r, r.voters.with_voter(updated), now_ms)
    answer(r, token, ErrorCode.NONE)


# --- on the way -----------------------------------------------------------------------------------------


def progress(r: Replica, lead: Leadership, now_ms: int) -> None:
    """A change that is committed is answered; a leader that is no voter any more goes."""
    high_watermark, change = lead.high_watermark, lead.change
    if high_watermark is None:
        return
    if change is not None and change.end_offset is not None and change.end_offset <= high_watermark:
        _end(r, lead, ErrorCode.NONE, None)
    if not r.counts and r.history.last_offset < high_watermark:
        r.voters_from_history()
        moves.to_resigned(r, now_ms)


def expire(r: Replica, lead: Leadership, now_ms: int) -> None:
    """The one who asked is answered; a record that is appended may still be committed."""
    if lead.change is not None and lead.change.deadline_ms <= now_ms:
        _end(r, lead, ErrorCode.REQUEST_TIMED_OUT, "Request timed out before the change was committed")


def withdraw(r: Replica, lead: Leadership) -> None:
    """The record could not be appended."""
    change = lead.change
    if change is not None and change.end_offset is not None and change.end_offset > r.log.end_offset:
        _end(r, lead, ErrorCode.REQUEST_TIMED_OUT, "The change could not be written")


def _end(r: Replica, lead: Leadership, error: ErrorCode, message: str | None) -> None:
    change, lead.change = lead.change, None
    assert change is not None
    if change.token is not None:
        answer(r, change.token, error, message)


def _text(key: ReplicaKey) -> str:
    directory = "<undefined>" if key.directory_id == ZERO_UUID else uuid_to_text(key.directory_id)
    return f"ReplicaKey(id={key.id}, directoryId={directory})"


def _texts(voters: VoterSet) -> str:
    return "[" + ", ".join(_text(voter.key) for voter in voters.voters) + "]"
