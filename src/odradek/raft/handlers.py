"""What each event does to a replica, where it is no message: the log, snapshots, the clock, connections."""

from collections.abc import Callable
from typing import Any, Final

from odradek.raft import elections, following, leading, moves, receiving, starting, upgrading, voter_changes
from odradek.raft import events as e
from odradek.raft.replica import Replica
from odradek.raft.roles import Follower, Leader, Observer

_TURN_MS: Final = 50
"""How long a voter lets the one before it stand when the leader is gone."""

Handler = Callable[[Replica, Any, int], None]

# --- the log --------------------------------------------------------------------------------------------


def _appended(r: Replica, event: e.Appended, now_ms: int) -> None:
    r.log.appended(event.end_offset)
    leading.serve_parked(r)


def _append_failed(r: Replica, event: e.AppendFailed, now_ms: int) -> None:
    """Nothing was written, so nothing is to be cut off. A leader without its first record does not lead."""
    r.log.truncate(event.base_offset)
    if r.history.truncate(event.base_offset):
        moves.voters_changed(r)
    lead = r.leadership
    if lead is None:
        r.fetching.retry_ms = now_ms + r.times.retry_backoff_ms
        return
    assert isinstance(r.role, Leader)
    voter_changes.withdraw(r, lead)
    if event.base_offset <= r.role.epoch_start_offset:
        moves.to_resigned(r, now_ms)


def _flushed(r: Replica, event: e.Flushed, now_ms: int) -> None:
    r.log.flushed(event.end_offset)
    if r.leadership is not None:
        leading.serve_parked(r)
        leading.commit(r)
    else:
        following.follow_high_watermark(r, now_ms)


def _persisted(r: Replica, event: e.Persisted, now_ms: int) -> None:
    r.gate.persisted()
    leading.commit(r)


def _log_start_advanced(r: Replica, event: e.LogStartAdvanced, now_ms: int) -> None:
    r.log.advance_start(event.offset)
    r.history.forget_before(event.offset)


# --- snapshots ------------------------------------------------------------------------------------------


def _snapshot_taken(r: Replica, event: e.SnapshotTaken, now_ms: int) -> None:
    taken, newest = event.snapshot_id, r.log.snapshot_id
    assert taken.end_offset <= (r.high_watermark or 0), f"{taken} holds what is not committed"
    if newest is None or taken > newest:
        r.log.snapshot_id = taken


def _snapshot_fetched(r: Replica, event: e.SnapshotFetched, now_ms: int) -> None:
    """Taken whole, or not at all. One that was fetched from a leader of before is of no use."""
    download = r.fetching.download
    snapshot_id = event.snapshot_id
    if download is None or not download.finished or download.snapshot_id != snapshot_id:
        return
    r.fetching.download = None
    r.log.reset(snapshot_id)
    r.history.reset(snapshot_id.end_offset, event.facts)
    r.gate.reset = snapshot_id
    r.gate.touch()
    leading.advance_high_watermark(r, snapshot_id.end_offset)
    moves.voters_changed(r)


def _snapshot_rejected(r: Replica, event: e.SnapshotRejected, now_ms: int) -> None:
    download = r.fetching.download
    if download is not None and download.snapshot_id == event.snapshot_id:
        following.drop_download(r, now_ms)


# --- the network ----------------------------------------------------------------------------------------


def _abandoned(r: Replica, event: e.Abandoned, now_ms: int) -> None:
    if r.leadership is not None:
        r.leadership.parked.pop(event.token, None)


def _connection_lost(r: Replica, event: e.ConnectionLost, now_ms: int) -> None:
    if event.node_id == r.role.leader_id:
        r.fetching.connection_lost = True


def _dial_refused(r: Replica, event: e.DialRefused, now_ms: int) -> None:
    """The leader's connection broke and nobody listens where it did: its process is gone. Do not wait.

    The first of the other voters stands at once, each further one a little later: votes that all ask for at
    the same moment are split. Until then it grants pre-votes.
    """
    role, fetching = r.role, r.fetching
    is_leader = isinstance(role, Follower) and role.leader_id == event.node_id
    if not is_leader or not fetching.connection_lost or fetching.leader_gone:
        return
    fetching.leader_gone, fetching.has_fetched = True, False
    turn = sum(n < r.node_id for n in r.others if n != role.leader_id)
    if turn == 0:
        elections.on_timeout(r, now_ms)
    elif r.deadline_ms is not None:
        r.deadline_ms = min(r.deadline_ms, now_ms + turn * _TURN_MS)


# --- time -----------------------------------------------------------------------------------------------


def _tick(r: Replica, event: e.Tick, now_ms: int) -> None:
    if event.stalled:
        starting.rearm(r, now_ms)
        return
    lead = r.leadership
    if lead is not None:
        voter_changes.expire(r, lead, now_ms)
        leading.on_tick(r, lead, now_ms)
    elif r.deadline_ms is not None and r.deadline_ms <= now_ms:
        if isinstance(r.role, Observer):
            following.on_timeout(r, now_ms)
        else:
            elections.on_timeout(r, now_ms)


HANDLERS: dict[type[e.Event], Handler] = {
    e.Start: lambda r, event, now_ms: starting.start(r, now_ms),
    e.Tick: _tick,
    e.Stop: lambda r, event, now_ms: starting.stop(r, now_ms),
    e.Failed: lambda r, event, now_ms: starting.fail(r, now_ms),
    e.Propose: lambda r, event, now_ms: leading.propose(r, event.records, event.tag),
    e.Appended: _appended,
    e.AppendFailed: _append_failed,
    e.Flushed: _flushed,
    e.Persisted: _persisted,
    e.LogStartAdvanced: _log_start_advanced,
    e.SnapshotTaken: _snapshot_taken,
    e.SnapshotFetched: _snapshot_fetched,
    e.SnapshotRejected: _snapshot_rejected,
    e.Received: receiving.on_received,
    e.Answered: receiving.on_answered,
    e.Unanswered: receiving.on_unanswered,
    e.Abandoned: _abandoned,
    e.ConnectionLost: _connection_lost,
    e.DialRefused: _dial_refused,
    e.UpgradeKRaftVersion: lambda r, event, now_ms: upgrading.on_upgrade(
        r, event.token, event.level, event.validate_only, now_ms
    ),
}
