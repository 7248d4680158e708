"""The replica of the metadata log on this node: its files, fsyncs and connections. Decisions are node.py's.

Everything that happens becomes an event of the machine. Its `Ready` is carried out here, in the order that
ready.py gives. Appends go to the page cache at once; one fsync away from the loop covers all that came in
meanwhile. After a failure of the disk nothing is appended any more; what only lacks descriptors or memory is
tried again. Those above hear of commits, leaders and snapshots (`on_*`) when a step is over: then they may
append.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Final, NamedTuple
from uuid import UUID

from odradek.client.connection import Traffic
from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.raft import events
from odradek.raft.batches import Proposal, append_bytes
from odradek.raft.control import QuorumFacts
from odradek.raft.durability import LogFlusher, StateWriter
from odradek.raft.messages import AnswerBody, FetchSnapshotAnswer, Request, VoterChangeAnswer
from odradek.raft.metrics import RaftMetrics
from odradek.raft.node import RaftNode
from odradek.raft.opening import QUORUM_STATE_FILE, Opened, QuorumError, remove_mark
from odradek.raft.peers import Endpoint, Peers, Translator, chosen_endpoint
from odradek.raft.quorum_state import format_quorum_state
from odradek.raft.ready import Append, Ready
from odradek.raft.replica_snapshots import ReplicaSnapshots
from odradek.raft.roles import Leader
from odradek.raft.snapshots import SnapshotBuilder, SnapshotError, SnapshotId
from odradek.raft.times import RaftTimes
from odradek.raft.voters import Endpoints
from odradek.runtime.api import Runtime
from odradek.runtime.scope import Scope

_log = logging.getLogger(__name__)

_STALL_MS: Final = 500


class Membership(NamedTuple):
    """Who this replica is to the others, and where it finds them."""

    node_id: int
    directory_id: UUID
    translator: Translator
    endpoints: Endpoints = ()
    bootstrap_servers: Sequence[Endpoint] = ()
    listener_name: str = ""
    auto_join: bool = False


class RaftDriver:
    """`start`, then `append` while it leads; `on_committed` says how far the quorum agrees.

    `on_leader_changed` gets epoch and leader whenever either changes; `on_snapshot` hears of a fetched
    snapshot that took the place of the log.
    """

    def __init__(self, runtime: Runtime, opened: Opened, times: RaftTimes, membership: Membership) -> None:
        self._runtime = runtime
        self.log, self.snapshots = opened.log, opened.snapshots
        self.node_id, self.directory_id = membership.node_id, membership.directory_id
        self.failure: KafkaError | None = None
        self.metrics = RaftMetrics()
        self.on_committed: Callable[[int], None] = lambda offset: None
        self.on_leader_changed: Callable[[int, int], None] = lambda epoch, leader_id: None
        self.on_snapshot: Callable[[SnapshotId], None] = lambda snapshot_id: None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        self._history = opened.history
        self.node = RaftNode(
            membership.node_id,
            membership.directory_id,
            state=opened.state,
            log=opened.view,
            history=opened.history,
            times=times,
            draw=runtime.rng.randrange,
            endpoints=membership.endpoints,
            bootstrap_servers=len(membership.bootstrap_servers),
            may_vote=opened.may_vote,
            auto_join=membership.auto_join,
        )
        self.replica_snapshots = ReplicaSnapshots(runtime, self.log, self.snapshots, self._history)
        self._listener_name = membership.listener_name
        self._has_bootstrap_servers = bool(membership.bootstrap_servers)
        self._request_timeout_ms = times.request_timeout_ms
        self._events: deque[events.Event] = deque()
        self._news: deque[Callable[[], None]] = deque()
        self._is_stepping = self._is_telling = self._is_closed = False
        self._append_error: KafkaError | None = None
        self._waiting: dict[object, asyncio.Future[AnswerBody]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._idle: asyncio.Future[None] | None = None
        self._flusher = LogFlusher(runtime, self.log, times.append_linger_ms, self._flushed, self._fail)
        self._state = StateWriter(
            runtime, self.log, f"{self.log.path}/{QUORUM_STATE_FILE}", self._persisted, self._fail
        )
        self._peers = Peers(
            runtime,
            f"raft-client-{membership.node_id}",
            membership.bootstrap_servers,
            times.request_timeout_ms,
            membership.translator,
            self._heard,
        )
        self._scope = Scope(lambda error: _log.error("A task of the quorum failed", exc_info=error))

    def start(self) -> None:
        """Take part in the quorum: vote, stand, follow. QuorumError where it can never have a leader."""
        voters = self.facts.voters
        if voters is None:
            if not self._has_bootstrap_servers:
                raise QuorumError(
                    "neither the metadata log nor controller.quorum.voters names a voter, and "
                    "controller.quorum.bootstrap.servers names nobody to ask"
                )
        elif voters.ids == (self.node_id,) and not voters.has(self.node_id, self.directory_id):
            raise QuorumError(
                f"node {self.node_id} with directory {self.directory_id} is not among the voters "
                f"{list(voters.voters)}"
            )
        self._step(events.Start())
        self._flusher.want()  # a killed process may have left records in the page cache

    # --- the quorum as it stands ----------------------------------------------------------------------

    @property
    def is_leader(self) -> bool:
        return self.node.is_leader and self.failure is None

    @property
    def leader_id(self) -> int:
        return self.node.leader_id

    @property
    def epoch(self) -> int:
        return self.node.epoch

    @property
    def epoch_start_offset(self) -> int:
        """Where the epoch began that this replica leads."""
        role = self.node.role
        assert isinstance(role, Leader), f"{role} leads nobody"
        return role.epoch_start_offset

    @property
    def facts(self) -> QuorumFacts:
        """kraft.version and voters that act now."""
        return self._history.last

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Everything below is committed. At a start that is what the newest snapshot holds."""
        return self.log.high_watermark

    @property
    def traffic(self) -> Traffic:
        """To other replicas and back."""
        return self._peers.traffic

    @property
    def leader_endpoint(self) -> Endpoint | None:
        """Where the leader listens, as this replica knows it."""
        return chosen_endpoint(self.node.leader_endpoints, self._listener_name)

    def is_lost(self, node_id: int) -> bool:
        """Whether the connection to a node broke, and there is no other yet."""
        return node_id in self._peers.lost

    # --- records and requests -------------------------------------------------------------------------

    def append(self, values: Sequence[bytes], now_ms: int) -> int:
        """Append one batch, all of it or nothing, and give its last offset. It is not committed yet.

        Raises NOT_CONTROLLER where this replica does not lead, StorageError where the disk fails,
        ExhaustedError where there is no descriptor for it: then nothing was appended.
        """
        if self.failure is not None:
            raise self.failure
        if not self.node.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        assert not self._is_stepping, "records are appended between steps"
        end_offset = self.log.log_end_offset + len(values)
        self._append_error = None
        began_ms = self.now_ms()
        self._step(events.Propose(len(values), Proposal(values, now_ms)))
        if self._append_error is not None:
            raise self._append_error
        assert self.log.log_end_offset >= end_offset, "a leader appends what it proposes"
        self.metrics.append(len(values), end_offset, began_ms)
        self.metrics.commit(self.high_watermark, self.now_ms())
        return end_offset - 1

    async def ask(self, request: Request) -> AnswerBody:
        """What this replica says to another one, once all that rests on is durable."""
        return await self._answer_to(lambda token: events.Received(token, request))

    async def upgrade_kraft_version(self, level: int, *, validate_only: bool) -> VoterChangeAnswer:
        """Of a leader: answered once the version and the voters are recorded and committed."""
        answer = await self._answer_to(lambda token: events.UpgradeKRaftVersion(token, level, validate_only))
        assert isinstance(answer, VoterChangeAnswer)
        return answer

    async def _answer_to(self, event: Callable[[object], events.Event]) -> AnswerBody:
        if self.failure is not None:
            raise self.failure
        if self._is_closed:
            raise KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, "this node is stopping")
        token = object()
        answer: asyncio.Future[AnswerBody] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        self._step(event(token))
        try:
            return await answer
        finally:
            if self._waiting.pop(token, None) is not None:
                self._step(events.Abandoned(token))

    def _heard(self, event: events.Event) -> None:
        """From another replica. A piece of a snapshot is kept before the machine counts it."""
        if isinstance(event, events.Answered) and isinstance(event.answer, FetchSnapshotAnswer):
            piece = event.answer
            if piece.error is ErrorCode.NONE:
                self.replica_snapshots.add_incoming(piece.snapshot_id, piece.position, piece.data)
        self._step(event)

    # --- steps ----------------------------------------------------------------------------------------

    @staticmethod
    def now_ms() -> int:
        """The machine's time: it has nothing to do with the wall's."""
        return int(asyncio.get_running_loop().time() * 1000)

    def _step(self, event: events.Event) -> None:
        """One event after another: those that a step causes follow it, then those above hear of it all."""
        if self._is_closed:
            return  # what it would write is another process's by now
        self._events.append(event)
        if self._is_stepping:
            return
        self._is_stepping = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        try:
            while self._events:
                self._carry_out(self.node.step(self._events.popleft(), self.now_ms()))
        finally:
            self._is_stepping = False
            ended = loop.time()
            self.metrics.busy_ms.add(1000 * (ended - began), int(1000 * ended))
        self._arm_timer()
        self._tell()

    def _tell(self) -> None:
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._news:
                self._news.popleft()()
        finally:
            self._is_telling = False

    def _carry_out(self, ready: Ready) -> None:
        if ready.persist is not None:
            voters = self.facts.voters
            ids = () if voters is None else voters.ids
            self._state.write(format_quorum_state(ready.persist, self.facts.kraft_version, ids))
        if self._change_log(ready):
            for send in ready.sends:
                self._peers.send(send, self._listener_name)
        for token, answer in ready.answers:
            waiting = self._waiting.pop(token, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        self._handle_snapshots(ready)
        if ready.may_vote:
            self._scope.spawn(self._forget_wiped(), name="raft-may-vote")
        self._note_news(ready)

    async def _forget_wiped(self) -> None:
        """Until that is durable a restart has to catch up again before it votes, and nothing worse."""
        _log.info("Node %d has caught up after its disk was new: it votes from now on", self.node_id)
        log_dir = self.log.path.rpartition("/")[0]
        try:
            await self._runtime.offload(partial(remove_mark, self._runtime.disk, log_dir))
        except OSError as e:
            _log.warning("Cannot remove the mark of a new disk in %s: %s", self.log.path, e)

    @property
    def is_alone(self) -> bool:
        """Whether this is the only voter: what it becomes is no news then."""
        voters = self.facts.voters
        return voters is not None and voters.ids == (self.node_id,)

    def _note_news(self, ready: Ready) -> None:
        if ready.role is not None:
            role = ready.role
            self.metrics.become(role, self.now_ms())
            level = logging.DEBUG if self.is_alone else logging.INFO
            _log.log(level, "Node %d is now %s in epoch %d", self.node_id, type(role).__name__, role.epoch)
            self._news.append(lambda: self.on_leader_changed(role.epoch, self.node.leader_id))
        if ready.reset is not None:
            snapshot_id = ready.reset
            self._news.append(lambda: self.on_snapshot(snapshot_id))
        if ready.high_watermark is not None:
            high_watermark = ready.high_watermark
            self.log.advance_high_watermark(high_watermark)
            self.metrics.commit(high_watermark, self.now_ms())
            self._news.append(lambda: self.on_committed(high_watermark))

    def _change_log(self, ready: Ready) -> bool:
        """Whether the log took what it was given."""
        if ready.truncate is None and ready.reset is None and not ready.appends:
            return True
        try:
            if ready.truncate is not None:
                self.log.truncate_to(ready.truncate)
            if ready.reset is not None:
                self.log.truncate_fully_and_start_at(ready.reset.end_offset)
            self._append(ready.appends)
        except ExhaustedError as e:
            self._append_error = e
            self._events.append(events.AppendFailed(ready.appends[0].base_offset))
            return False
        except StorageError as e:
            self._append_error = e
            self._fail(e)
            return False
        self._flusher.want(lingers=bool(ready.appends) and all(a.tag is not None for a in ready.appends))
        return True

    def _append(self, appends: Sequence[Append]) -> None:
        if appends:
            self.log.append_as_follower(append_bytes(appends, self._runtime.clock.now_ms()))
            fetched = sum(append.records for append in appends if append.batch is not None)
            if fetched:
                self.metrics.fetch(fetched, self.now_ms())
            self._events.append(events.Appended(self.log.log_end_offset))

    def _flushed(self, end_offset: int) -> None:
        if self.failure is None:
            self._step(events.Flushed(end_offset))
        self._rested()

    def _persisted(self) -> None:
        if self.failure is None:
            self._step(events.Persisted())
        self._rested()

    # --- snapshots ------------------------------------------------------------------------------------

    def _handle_snapshots(self, ready: Ready) -> None:
        if ready.drop_snapshot:
            self.replica_snapshots.drop_incoming()
        if ready.begin_snapshot is not None:
            self.replica_snapshots.begin_incoming(ready.begin_snapshot)
        if ready.finish_snapshot is not None:
            self._scope.spawn(self._finish_snapshot(ready.finish_snapshot), name="raft-snapshot")

    async def _finish_snapshot(self, snapshot_id: SnapshotId) -> None:
        try:
            snapshot = await self.replica_snapshots.finish_incoming(snapshot_id)
        except (SnapshotError, OSError) as e:
            _log.warning("Cannot take the snapshot %s from the leader: %s", snapshot_id.file_name, e)
            self._step(events.SnapshotRejected(snapshot_id))
        else:
            self._step(events.SnapshotFetched(snapshot_id, snapshot.facts))

    def new_snapshot(self, snapshot_id: SnapshotId, last_timestamp_ms: int) -> SnapshotBuilder:
        return self.replica_snapshots.new(snapshot_id, last_timestamp_ms)

    async def save_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """Write a snapshot away from the loop. Raises OSError: the log is whole without it."""
        await self.replica_snapshots.save(snapshot_id, data)
        self._step(events.SnapshotTaken(snapshot_id))

    def clean_up(self, retention_bytes: int, retention_ms: int) -> None:
        """Drop the oldest snapshots, and the log before the next one, beyond what is to be kept."""
        self._step(events.LogStartAdvanced(self.replica_snapshots.clean_up(retention_bytes, retention_ms)))

    # --- time -----------------------------------------------------------------------------------------

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.node.next_deadline_ms
        if deadline_ms is not None and self.failure is None:
            self._timer = asyncio.get_running_loop().call_at(deadline_ms / 1000, self._on_time, deadline_ms)

    def _on_time(self, deadline_ms: int) -> None:
        """A timer that fires late did so because this loop stood still: then silence proves nothing.

        What arrived meanwhile is read first.
        """
        self._timer = None
        if self.now_ms() - deadline_ms < _STALL_MS:
            self._step(events.Tick())
        else:
            asyncio.get_running_loop().call_soon(self._step, events.Tick(stalled=True))

    # --- failure and end ------------------------------------------------------------------------------

    def _fail(self, failure: KafkaError) -> None:
        if self.failure is None:
            self.failure = failure
            _log.error("The metadata log failed, nothing more is decided here: %s", failure)
            self._news.append(lambda: self.on_failed(failure))
            self._step(events.Failed())
            self._rested()

    def _rested(self) -> None:
        """Everything that was begun is durable, or never will be."""
        busy = self.failure is None and (self._flusher.is_flushing or self._state.is_writing)
        if self._idle is not None and not self._idle.done() and not busy:
            self._idle.set_result(None)

    def resign(self) -> None:
        """Cease to lead, and never stand again: another replica may."""
        if self.failure is None:
            self._step(events.Stop())

    async def _leave(self) -> None:
        """A leader says to the voters that it resigns, and waits for them, but not for long."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._request_timeout_ms / 1000
        self.resign()
        while not self.node.may_stop and loop.time() < deadline and self.failure is None:
            await asyncio.sleep(0.01)

    async def close(self) -> None:
        """Make durable what was appended and give the files up. Nothing more may be appended.

        Where that fails nothing that was committed is lost: the next start looks at the log in any case.
        """
        await self._leave()
        await self._peers.close()
        await self._scope.close()
        while self.failure is None and (self._flusher.is_flushing or self._state.is_writing):
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self._is_closed = True
        if self._timer is not None:
            self._timer.cancel()
        if self.failure is None:
            try:
                job = self.log.begin_close()
                if job is not None:
                    await self._runtime.offload(job.run)
                    self.log.finish_flush(job)
            except (OSError, KafkaError) as e:
                _log.error("%s could not be closed cleanly: %s", self.log.path, e)
        self.log.close(clean=False)
