"""What follows the leader: fetches, truncation, snapshots; and how a replica without a leader finds one.

A replica sends its next fetch only when everything it has is durable, so that its fetch offset acknowledges.
"""

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_LEADER
from odradek.raft import moves
from odradek.raft.fetching import Download
from odradek.raft.leading import advance_high_watermark
from odradek.raft.messages import (
    NO_HIGH_WATERMARK,
    BatchInfo,
    EpochEnd,
    FetchAnswer,
    FetchRequest,
    FetchSnapshotAnswer,
    FetchSnapshotRequest,
)
from odradek.raft.ready import Append, Send
from odradek.raft.replica import Replica
from odradek.raft.roles import Follower, Observer, Unattached
from odradek.raft.snapshots import SnapshotId

# --- asking ---------------------------------------------------------------------------------------------


def pump(r: Replica, now_ms: int) -> None:
    """Send the next request, if one may be sent now."""
    fetching = r.fetching
    if fetching.in_flight is not None or fetching.retry_ms > now_ms or not may_fetch(r):
        return
    if not isinstance(r.role, Follower | Observer | Unattached):
        return
    download = fetching.download
    if download is not None and download.finished:
        return
    to = _target(r)
    if to is None:
        return
    if download is not None and to == r.role.leader_id:
        request: FetchRequest | FetchSnapshotRequest = FetchSnapshotRequest(
            r.key, r.role.epoch, download.snapshot_id, download.position
        )
    else:
        request = FetchRequest(
            r.key,
            r.role.epoch,
            fetch_offset(r),
            r.log.epochs.last,
            r.times.fetch_max_wait_ms,
            NO_HIGH_WATERMARK if r.high_watermark is None else r.high_watermark,
            waits_for_high_watermark=True,
        )
    fetching.in_flight = request
    r.gate.send(Send(to, request, r.endpoints_of(to)))


def may_fetch(r: Replica) -> bool:
    """The epoch is written down and the log is durable."""
    return r.gate.settled and r.log.flushed_offset == r.log.end_offset and not r.stopping


def can_ask(r: Replica) -> bool:
    """Whether there is anybody to ask, and nothing else to wait for."""
    download = r.fetching.download
    if download is not None and download.finished:
        return False
    return r.role.leader_id not in (NO_LEADER, r.node_id) or bool(r.others or r.bootstrap_servers)


def fetch_offset(r: Replica) -> int:
    return r.log.end_offset


def _target(r: Replica) -> int | None:
    """The leader; without one, or when it does not answer, each other voter and bootstrap server in turn."""
    role, fetching = r.role, r.fetching
    if isinstance(role, Follower | Observer) and role.leader_id != NO_LEADER and not fetching.ask_around:
        return role.leader_id
    fetching.ask_around = False
    around = tuple(n for n in r.others if n != role.leader_id) + r.bootstrap_servers
    if not around:
        return role.leader_id if role.leader_id not in (NO_LEADER, r.node_id) else None
    if not fetching.asked:
        fetching.asked = r.draw(len(around)) + 1
    else:
        fetching.asked += 1
    return around[(fetching.asked - 1) % len(around)]


def on_no_answer(r: Replica, to: int, request: FetchRequest | FetchSnapshotRequest, now_ms: int) -> None:
    """Ask another node next; if that one does not answer either, it is the leader's turn again."""
    fetching = r.fetching
    if request is fetching.in_flight:
        fetching.in_flight = None
        fetching.retry_ms = now_ms + r.times.retry_backoff_ms
        fetching.ask_around = to == r.role.leader_id


def on_timeout(r: Replica, now_ms: int) -> None:
    """An observer's fetch timeout: it cannot stand, so it asks around. From now on it grants pre-votes, since
    a record that it lacks may have made it a voter whose vote is needed."""
    r.deadline_ms = now_ms + r.times.fetch_timeout_ms
    r.fetching.has_fetched = False
    r.fetching.ask_around = True


# --- answers --------------------------------------------------------------------------------------------


def on_fetch_answer(r: Replica, to: int, request: FetchRequest, answer: FetchAnswer, now_ms: int) -> None:
    """An answer of the current epoch; the leader it names has been looked at."""
    fetching = r.fetching
    if request is not fetching.in_flight:
        return
    fetching.in_flight = None
    if answer.error is not ErrorCode.NONE or to != r.role.leader_id or r.role.epoch != request.leader_epoch:
        fetching.retry_ms = now_ms + r.times.retry_backoff_ms
        return
    _heard_from_leader(r, now_ms)
    if answer.diverging is not None:
        truncate(r, answer.diverging, now_ms)
        return
    if answer.snapshot_id is not None:
        begin_download(r, answer.snapshot_id)
        return
    if not _append(r, answer.batches, now_ms):
        fetching.retry_ms = now_ms + r.times.retry_backoff_ms
    if r.fetching is fetching:
        fetching.leader_high_watermark = max(fetching.leader_high_watermark, answer.high_watermark)
        follow_high_watermark(r, now_ms)


def _heard_from_leader(r: Replica, now_ms: int) -> None:
    fetching = r.fetching
    fetching.has_fetched = True
    fetching.connection_lost = fetching.leader_gone = False
    fetching.ask_around = False
    r.deadline_ms = now_ms + r.times.fetch_timeout_ms


def _append(r: Replica, batches: tuple[BatchInfo, ...], now_ms: int) -> bool:
    """Append what follows the own log. False where it does not follow, or cannot be of this leader."""
    changed = False
    for batch in batches:
        if batch.end_offset <= r.log.end_offset:
            continue
        if batch.base_offset != r.log.end_offset or not r.log.epochs.last <= batch.epoch <= r.role.epoch:
            return False
        r.log.append(batch.base_offset, batch.end_offset, batch.epoch)
        r.gate.append(
            Append(batch.base_offset, batch.epoch, batch.end_offset - batch.base_offset, batch=batch)
        )
        if batch.quorum_records:
            changed |= r.history.add(batch.base_offset, batch.quorum_records)
    if changed:
        moves.voters_changed(r)
    return True


def follow_high_watermark(r: Replica, now_ms: int) -> None:
    """The leader's, as far as the own log is durable. A removal that is committed now takes the own vote."""
    fetching = r.fetching
    if fetching.leader_high_watermark == NO_HIGH_WATERMARK:
        return
    advance_high_watermark(r, min(fetching.leader_high_watermark, r.log.flushed_offset))
    if r.is_voter and not r.counts:
        moves.voters_changed(r)
    if not r.may_vote and has_caught_up(r):
        r.may_vote = True
        r.gate.may_vote = True
        r.gate.touch()


def has_caught_up(r: Replica) -> bool:
    """A wiped voter holds what is committed: the high watermark of a leader of at least the epoch that it
    heard of when it began."""
    committed = r.fetching.leader_high_watermark
    return r.role.epoch >= r.vote_floor and 0 <= committed <= r.log.flushed_offset


def truncate(r: Replica, diverging: EpochEnd, now_ms: int) -> None:
    """Cut the log back to where it may still agree with the leader's, and fetch from there."""
    log = r.log
    own = log.epochs.end_offset_for(diverging.epoch, log.end_offset)
    same_epoch = own.epoch == diverging.epoch
    end_offset = min(own.end_offset, diverging.end_offset) if same_epoch else own.end_offset
    assert end_offset >= (r.high_watermark or 0), f"{diverging} would cut what is committed off {log!r}"
    if end_offset == log.end_offset:
        r.fetching.retry_ms = now_ms + r.times.retry_backoff_ms
        return
    log.truncate(end_offset)
    r.gate.truncate = end_offset
    r.gate.touch()
    if r.history.truncate(end_offset):
        moves.voters_changed(r)


# --- snapshots ------------------------------------------------------------------------------------------


def begin_download(r: Replica, snapshot_id: SnapshotId) -> None:
    """Fetch a snapshot; one that is under way already goes on where it is."""
    assert snapshot_id.end_offset >= (r.high_watermark or 0), f"{snapshot_id} is older than what is committed"
    download = r.fetching.download
    if download is None or download.snapshot_id != snapshot_id:
        r.fetching.download = Download(snapshot_id)
        r.gate.begin_snapshot = snapshot_id
        r.gate.touch()


def on_snapshot_answer(
    r: Replica, to: int, request: FetchSnapshotRequest, answer: FetchSnapshotAnswer, now_ms: int
) -> None:
    """A piece came; the driver has written it."""
    fetching = r.fetching
    if request is not fetching.in_flight:
        return
    fetching.in_flight = None
    download = fetching.download
    assert download is not None and download.snapshot_id == request.snapshot_id
    if answer.error is not ErrorCode.NONE or to != r.role.leader_id or r.role.epoch != request.leader_epoch:
        fetching.retry_ms = now_ms + r.times.retry_backoff_ms
        if answer.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
            drop_download(r, now_ms)
        return
    _heard_from_leader(r, now_ms)
    if answer.snapshot_id != download.snapshot_id or answer.position != download.position:
        drop_download(r, now_ms)
        return
    download.position += answer.length
    if is_whole(download, answer):
        download.finished = True
        r.gate.finish_snapshot = download.snapshot_id
        r.gate.touch()
    elif not answer.length:
        drop_download(r, now_ms)


def is_whole(download: Download, answer: FetchSnapshotAnswer) -> bool:
    return download.position >= answer.size


def drop_download(r: Replica, now_ms: int) -> None:
    """Begin again with a fetch, after a while: the leader says what to fetch now."""
    r.fetching.download = None
    r.fetching.retry_ms = now_ms + r.times.retry_backoff_ms
    r.gate.drop_snapshot = True
    r.gate.touch()
