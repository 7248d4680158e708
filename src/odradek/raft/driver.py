"""The quorum's replica on this node: its log, its files, its fsyncs. Decisions are node.py's.

Appends go to the page cache at once; one fsync away from the loop makes all of them durable that came in
meanwhile, and only what is durable is committed. After a failure of the disk nothing is appended any more;
what only lacks descriptors or memory is tried again.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final
from uuid import UUID

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, Buffer, TopicPartition
from odradek.log.files import read_file, write_file
from odradek.log.log import Isolation, Log
from odradek.log.parts.flush_job import FlushJob
from odradek.raft.control import QuorumFacts, control_batch, read_control_batch
from odradek.raft.events import (
    Appended,
    AppendFailed,
    Event,
    Failed,
    Flushed,
    Persisted,
    Propose,
    Start,
    Stop,
)
from odradek.raft.log_state import LogView, begins_again
from odradek.raft.node import RaftNode
from odradek.raft.quorum_records import from_control, to_control
from odradek.raft.quorum_state import QuorumState, format_quorum_state, parse_quorum_state
from odradek.raft.ready import Append, Ready
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId, read_snapshot
from odradek.raft.times import RaftTimes
from odradek.raft.voter_history import VoterHistory
from odradek.raft.voters import VoterSet
from odradek.records.batch import BatchMeta, build_batch, iter_batches
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

QUORUM_STATE_FILE: Final = "quorum-state"
PARTITION_DIR: Final = f"{METADATA_TOPIC}-0"
_READ_BYTES: Final = 1 << 20
_RETRY_S: Final = 0.2

OnBatch = Callable[[Buffer, BatchMeta], None]


class QuorumError(Exception):
    """A metadata log that this node cannot serve from; says why."""


def _view(log: Log, snapshots: SnapshotStore) -> LogView:
    start_offset = log.log_start_offset
    return LogView(
        start_offset,
        log.log_end_offset,
        max(log.recovery_point, start_offset),
        tuple(log.epochs.entries),
        next((found.epoch for found in snapshots.ids if found.end_offset == start_offset), 0),
        snapshots.newest,
    )


class RaftDriver:
    """Open, `load`, `start`; then `append`, and `on_committed` tells how far the quorum agrees."""

    def __init__(
        self,
        runtime: Runtime,
        log: Log,
        snapshots: SnapshotStore,
        node_id: int,
        directory_id: UUID,
        static_voters: VoterSet | None,
    ) -> None:
        self._runtime = runtime
        self.log = log
        self.snapshots = snapshots
        self.node_id = node_id
        self.directory_id = directory_id
        self._history = VoterHistory(static_voters)
        self.failure: KafkaError | None = None
        self.on_committed: Callable[[int], None] = lambda offset: None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        self._node: RaftNode | None = None
        self._flushing = False
        self._persisting: asyncio.Future[None] | None = None
        self._idle: asyncio.Future[None] | None = None

    @classmethod
    def open(
        cls,
        runtime: Runtime,
        log_dir: str,
        config: "TopicConfig",
        *,
        node_id: int,
        directory_id: UUID,
        static_voters: VoterSet | None = None,
    ) -> "RaftDriver":
        """Open the metadata log in a log directory, or begin one.

        `static_voters` are those of the configuration; voters recorded in the log go before them. The log is
        always checked from the last snapshot on. Raises OSError, QuorumError.
        """
        path = f"{log_dir.rstrip('/')}/{PARTITION_DIR}"
        snapshots = SnapshotStore(runtime.disk, path)
        newest = snapshots.newest
        start_offset = 0 if newest is None else newest.end_offset
        log = Log.open(
            runtime,
            path,
            TopicPartition(METADATA_TOPIC, 0),
            METADATA_TOPIC_ID,
            config,
            recovery_point=start_offset,
            high_watermark=start_offset,
        )
        if log.log_start_offset > start_offset:
            raise QuorumError(
                f"{path} begins at {log.log_start_offset} and no snapshot holds what was before"
            )
        if begins_again(_view(log, snapshots)):
            _log.warning("%s is not what its newest snapshot holds: going on from the snapshot", path)
            log.truncate_fully_and_start_at(start_offset)
        return cls(runtime, log, snapshots, node_id, directory_id, static_voters)

    # --- what is there already ------------------------------------------------------------------------

    def load(self, on_snapshot: Callable[[SnapshotId, int], None], on_batch: OnBatch) -> None:
        """Hand over every data batch: those of the newest snapshot, then those of the log after it.

        Between them `on_snapshot` says which offset the first ones stand for, and when it was written.
        """
        offset = 0
        newest = self.snapshots.newest
        if newest is not None:
            snapshot = read_snapshot(self.snapshots.read(newest), on_batch)
            self._history.reset(newest.end_offset, snapshot.facts)
            on_snapshot(newest, snapshot.last_timestamp_ms)
            offset = newest.end_offset
        while offset < self.log.log_end_offset:
            found = self.log.read(offset, _READ_BYTES, Isolation.LOG_END).slice
            assert found is not None, f"the metadata log has no batch at {offset}"
            data = found.read()
            for batch in iter_batches(data):
                if batch.is_control:
                    self._history.add(batch.base_offset, from_control(read_control_batch(data, batch)))
                elif batch.base_offset >= offset:
                    on_batch(data, batch)
                offset = batch.last_offset + 1

    def start(self) -> None:
        """Stand for leader. Returns when this replica leads and has appended its first record."""
        voters = self.facts.voters
        if voters is None:
            raise QuorumError("neither the metadata log nor controller.quorum.voters names a voter")
        if not voters.has(self.node_id, self.directory_id):
            raise QuorumError(
                f"node {self.node_id} with directory {self.directory_id} is not among the voters "
                f"{list(voters.voters)}"
            )
        self._node = RaftNode(
            self.node_id,
            self.directory_id,
            state=self._read_quorum_state(),
            log=_view(self.log, self.snapshots),
            history=self._history,
            times=RaftTimes(),
            draw=lambda n: 0,
        )
        self._step(Start())
        if not self.is_leader:
            raise QuorumError(
                f"a quorum of {len(voters.ids)} voters needs elections between nodes, which this version "
                "does not hold: run with one voter"
            )

    def _read_quorum_state(self) -> QuorumState:
        try:
            return parse_quorum_state(read_file(self._runtime.disk, f"{self.log.path}/{QUORUM_STATE_FILE}"))
        except FileNotFoundError:
            return QuorumState()

    # --- the quorum as it stands ----------------------------------------------------------------------

    @property
    def node(self) -> RaftNode:
        assert self._node is not None, "the replica has not been started"
        return self._node

    @property
    def is_leader(self) -> bool:
        return self._node is not None and self._node.is_leader

    @property
    def facts(self) -> QuorumFacts:
        """What the log and the configuration say of the quorum."""
        return self._history.last

    @property
    def voters(self) -> VoterSet:
        voters = self.facts.voters
        assert voters is not None, "the replica has not been started"
        return voters

    @property
    def epoch(self) -> int:
        return self.node.epoch

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    # --- records --------------------------------------------------------------------------------------

    def append(self, values: Sequence[bytes], now_ms: int) -> int:
        """Append one batch, all of it or nothing, and give its last offset. It is not committed yet.

        Raises NOT_CONTROLLER where this replica does not lead, StorageError where the disk fails,
        ExhaustedError where there is no descriptor for it: then nothing was appended.
        """
        if self.failure is not None:
            raise self.failure
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        self._step(Propose(len(values), [(now_ms, None, value, ()) for value in values]))
        return self.log.log_end_offset - 1

    def _step(self, event: Event) -> None:
        self._carry_out(self.node.step(event, self._runtime.clock.steady_ms()))

    def _carry_out(self, ready: Ready) -> None:
        """In the order that ready.py names. With one voter there is nobody to send to."""
        if ready.persist is not None:
            self._persist(ready.persist)
        for append in ready.appends:
            self._append(append)
        if ready.appends:
            self._step(Appended(self.log.log_end_offset))
        if ready.high_watermark is not None:
            self.log.advance_high_watermark(ready.high_watermark)
            self.on_committed(ready.high_watermark)

    def _append(self, append: Append) -> None:
        try:
            self.log.append_as_follower(self._encoded(append))
        except StorageError as e:
            self._fail(e)
            raise
        except ExhaustedError:
            self._step(AppendFailed(append.base_offset))
            raise
        self._want_flush()

    def _encoded(self, append: Append) -> bytearray:
        if append.control:
            return control_batch(
                to_control(append.control),
                base_offset=append.base_offset,
                epoch=append.epoch,
                timestamp_ms=self._runtime.clock.now_ms(),
            )
        assert isinstance(append.tag, list), "a proposal has its records as tag"
        return build_batch(append.tag, base_offset=append.base_offset, leader_epoch=append.epoch)

    def _persist(self, state: QuorumState) -> None:
        """Begin to write the state down. What follows is appended meanwhile, and counts only afterwards."""
        content = format_quorum_state(state, self.facts.kraft_version, self.voters.ids)
        self._write_state(content)

    def _write_state(self, content: bytes) -> None:
        path = f"{self.log.path}/{QUORUM_STATE_FILE}"
        self._persisting = self._runtime.offload(partial(write_file, self._runtime.disk, path, content))
        self._persisting.add_done_callback(partial(self._persisted, content))

    def _persisted(self, content: bytes, done: "asyncio.Future[None]") -> None:
        try:
            done.result()
        except OSError as e:
            failure = self.log.fail(e, "writing the quorum state of")
            if isinstance(failure, ExhaustedError):
                asyncio.get_running_loop().call_later(_RETRY_S, self._write_state, content)
                return
            self._persisting = None
            self._fail(failure)
            return
        self._persisting = None
        if self.failure is None:
            self._step(Persisted())
        self._settled()

    # --- durability -----------------------------------------------------------------------------------

    def _want_flush(self) -> None:
        """Flush at the end of this turn, so that all that is appended in it shares one fsync."""
        if not self._flushing:
            self._flushing = True
            asyncio.get_running_loop().call_soon(self._begin_flush)

    def _begin_flush(self) -> None:
        try:
            job = self.log.begin_flush()
        except ExhaustedError:
            self._flush_later()
            return
        except KafkaError as e:
            self._flushing = False
            self._fail(e)
            return
        if job is None:
            self._flushing = False
            self._settled()
            return
        self._runtime.offload(job.run).add_done_callback(partial(self._flushed, job))

    def _flush_later(self) -> None:
        """No sync has failed, one could only not be begun. Nothing is committed until it is."""
        asyncio.get_running_loop().call_later(_RETRY_S, self._begin_flush)

    def _flushed(self, job: FlushJob, done: "asyncio.Future[None]") -> None:
        try:
            done.result()
        except OSError as e:
            failure = self.log.fail(e, "flushing")
            if isinstance(failure, ExhaustedError):
                self._flush_later()
                return
            self._flushing = False
            self._fail(failure)
            return
        self._flushing = False
        if self.failure is not None:
            return
        self.log.finish_flush(job)
        self._step(Flushed(self.log.recovery_point))
        if self.log.log_end_offset > self.log.recovery_point:
            self._want_flush()
        else:
            self._settled()

    def _settled(self) -> None:
        """Everything that was begun is durable, or never will be."""
        waiting = self._flushing or self._persisting is not None
        if self._idle is not None and not self._idle.done() and (not waiting or self.failure is not None):
            self._idle.set_result(None)

    def _fail(self, failure: KafkaError) -> None:
        if self.failure is None:
            self.failure = failure
            _log.error("The metadata log failed, nothing more is decided here: %s", failure)
            if self._node is not None:
                self._step(Failed())
            self._settled()
            self.on_failed(failure)

    # --- snapshots ------------------------------------------------------------------------------------

    def new_snapshot(self, snapshot_id: SnapshotId, last_timestamp_ms: int) -> SnapshotBuilder:
        assert snapshot_id.end_offset <= self.high_watermark, "a snapshot holds what is committed"
        return SnapshotBuilder(snapshot_id.epoch, last_timestamp_ms, self.facts, self._runtime.clock.now_ms())

    async def save_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """Write a snapshot away from the loop. Raises OSError: the log is whole without it."""
        await self._runtime.offload(partial(self.snapshots.write, snapshot_id, data))
        self.snapshots.written(snapshot_id)

    def clean_up(self, retention_bytes: int, retention_ms: int) -> None:
        """Drop the oldest snapshots, and the log before the next one, beyond what is to be kept."""
        now_ms = self._runtime.clock.now_ms()
        snapshots = self.snapshots
        while len(snapshots.ids) > 1:
            oldest, following = snapshots.ids[:2]
            size = self.log.size_bytes + sum(snapshots.size_bytes(i) for i in snapshots.ids)
            age_ms = (
                now_ms - read_snapshot(snapshots.read(oldest), lambda data, batch: None).last_timestamp_ms
            )
            if size <= retention_bytes and age_ms <= retention_ms:
                break
            self.log.increment_log_start_offset(following.end_offset)
            snapshots.remove(oldest)
        self.log.retain(now_ms)
        self.log.purge_deleted(self._runtime.clock.steady_ms())

    # --- the end --------------------------------------------------------------------------------------

    async def close(self) -> None:
        """Make durable what was appended and give the files up. Nothing more may be appended.

        Where that fails nothing that was committed is lost: the next start looks at the log in any case.
        """
        while self.failure is None and (self._flushing or self._persisting is not None):
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        if self._node is not None:
            self._step(Stop())
        if self.failure is None:
            try:
                job = self.log.begin_close()
                if job is not None:
                    await self._runtime.offload(job.run)
                    self.log.finish_flush(job)
            except (OSError, KafkaError) as e:
                _log.error("%s could not be closed cleanly: %s", self.log.path, e)
        self.log.close(clean=False)
