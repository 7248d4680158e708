"""The replica of the metadata log on this node: its files, its fsyncs, its connections. Decisions are node.py's.

Whatever happens becomes an event of the machine, and its `Ready` is carried out here, in the order that ready.py
gives. Appends go to the page cache at once; one fsync away from the loop makes all of them durable that came in
meanwhile. After a failure of the disk nothing is appended any more; what only lacks descriptors or memory is
tried again. Those above hear of what is committed, of leaders and of snapshots (`on_*`) when a step is over.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.core.types import NO_LEADER
from odradek.log.log import Log
from odradek.raft import events
from odradek.raft.batches import append_bytes, read_batches
from odradek.raft.control import QuorumFacts
from odradek.raft.durability import LogFlusher, StateWriter
from odradek.raft.incoming import IncomingSnapshot
from odradek.raft.messages import AnswerBody, FetchSnapshotAnswer, Request
from odradek.raft.node import RaftNode
from odradek.raft.opening import QUORUM_STATE_FILE, Opened
from odradek.raft.peers import Endpoint, Peers, Translator
from odradek.raft.quorum_state import format_quorum_state
from odradek.raft.ready import Append, Ready
from odradek.raft.roles import Leader, Role
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId, read_snapshot
from odradek.raft.times import RaftTimes
from odradek.runtime.api import Runtime

_log = logging.getLogger(__name__)

_STALL_MS: Final = 500
_TICK_EVENTS: Final = 1


class Proposal(NamedTuple):
    """The values of a batch that the controller wants in the log, and when it decided."""

    values: Sequence[bytes]
    now_ms: int


class RaftDriver:
    """`start`, then `append` while it leads; `on_committed` says how far the quorum agrees.

    `on_leader_changed` is called with epoch and leader whenever either is another. `on_snapshot` is called when
    a fetched snapshot took the place of the log.
    """

    def __init__(
        self,
        runtime: Runtime,
        opened: Opened,
        *,
        node_id: int,
        directory_id: UUID,
        times: RaftTimes,
        bootstrap_servers: Sequence[Endpoint] = (),
        listener_name: str = "",
        translator: Translator | None = None,
        may_vote: bool = True,
    ) -> None:
        self._runtime = runtime
        self.log: Log = opened.log
        self.snapshots: SnapshotStore = opened.snapshots
        self.node_id = node_id
        self.directory_id = directory_id
        self.failure: KafkaError | None = None
        self.on_committed: Callable[[int], None] = lambda offset: None
        self.on_leader_changed: Callable[[int, int], None] = lambda epoch, leader_id: None
        self.on_snapshot: Callable[[SnapshotId], None] = lambda snapshot_id: None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        self.node = RaftNode(
            node_id,
            directory_id,
            state=opened.state,
            log=opened.view,
            history=opened.history,
            settings=times,
            draw=runtime.rng.randrange,
            may_vote=may_vote,
        )
        self._translator = translator
        self._listener_name = listener_name
        self._events: deque[events.Event] = deque()
        self._is_stepping = False
        self._news: list[Callable[[], None]] = []
        self._is_telling = False
        self._waiting: dict[object, asyncio.Future[AnswerBody]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._incoming: IncomingSnapshot | None = None
        self._flusher = LogFlusher(runtime, self.log, self._flushed, self._fail)
        state_path = f"{self.log.path}/{QUORUM_STATE_FILE}"
        self._state = StateWriter(
            runtime, self.log, state_path, lambda: self._step(events.Persisted()), self._fail
        )
        self._peers = Peers(
            runtime, f"raft-client-{node_id}", bootstrap_servers, times.request_timeout_ms, translator, self._heard
        )
        self._idle: asyncio.Future[None] | None = None

    def start(self) -> None:
        """Take part in the quorum: vote, stand, follow."""
        self._step(events.Start())

    # --- the quorum as it stands ----------------------------------------------------------------------

    @property
    def role(self) -> Role:
        return self.node.role

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
        return self.node.history.last

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        """Everything below is committed; at a start, what the newest snapshot holds."""
        return self.log.high_watermark

    def endpoint_of(self, node_id: int) -> Endpoint | None:
        """Where a controller listens, as the quorum knows it."""
        found = self.node.endpoints_of(node_id)
        named = [e for e in found if e.name.upper() == self._listener_name.upper()] or list(found)
        return (named[0].host, named[0].port) if named else None

    # --- records --------------------------------------------------------------------------------------

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
        before = self.log.log_end_offset
        self._append_error: KafkaError | None = None
        self._step(events.Propose(len(values), Proposal(values, now_ms)))
        if self._append_error is not None:
            raise self._append_error
        assert self.log.log_end_offset == before + len(values), "a leader appends what it proposes"
        return self.log.log_end_offset - 1

    # --- requests of other replicas -------------------------------------------------------------------

    async def ask(self, token: object, request: Request) -> AnswerBody:
        """What this replica says to a request. `abandon` the token where nobody waits for it any more."""
        if self.failure is not None:
            raise self.failure
        answer: asyncio.Future[AnswerBody] = asyncio.get_running_loop().create_future()
        self._waiting[token] = answer
        self._step(events.Received(token, request))
        try:
            return await answer
        finally:
            if self._waiting.pop(token, None) is not None:
                self._step(events.Abandoned(token))

    def _heard(self, event: events.Event) -> None:
        """From another replica. Bytes of a snapshot are kept before the machine counts them."""
        if isinstance(event, events.Answered) and isinstance(event.answer, FetchSnapshotAnswer):
            answer = event.answer
            if answer.error is ErrorCode.NONE and self._incoming is not None:
                self._incoming.add(answer.snapshot_id, answer.position, answer.data)
        self._step(event)

    # --- steps ----------------------------------------------------------------------------------------

    def _now_ms(self) -> int:
        return int(asyncio.get_running_loop().time() * 1000)

    def _step(self, event: events.Event) -> None:
        """One event after another; those that a step brings about follow it."""
        self._events.append(event)
        if self._is_stepping:
            return
        self._is_stepping = True
        try:
            while self._events:
                self._carry_out(self.node.step(self._events.popleft(), self._now_ms()))
        finally:
            self._is_stepping = False
        self._arm_timer()
        self._tell()

    def _tell(self) -> None:
        """Those above may append when they hear of something: never in the middle of a step."""
        if self._is_telling:
            return
        self._is_telling = True
        try:
            while self._news:
                self._news.pop(0)()
        finally:
            self._is_telling = False

    def _carry_out(self, ready: Ready) -> None:
        if ready.persist is not None:
            facts = self.facts
            voter_ids = () if facts.voters is None else facts.voters.ids
            self._state.write(format_quorum_state(ready.persist, facts.kraft_version, voter_ids))
        if not self._change_log(ready):
            return
        for send in ready.sends:
            self._peers.send(send, self._listener_name)
        for token, answer in ready.answers:
            waiting = self._waiting.pop(token, None)
            if waiting is not None and not waiting.done():
                waiting.set_result(answer)
        self._snapshot_steps(ready)
        if ready.high_watermark is not None:
            self.log.advance_high_watermark(ready.high_watermark)
            self._news.append(partial(self.on_committed, ready.high_watermark))
        if ready.role is not None:
            self._news.append(partial(self.on_leader_changed, ready.role.epoch, ready.role.leader_id))

    def _change_log(self, ready: Ready) -> bool:
        """Whether the log took what it was given."""
        try:
            if ready.truncate is not None:
                self.log.truncate_to(ready.truncate)
                self._flusher.want()
            if ready.reset is not None:
                self.log.truncate_fully_and_start_at(ready.reset.end_offset)
                self._news.append(partial(self.on_snapshot, ready.reset))
                self._flusher.want()
            if ready.appends:
                self._append(ready.appends)
        except StorageError as e:
            self._append_error = e
            self._fail(e)
            return False
        return True

    def _append(self, appends: Sequence[Append]) -> None:
        try:
            self.log.append_as_follower(append_bytes(appends, self._runtime.clock.now_ms()))
        except ExhaustedError as e:
            self._append_error = e
            self._events.append(events.AppendFailed(appends[0].base_offset))
            return
        self._events.append(events.Appended(self.log.log_end_offset))
        self._flusher.want()

    def _flushed(self, end_offset: int) -> None:
        if self.failure is None:
            self._step(events.Flushed(end_offset))
        self._rested()

    # --- time -----------------------------------------------------------------------------------------

    def _arm_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        deadline_ms = self.node.next_deadline_ms
        if deadline_ms is not None and self.failure is None:
            self._timer = asyncio.get_running_loop().call_at(deadline_ms / 1000, self._on_time, deadline_ms)

    def _on_time(self, deadline_ms: int) -> None:
        """A timer that fires late did so because this loop stood still: silence proves nothing then.

        What had arrived meanwhile is read in this very turn; deadlines begin again.
        """
        self._timer = None
        late_ms = self._now_ms() - deadline_ms
        if late_ms < _STALL_MS:
            self._step(events.Tick())
        else:
            asyncio.get_running_loop().call_soon(self._step, events.Tick(stalled=True))

    # --- failure and end ------------------------------------------------------------------------------

    def _fail(self, failure: KafkaError) -> None:
        if self.failure is None:
            self.failure = failure
            _log.error("The metadata log failed, nothing more is decided here: %s", failure)
            self._events.append(events.Failed())
            self._news.append(partial(self.on_failed, failure))
            if not self._is_stepping:
                self._step_rest()
            self._rested()

    def _step_rest(self) -> None:
        self._step(self._events.pop())

    def _rested(self) -> None:
        """Everything that was begun is durable, or never will be."""
        busy = self.failure is None and (self._flusher.is_flushing or self._state.is_writing)
        if self._idle is not None and not self._idle.done() and not busy:
            self._idle.set_result(None)
