"""The moves from role to role. When to make them is decided elsewhere; what each one begins with is here."""

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER
from odradek.raft.answers import fetch_error, voter_change_error
from odradek.raft.ballot import Ballot
from odradek.raft.leadership import Leadership, ReplicaState
from odradek.raft.quorum_records import KRaftVersion, LeaderChange, QuorumRecord, Voters
from odradek.raft.ready import Answer, Append
from odradek.raft.replica import Replica
from odradek.raft.roles import (
    Candidate,
    Follower,
    Leader,
    Observer,
    Prospective,
    Resigned,
    Role,
    Unattached,
)
from odradek.raft.voters import Endpoints, ReplicaKey

# --- epochs ---------------------------------------------------------------------------------------------


def to_unattached(
    r: Replica, epoch: int, now_ms: int, *, leader_id: int = NO_LEADER, voted: ReplicaKey | None = None
) -> None:
    """An epoch without a known leader. One that waited for an election goes on waiting for as long."""
    role = r.role
    waited = r.deadline_ms if isinstance(role, Unattached | Prospective | Candidate) else None
    if epoch == role.epoch and voted is None:
        voted = role.voted
    lead, r.leadership = r.leadership, None
    r.leader_endpoints = () if leader_id == NO_LEADER else r.leader_endpoints
    if r.is_voter:
        r.become(Unattached(epoch, leader_id, voted))
        r.deadline_ms = waited if waited is not None else now_ms + r.election_timeout_ms()
    else:
        r.become(Observer(epoch, leader_id, voted))
    dismiss(r, lead, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def follow(r: Replica, epoch: int, leader_id: int, endpoints: Endpoints, now_ms: int) -> None:
    """Fetch from a leader from now on."""
    assert leader_id not in (NO_LEADER, r.node_id), f"{r.key} cannot follow {leader_id}"
    voted = r.role.voted if epoch == r.role.epoch else None
    lead, r.leadership = r.leadership, None
    r.become(Follower(epoch, leader_id, voted) if r.is_voter else Observer(epoch, leader_id, voted))
    r.leader_endpoints = endpoints
    r.deadline_ms = now_ms + r.times.fetch_timeout_ms
    r.fetching.update_voter_ms = now_ms + r.times.update_voter_ms
    dismiss(r, lead, ErrorCode.NOT_LEADER_OR_FOLLOWER)


def heard_of_leader(
    r: Replica, leader_id: int, epoch: int, endpoints: Endpoints, now_ms: int, *, itself: bool = False
) -> None:
    """A message says who leads which epoch. Nothing is done about an older one.

    A replica that gave its leader up goes back to it only if the leader itself says so (`itself`). A node
    that is named as leader has forgotten it, with its disk: it knows of no leader then.
    """
    role = r.role
    if leader_id == r.node_id:
        leader_id = NO_LEADER
    if epoch > role.epoch:
        if leader_id == NO_LEADER:
            to_unattached(r, epoch, now_ms)
        else:
            follow(r, epoch, leader_id, endpoints or r.endpoints_of(leader_id), now_ms)
    elif epoch == role.epoch and leader_id != NO_LEADER and role.leader_id in (NO_LEADER, leader_id):
        if not r.has_leader or (itself and isinstance(role, Unattached | Prospective)):
            follow(r, epoch, leader_id, endpoints or r.endpoints_of(leader_id), now_ms)
        elif len(endpoints) > len(r.leader_endpoints):
            r.leader_endpoints = endpoints


# --- elections ------------------------------------------------------------------------------------------


def to_prospective(r: Replica, now_ms: int) -> None:
    """Ask whether a majority would elect this replica."""
    assert r.is_voter and r.may_vote, f"{r.key} must not stand"
    role = r.role
    r.become(Prospective(role.epoch, role.leader_id, role.voted))
    r.ballot = Ballot(r.node_id, r.others)
    r.deadline_ms = now_ms + r.election_timeout_ms()


def to_candidate(r: Replica, now_ms: int) -> None:
    """Stand for the next epoch, with the own vote."""
    assert r.is_voter and r.may_vote, f"{r.key} must not stand"
    r.leader_endpoints = ()
    r.become(Candidate(r.role.epoch + 1, r.key))
    r.ballot = Ballot(r.node_id, r.others)
    r.deadline_ms = now_ms + r.election_timeout_ms()


def to_leader(r: Replica, now_ms: int) -> None:
    """Lead, and open the epoch with its first record."""
    assert r.ballot is not None and r.voters is not None, "elected without an election"
    granted = tuple(n for n in r.voters.ids if n in r.ballot.granted)
    role = r.role
    r.become(Leader(role.epoch, r.node_id, r.log.end_offset, granted, role.voted))
    r.leader_endpoints = r.endpoints
    lead = r.leadership = Leadership(now_ms + r.times.check_quorum_ms)
    lead.voters = {n: ReplicaState(r.voter_key(n) or ReplicaKey(n)) for n in r.voters.ids}
    facts = r.history.last
    records: list[QuorumRecord] = [LeaderChange(r.node_id, r.voters.ids, granted)]
    if facts.kraft_version >= 1 and r.history.last_offset < 0:
        records += [KRaftVersion(facts.kraft_version), Voters(r.voters)]
    append_control(r, tuple(records))


def append_control(r: Replica, records: tuple[QuorumRecord, ...]) -> int:
    """Append a control batch of the own epoch. What it says acts at once. Gives where it ends."""
    base = r.log.end_offset
    r.log.append(base, base + len(records), r.epoch)
    r.history.add(base, records)
    r.gate.append(Append(base, r.epoch, len(records), control=records))
    return r.log.end_offset


def to_resigned(r: Replica, now_ms: int) -> None:
    """Give the epoch up and tell the voters, the one with the longest log first."""
    role, lead = r.role, r.leadership
    assert isinstance(role, Leader) and lead is not None, f"{role} has nothing to resign from"
    others = sorted(
        (state for n, state in lead.voters.items() if n != r.node_id), key=lambda s: -s.end_offset
    )
    r.leadership = None
    r.become(Resigned(role.epoch, r.node_id, tuple(state.key for state in others), role.voted))
    r.leader_endpoints = r.endpoints
    dismiss(r, lead, ErrorCode.BROKER_NOT_AVAILABLE)
    r.resigning = dict.fromkeys(r.others, 0)
    r.deadline_ms = now_ms + r.election_timeout_ms()


def dismiss(r: Replica, lead: Leadership | None, error: ErrorCode) -> None:
    """Nobody waits on a leader that is none any more."""
    if lead is None:
        return
    for token in lead.parked:
        r.gate.answer(Answer(token, fetch_error(r, error)))
    if lead.change is not None and lead.change.token is not None:
        message = "The leader resigned before the change was committed"
        answer = voter_change_error(r, ErrorCode.NOT_LEADER_OR_FOLLOWER, message)
        r.gate.answer(Answer(lead.change.token, answer))


# --- voters ---------------------------------------------------------------------------------------------


def voters_changed(r: Replica) -> None:
    """The voters that act have changed, by an append, a truncation or a snapshot."""
    r.voters_from_history()
    role = r.role
    lead = r.leadership
    if lead is not None:
        assert r.voters is not None
        _sort_replicas(r, lead)
        return
    if r.is_voter == (not isinstance(role, Observer)):
        return
    if r.has_leader and role.leader_id != r.node_id and isinstance(role, Follower | Observer):
        _follow_on(r, role)
    else:
        assert not r.is_voter, f"{role} became a voter without a leader"
        r.become(Observer(role.epoch, NO_LEADER, role.voted))


def _follow_on(r: Replica, role: Role) -> None:
    """As voter or as observer, the same leader is fetched from, and what is under way goes on."""
    fetching, deadline_ms, download = r.fetching, r.deadline_ms, r.fetching.download
    fetching.download = None
    become = Follower if r.is_voter else Observer
    r.become(become(role.epoch, role.leader_id, role.voted))
    fetching.download = download
    r.fetching, r.deadline_ms = fetching, deadline_ms


def _sort_replicas(r: Replica, lead: Leadership) -> None:
    """Who voted before and does no more is an observer, and the other way round; offsets stay known."""
    assert r.voters is not None
    known = {state.key: state for state in lead.voters.values()} | lead.observers
    voters: dict[int, ReplicaState] = {}
    for voter in r.voters.voters:
        state = known.pop(voter.key, None) or known.pop(ReplicaKey(voter.id), None)
        voters[voter.id] = state or ReplicaState(voter.key)
        voters[voter.id].key = voter.key
    lead.voters = voters
    lead.observers = {key: state for key, state in known.items() if key.id != r.node_id}
    lead.fetched = {n: None for n in lead.fetched if n in voters}
