"""What a leader does: answer fetches, count what is durable where, see whether a majority still hears it."""

from odradek.core.errors import ErrorCode
from odradek.raft import moves
from odradek.raft.answers import fetch_error, refused_by_leader, snapshot_error
from odradek.raft.leadership import Leadership, Parked, ReplicaState
from odradek.raft.messages import (
    NO_HIGH_WATERMARK,
    BeginQuorumEpochRequest,
    EpochEnd,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from odradek.raft.quorum import committed_offset, majority
from odradek.raft.ready import Answer, Append, Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Leader
from odradek.raft.snapshots import SnapshotId
from odradek.raft.voters import ReplicaKey

# --- records --------------------------------------------------------------------------------------------


def propose(r: Replica, records: int, tag: object) -> None:
    assert isinstance(r.role, Leader), f"{r.role} takes no proposal"
    assert records > 0, "a batch has records"
    base = r.log.end_offset
    r.log.append(base, base + records, r.role.epoch)
    r.gate.append(Append(base, r.role.epoch, records, tag))


def serve_parked(r: Replica) -> None:
    """Records came, or the high watermark moved: answer those that waited for it."""
    lead = r.leadership
    if lead is None or not lead.parked:
        return
    for token, parked in tuple(lead.parked.items()):
        if _has_news(r, lead, parked.request):
            del lead.parked[token]
            _answer_parked(r, lead, token, parked.request)


def _has_news(r: Replica, lead: Leadership, request: FetchRequest) -> bool:
    if request.fetch_offset < r.log.appended_offset:
        return True
    high_watermark = lead.high_watermark
    return (
        request.waits_for_high_watermark
        and high_watermark is not None
        and request.high_watermark < high_watermark
    )


# --- fetches --------------------------------------------------------------------------------------------


def on_fetch(r: Replica, token: object, request: FetchRequest, now_ms: int) -> None:
    """Answer now, or park the fetch until there is something to say."""
    if is_malformed(request) or request.replica.id == r.node_id:
        r.gate.answer(Answer(token, fetch_error(r, ErrorCode.INVALID_REQUEST)))
        return
    refused = refused_by_leader(r, request.leader_epoch)
    lead = r.leadership
    if refused is not None or lead is None:
        r.gate.answer(Answer(token, fetch_error(r, refused or ErrorCode.NOT_LEADER_OR_FOLLOWER)))
        return
    position = r.log.position_of(request.fetch_offset, request.last_fetched_epoch)
    if position is None:
        _note_fetch(r, lead, request.replica, request.fetch_offset, now_ms)
        if request.max_wait_ms and not _has_news(r, lead, request):
            lead.parked[token] = Parked(request, now_ms + request.max_wait_ms)
            return
    r.gate.answer(Answer(token, _fetch_answer(r, lead, request, position)))


def is_malformed(request: FetchRequest) -> bool:
    return (
        request.max_wait_ms < 0
        or request.fetch_offset < 0
        or request.last_fetched_epoch < 0
        or request.leader_epoch < 0
        or request.last_fetched_epoch > request.leader_epoch
    )


def _fetch_answer(
    r: Replica, lead: Leadership, request: FetchRequest, position: EpochEnd | SnapshotId | None
) -> FetchAnswer:
    offset = request.fetch_offset
    return FetchAnswer(
        ErrorCode.NONE,
        r.node_id,
        r.role.epoch,
        NO_HIGH_WATERMARK if lead.high_watermark is None else lead.high_watermark,
        r.log.start_offset,
        position if isinstance(position, EpochEnd) else None,
        position if isinstance(position, SnapshotId) else None,
        offset,
        max(offset, r.log.appended_offset) if position is None else offset,
        endpoints=r.leader_endpoints,
    )


def _note_fetch(r: Replica, lead: Leadership, key: ReplicaKey, offset: int, now_ms: int) -> None:
    """A fetch offset is durable where it comes from: that is how a voter acknowledges."""
    if key.id < 0:
        return
    state = replica_state(r, lead, key, now_ms)
    state.fetched(offset, r.log.end_offset, now_ms)
    if state is lead.voters.get(key.id):
        _forget_old_disk(lead, key)
        heard_from(r, lead, key.id, now_ms)
        commit(r)


def _forget_old_disk(lead: Leadership, key: ReplicaKey) -> None:
    """A voter that comes with another directory has lost the one it told of: that must not be recorded."""
    told = lead.volatile.get(key.id)
    if told is not None and told.directory_id != key.directory_id:
        del lead.volatile[key.id]


def replica_state(r: Replica, lead: Leadership, key: ReplicaKey, now_ms: int) -> ReplicaState:
    assert r.voters is not None
    if r.voters.matches(key):
        return lead.voters[key.id]
    state = lead.observers.get(key)
    if state is None:
        lead.forget_silent_observers(now_ms)
        state = lead.observers[key] = ReplicaState(key)
    return state


def expire_parked(r: Replica, lead: Leadership, now_ms: int) -> None:
    """Nothing came within the wait: the answer says so."""
    for token, parked in tuple(lead.parked.items()):
        if parked.deadline_ms <= now_ms:
            del lead.parked[token]
            _answer_parked(r, lead, token, parked.request)


def _answer_parked(r: Replica, lead: Leadership, token: object, request: FetchRequest) -> None:
    """The fetch was counted when it came. Meanwhile the log may begin behind it."""
    position = r.log.position_of(request.fetch_offset, request.last_fetched_epoch)
    r.gate.answer(Answer(token, _fetch_answer(r, lead, request, position)))


def on_fetch_snapshot(r: Replica, token: object, request: FetchSnapshotRequest, now_ms: int) -> None:
    """The driver fills the bytes in, or says that the snapshot is gone or the position beyond its end."""
    refused = refused_by_leader(r, request.leader_epoch)
    if refused is None and request.position < 0:
        refused = ErrorCode.POSITION_OUT_OF_RANGE
    if refused is not None:
        r.gate.answer(Answer(token, snapshot_error(r, refused, request.snapshot_id)))
        return
    lead = r.leadership
    assert lead is not None and r.voters is not None
    if r.voters.matches(request.replica) and request.replica.id != r.node_id:
        heard_from(r, lead, request.replica.id, now_ms)
    answer = FetchSnapshotAnswer(
        ErrorCode.NONE,
        r.node_id,
        r.role.epoch,
        request.snapshot_id,
        position=request.position,
        endpoints=r.leader_endpoints,
    )
    r.gate.answer(Answer(token, answer))


# --- what is committed ----------------------------------------------------------------------------------


def commit(r: Replica) -> None:
    """Count what a majority of the voters holds durably."""
    lead, role = r.leadership, r.role
    if lead is None or not r.gate.settled:
        return
    assert isinstance(role, Leader)
    offset = majority_offset(r, lead)
    if not is_own_epoch(role, offset) or offset <= (lead.high_watermark or 0):
        return
    assert offset <= r.log.end_offset, f"committed {offset} beyond {r.log!r}"
    lead.high_watermark = offset
    advance_high_watermark(r, offset)
    serve_parked(r)


def majority_offset(r: Replica, lead: Leadership) -> int:
    assert r.voters is not None
    ends = {n: state.end_offset for n, state in lead.voters.items()}
    if r.counts:
        ends[r.node_id] = r.log.flushed_offset
    return committed_offset(r.voters.ids, ends)


def is_own_epoch(role: Leader, offset: int) -> bool:
    """What earlier leaders appended is committed only together with a record of this epoch."""
    return offset > role.epoch_start_offset


def advance_high_watermark(r: Replica, offset: int) -> None:
    """Never back: a new leader learns late what was committed before it."""
    if offset > (r.high_watermark or 0):
        r.high_watermark = offset
        r.gate.high_watermark = offset
        r.gate.touch()


# --- the voters -----------------------------------------------------------------------------------------


def heard_from(r: Replica, lead: Leadership, voter_id: int, now_ms: int) -> None:
    """Check-quorum: a majority was heard from since the last time, so the next period begins."""
    assert r.voters is not None
    lead.fetched[voter_id] = None
    needed = majority(len(r.voters.ids)) - r.counts
    if len(lead.fetched) >= needed:
        lead.fetched.clear()
        lead.check_quorum_ms = now_ms + r.times.check_quorum_ms


def lost_the_quorum(r: Replica, lead: Leadership, now_ms: int) -> bool:
    """No majority fetched for one and a half fetch timeouts: the others may have elected another leader."""
    alone = not r.others
    return not alone and lead.check_quorum_ms <= now_ms


def announce(r: Replica, lead: Leadership, now_ms: int) -> None:
    """BeginQuorumEpoch to the voters that do not fetch."""
    if lead.begin_ms > now_ms:
        return
    lead.begin_ms = now_ms + r.times.begin_quorum_epoch_ms
    quiet_since_ms = now_ms - r.times.begin_quorum_epoch_ms
    for voter_id in r.others:
        state = lead.voters[voter_id]
        if voter_id not in lead.announcing and (
            state.last_fetch_ms < 0 or state.last_fetch_ms <= quiet_since_ms
        ):
            lead.announcing[voter_id] = None
            request = BeginQuorumEpochRequest(
                r.node_id, r.role.epoch, r.voter_key(voter_id), r.leader_endpoints
            )
            r.gate.send(Send(voter_id, request, r.endpoints_of(voter_id)))


def on_tick(r: Replica, lead: Leadership, now_ms: int) -> None:
    if lost_the_quorum(r, lead, now_ms):
        moves.to_resigned(r, now_ms)
        return
    expire_parked(r, lead, now_ms)
