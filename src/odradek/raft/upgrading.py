"""kraft.version from 0 to 1 while the quorum runs, and what voters tell the leader of themselves for it."""

from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID
from odradek.raft import moves, voter_changes
from odradek.raft.leadership import Leadership, VoterChange
from odradek.raft.messages import UpdateVoterRequest, VoterChangeAnswer
from odradek.raft.quorum_records import KRaftVersion, Voters
from odradek.raft.ready import Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Follower
from odradek.raft.voters import Voter, VoterSet

_NAME = "kraft.version"


def on_upgrade(r: Replica, token: object, level: int, validate_only: bool, now_ms: int) -> None:
    """Record the version together with the voters, whose directories every one of them has told."""
    lead = voter_changes.leading(r, token)
    if lead is None or voter_changes.is_busy(r, lead, token):
        return
    current = r.history.last.kraft_version
    if level == current:
        voter_changes.answer(r, token, ErrorCode.NONE)
        return
    voters = known_voters(r, lead)
    refusal = None
    if level < current:
        refusal = f"Invalid upgrade of {_NAME} from version {current} to {level} because it is a downgrade"
    elif level > 1 or voters is None or any(voter.max_kraft_version < level for voter in voters.voters):
        refusal = f"Invalid upgrade of {_NAME} to {level} because not all of the voters support it"
    if refusal is not None:
        voter_changes.answer(r, token, ErrorCode.INVALID_UPDATE_VERSION, refusal)
        return
    if validate_only:
        voter_changes.answer(r, token, ErrorCode.NONE)
        return
    assert voters is not None
    change = lead.change = VoterChange(token, now_ms + r.times.request_timeout_ms)
    change.end_offset = moves.append_control(r, (KRaftVersion(level), Voters(voters)))
    moves.voters_changed(r)


def known_voters(r: Replica, lead: Leadership) -> VoterSet | None:
    """The voters as they described themselves; None while one of them has not."""
    assert r.voters is not None
    own = Voter(*r.key, r.endpoints, *r.supported_kraft_versions)
    found = [own if n == r.node_id else lead.volatile.get(n) for n in r.voters.ids]
    voters = [voter for voter in found if voter is not None and voter.directory_id != ZERO_UUID]
    return VoterSet(voters) if len(voters) == len(found) else None


# --- the voter's side -----------------------------------------------------------------------------------


def must_update(r: Replica) -> bool:
    """The recorded voters have this one wrong, or the leader has not heard of it (kraft.version 0)."""
    role = r.role
    if not isinstance(role, Follower) or not r.counts or not r.endpoints:
        return False
    if r.history.last.kraft_version < 1:
        return not r.fetching.updated_leader
    own = None if r.voters is None else r.voters.get(r.node_id)
    assert own is not None
    return (own.endpoints, own.min_kraft_version, own.max_kraft_version) != (
        r.endpoints,
        *r.supported_kraft_versions,
    )


def pump(r: Replica, now_ms: int) -> None:
    fetching = r.fetching
    if fetching.update_voter_ms > now_ms or not r.gate.settled or not must_update(r):
        return
    fetching.update_voter_ms = now_ms + r.times.update_voter_ms
    leader_id = r.role.leader_id
    request = UpdateVoterRequest(r.role.epoch, r.key, r.endpoints, *r.supported_kraft_versions)
    r.gate.send(Send(leader_id, request, r.endpoints_of(leader_id)))


def on_answer(r: Replica, request: UpdateVoterRequest, answer: VoterChangeAnswer) -> None:
    if answer.error is ErrorCode.NONE and request.leader_epoch == r.role.epoch:
        r.fetching.updated_leader = True
