"""The driver of one simulated replica: it carries out what the machine says, on a disk that takes time."""

from functools import partial
from typing import TYPE_CHECKING, Protocol

from odradek.core.errors import ErrorCode
from odradek.raft import events as e
from odradek.raft.messages import (
    AnswerBody,
    BatchInfo,
    FetchAnswer,
    FetchSnapshotAnswer,
    Request,
    SupportedVersionsAnswer,
    SupportedVersionsRequest,
)
from odradek.raft.node import RaftNode
from odradek.raft.ready import NOTHING, Append, Ready, Send
from odradek.raft.snapshots import SnapshotId
from odradek.sim.quorum.disk import SNAPSHOT_BYTES, ReplicaDisk, StoredSnapshot

if TYPE_CHECKING:
    from odradek.sim.quorum.world import QuorumWorld


class Sender(Protocol):
    """A node, or somebody else who asks a node."""

    node_id: int

    def answered(self, number: int, answer: AnswerBody) -> None: ...
    def unanswered(self, number: int) -> None: ...


Token = tuple[Sender, int]


class SimReplica:
    """One life of a node. `pending` are its requests that were neither answered nor failed.

    `excused_ms`: it leads, or stood still, since then; before that nothing could be expected of it.
    """

    __slots__ = (
        "_armed_ms",
        "_flushing",
        "_pieces",
        "_waiting",
        "alive",
        "disk",
        "excused_ms",
        "node",
        "node_id",
        "pending",
        "slow_disk_ms",
        "world",
    )

    def __init__(self, world: "QuorumWorld", node_id: int, disk: ReplicaDisk) -> None:
        self.world = world
        self.node_id = node_id
        self.disk = disk
        self.alive = True
        self.pending: dict[int, Send] = {}
        self.slow_disk_ms = 0
        self.excused_ms = 0
        self._waiting: dict[Token, Request] = {}
        self._flushing = False
        self._armed_ms: int | None = None
        self._pieces: list[StoredSnapshot] = []
        log, history = disk.load(world.static_voters)
        self.node = RaftNode(
            node_id,
            disk.directory_id,
            state=disk.state,
            log=log,
            history=history,
            times=world.times,
            draw=world.random.randrange,
            endpoints=world.endpoints[node_id],
            bootstrap_servers=len(world.disks),
            may_vote=disk.may_vote,
        )
        if disk.flushed < disk.end:
            self.flush_soon()

    # --- events ---------------------------------------------------------------------------------------

    def step(self, event: e.Event) -> None:
        world = self.world
        world.steps += 1
        node = self.node
        ready = node.step(event, world.now_ms)
        if ready is not NOTHING:
            self._carry_out(ready)
        wanted = node.next_deadline_ms
        if wanted is not None and (self._armed_ms is None or wanted < self._armed_ms):
            self._armed_ms = wanted
            world.at(max(wanted, world.now_ms), partial(self._tick, wanted))

    def _tick(self, armed_ms: int) -> None:
        if not self.alive or armed_ms != self._armed_ms:
            return
        self._armed_ms = None
        if self.world.stalled.pop(self.node_id, None):
            self.excused_ms = self.world.now_ms
            self.step(e.Tick(stalled=True))
        else:
            self.step(e.Tick())

    def received(self, token: Token, request: Request) -> None:
        if isinstance(request, SupportedVersionsRequest):
            self.world.answer(self, token, SupportedVersionsAnswer(ErrorCode.NONE, 0, 1))
            return
        self._waiting[token] = request
        self.world.checker.receives(self, request)
        self.step(e.Received(token, request))

    def answered(self, number: int, answer: AnswerBody) -> None:
        send = self.pending.pop(number, None)
        if send is None or not self.alive:
            return
        if isinstance(answer, FetchSnapshotAnswer) and answer.error is ErrorCode.NONE:
            stored = self.world.sent_snapshots[answer.snapshot_id]
            if answer.position == len(self._pieces):
                self._pieces += [stored] * answer.length
        self.step(e.Answered(send.to, send.request, answer))

    def unanswered(self, number: int) -> None:
        send = self.pending.pop(number, None)
        if send is not None and self.alive:
            self.step(e.Unanswered(send.to, send.request))

    def peer_died(self, node_id: int) -> None:
        """The connection breaks; the next dial is refused, or not: the address may be another process's."""
        if self.alive and (self.node_id, node_id) not in self.world.network.cut:
            self.step(e.ConnectionLost(node_id))
            if self.world.quick_failover and node_id in self.world.down:
                self.step(e.DialRefused(node_id))

    def die(self) -> None:
        self.alive = False
        for sender, number in self._waiting:
            self.world.after(1, partial(sender.unanswered, number))

    # --- effects --------------------------------------------------------------------------------------

    def _carry_out(self, ready: Ready) -> None:
        world, disk = self.world, self.disk
        checker = world.checker
        if ready.persist is not None:
            disk.writing = ready.persist
            world.after(self._disk_ms() + world.ambush(self.node_id), self._persisted)
        if ready.role is not None:
            checker.role_changed(self, ready.role)
        if ready.truncate is not None:
            checker.truncates(self, ready.truncate)
            disk.truncate(ready.truncate)
        if ready.reset is not None:
            stored = disk.snapshot(ready.reset)
            assert stored is not None
            checker.resets(self, stored)
            disk.reset(stored)
        for append in ready.appends:
            disk.append(self._batch(append))
        if ready.may_vote:
            disk.may_vote = True
        for send in ready.sends:
            checker.sends(self, send)
            world.send(self, send)
        for token, answer in ready.answers:
            assert isinstance(token, tuple)
            filled = self._filled(answer)
            request = self._waiting.pop(token, None)
            if request is not None:
                checker.answers(self, request, filled)
            world.answer(self, token, filled)
        if ready.high_watermark is not None:
            checker.commits(self, ready.high_watermark)
        if ready.begin_snapshot is not None or ready.drop_snapshot:
            self._pieces = []
        if ready.finish_snapshot is not None:
            world.after(self._disk_ms(), partial(self._store_snapshot, ready.finish_snapshot))
        if ready.appends:
            self.step(e.Appended(disk.end))
            self.flush_soon()

    def _batch(self, append: Append) -> BatchInfo:
        if append.batch is not None:
            return append.batch
        end_offset = append.base_offset + append.records
        data = self.world.next_content()
        return BatchInfo(append.base_offset, end_offset, append.epoch, append.control, data)

    def _filled(self, answer: AnswerBody) -> AnswerBody:
        """With what the driver reads from its disk for a peer."""
        if isinstance(answer, FetchAnswer):
            if answer.read_end > answer.read_offset:
                batches = self.disk.read(answer.read_offset, answer.read_end, self.world.read_batches)
                return answer._replace(batches=batches)
        elif isinstance(answer, FetchSnapshotAnswer) and answer.error is ErrorCode.NONE:
            stored = self.disk.snapshot(answer.snapshot_id)
            if stored is None:
                return answer._replace(error=ErrorCode.SNAPSHOT_NOT_FOUND)
            self.world.sent_snapshots[answer.snapshot_id] = stored
            length = min(1, SNAPSHOT_BYTES - answer.position)
            return answer._replace(size=SNAPSHOT_BYTES, length=length)
        return answer

    # --- the disk -------------------------------------------------------------------------------------

    def _disk_ms(self) -> int:
        return 1 + int(self.world.random.random() * 4) + self.slow_disk_ms

    def _persisted(self) -> None:
        if self.alive:
            assert self.disk.writing is not None
            self.disk.state, self.disk.writing = self.disk.writing, None
            self.step(e.Persisted())

    def flush_soon(self) -> None:
        if not self._flushing:
            self._flushing = True
            self.world.after(self._disk_ms(), partial(self._flushed, self.disk.end))

    def _flushed(self, end_offset: int) -> None:
        if not self.alive:
            return
        self._flushing = False
        disk = self.disk
        disk.flushed = max(disk.flushed, min(end_offset, disk.end))
        self.step(e.Flushed(disk.flushed))
        if disk.flushed < disk.end:
            self.flush_soon()

    # --- snapshots ------------------------------------------------------------------------------------

    def _store_snapshot(self, snapshot_id: SnapshotId) -> None:
        """On the disk first; the machine hears of it a moment later, unless the node dies between."""
        if not self.alive or not self._pieces:
            return
        stored = self._pieces[0]
        if len(self._pieces) < SNAPSHOT_BYTES:
            stored = stored._replace(chain=hash((stored.chain, len(self._pieces))))
        self.disk.store(stored)
        self.world.after(1, partial(self._snapshot_fetched, stored))

    def _snapshot_fetched(self, stored: StoredSnapshot) -> None:
        if self.alive:
            self.step(e.SnapshotFetched(stored.snapshot_id, stored.facts))

    def take_snapshot(self) -> None:
        """Of everything committed here, and delete the log before it."""
        disk, end_offset = self.disk, self.node.high_watermark
        if end_offset is None or end_offset <= disk.start or end_offset > disk.flushed:
            return
        chain = disk.chain_at(end_offset)
        assert chain is not None, f"the high watermark {end_offset} is within a batch"
        snapshot_id = SnapshotId(end_offset, disk.epoch_before(end_offset))
        stored = StoredSnapshot(snapshot_id, chain, self.node.history.at(end_offset))
        disk.store(stored)
        self.step(e.SnapshotTaken(snapshot_id))
        disk.trim(stored)
        self.step(e.LogStartAdvanced(end_offset))
