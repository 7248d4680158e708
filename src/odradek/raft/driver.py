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
from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, NO_LEADER, Buffer, TopicPartition
from odradek.log.files import read_file, write_file
from odradek.log.log import Isolation, Log
from odradek.log.parts.flush_job import FlushJob
from odradek.raft.control import (
    ControlRecord,
    KRaftVersionRecord,
    QuorumFacts,
    control_batch,
    leader_change,
    read_control_batch,
    voters_record,
)
from odradek.raft.node import (
    BeginEpoch,
    Effect,
    Flushed,
    Leader,
    Persist,
    RaftNode,
    Start,
    Stop,
)
from odradek.raft.quorum_state import QuorumState, format_quorum_state, parse_quorum_state
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId, read_snapshot
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
        self.facts = QuorumFacts(0, static_voters)
        self.failure: KafkaError | None = None
        self.on_committed: Callable[[int], None] = lambda offset: None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        self.on_leader_changed: Callable[[int, int], None] = lambda epoch, leader_id: None
        self.on_snapshot: Callable[[SnapshotId], None] = lambda snapshot_id: None
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
        if start_offset > log.log_end_offset:
            _log.warning("%s ends before its newest snapshot: going on from the snapshot", path)
            log.truncate_fully_and_start_at(start_offset)
        if log.log_start_offset > start_offset:
            raise QuorumError(
                f"{path} begins at {log.log_start_offset} and no snapshot holds what was before"
            )
        return cls(runtime, log, snapshots, node_id, directory_id, static_voters)

    # --- what is there already ------------------------------------------------------------------------

    def load(
        self,
        on_snapshot: Callable[[SnapshotId, int], None] = lambda snapshot_id, timestamp_ms: None,
        on_batch: OnBatch = lambda data, batch: None,
    ) -> None:
        """Find out what control records say of the quorum: they hold as soon as they are appended.

        Hand over every data batch on the way: those of the newest snapshot, then those of the log after it.
        Between them `on_snapshot` says which offset the first ones stand for, and when it was written.
        """
        offset = 0
        newest = self.snapshots.newest
        if newest is not None:
            snapshot = read_snapshot(self.snapshots.read(newest), on_batch)
            if snapshot.facts.voters is not None:
                self.facts = snapshot.facts
            on_snapshot(newest, snapshot.last_timestamp_ms)
            offset = newest.end_offset
        while offset < self.log.log_end_offset:
            found = self.log.read(offset, _READ_BYTES, Isolation.LOG_END).slice
            assert found is not None, f"the metadata log has no batch at {offset}"
            data = found.read()
            for batch in iter_batches(data):
                if batch.is_control:
                    self.facts = self.facts.after(read_control_batch(data, batch))
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
        newest = self.snapshots.newest
        state = self._read_quorum_state()
        epoch = max(state.leader_epoch, self.log.latest_epoch, 0 if newest is None else newest.epoch)
        state = state._replace(leader_epoch=epoch)
        self._node = RaftNode(self.node_id, self.directory_id, voters, state, self.log.log_end_offset)
        self._carry_out(self._node.step(Start()))
        self.on_leader_changed(self.epoch, self.leader_id)
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
        return self._node is not None and isinstance(self._node.role, Leader)

    @property
    def epoch(self) -> int:
        return self.node.epoch

    @property
    def leader_id(self) -> int:
        return NO_LEADER if self._node is None else self._node.leader_id

    @property
    def epoch_start_offset(self) -> int:
        role = self.node.role
        assert isinstance(role, Leader), "only a leader knows where its epoch begins"
        return role.epoch_start_offset

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
        batch = build_batch(
            [(now_ms, None, value, ()) for value in values],
            base_offset=self.log.log_end_offset,
            leader_epoch=self.epoch,
        )
        return self._append(batch)

    def _append(self, batch: bytearray) -> int:
        try:
            last_offset = self.log.append_as_follower(batch).last_offset
        except StorageError as e:
            self._fail(e)
            raise
        self._want_flush()
        return last_offset

    def _carry_out(self, effects: Sequence[Effect]) -> None:
        for effect in effects:
            if isinstance(effect, Persist):
                self._persist(effect.state)
            elif isinstance(effect, BeginEpoch):
                self._begin_epoch(effect)
            else:
                self.log.advance_high_watermark(effect.offset)
                self.on_committed(effect.offset)

    def _persist(self, state: QuorumState) -> None:
        """Begin to write the state down. What follows is appended meanwhile, and counts only afterwards."""
        content = format_quorum_state(state, self.facts.kraft_version, self.node.voters.ids)
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
        self._count_durable()
        self._settled()

    def _begin_epoch(self, effect: BeginEpoch) -> None:
        """A new log also begins with the version of the quorum and its voters, where they are recorded."""
        voters = self.node.voters
        records: list[ControlRecord] = [leader_change(self.node_id, voters.ids, effect.granted)]
        if self.log.log_end_offset == 0 and self.facts.kraft_version >= 1:
            records.append(KRaftVersionRecord(k_raft_version=self.facts.kraft_version))
            records.append(voters_record(voters))
        batch = control_batch(
            records,
            base_offset=self.log.log_end_offset,
            epoch=effect.epoch,
            timestamp_ms=self._runtime.clock.now_ms(),
        )
        self._append(batch)

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
        self._count_durable()
        if self.log.log_end_offset > self.log.recovery_point:
            self._want_flush()
        else:
            self._settled()

    def _settled(self) -> None:
        """Everything that was begun is durable, or never will be."""
        waiting = self._flushing or self._persisting is not None
        if self._idle is not None and not self._idle.done() and (not waiting or self.failure is not None):
            self._idle.set_result(None)

    def _count_durable(self) -> None:
        if self._persisting is None and self.failure is None:
            self._carry_out(self.node.step(Flushed(self.log.recovery_point)))

    def _fail(self, failure: KafkaError) -> None:
        if self.failure is None:
            self.failure = failure
            _log.error("The metadata log failed, nothing more is decided here: %s", failure)
            self._settled()
            self.on_failed(failure)
            self.resign()

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

    def resign(self) -> None:
        """Lead no longer. Nothing more is appended in this epoch."""
        if self.is_leader:
            self.node.step(Stop())
            self.on_leader_changed(self.epoch, self.leader_id)

    async def close(self) -> None:
        """Make durable what was appended and give the files up. Nothing more may be appended.

        Where that fails nothing that was committed is lost: the next start looks at the log in any case.
        """
        while self.failure is None and (self._flushing or self._persisting is not None):
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle
        self.resign()
        if self.failure is None:
            try:
                job = self.log.begin_close()
                if job is not None:
                    await self._runtime.offload(job.run)
                    self.log.finish_flush(job)
            except (OSError, KafkaError) as e:
                _log.error("%s could not be closed cleanly: %s", self.log.path, e)
        self.log.close(clean=False)
