"""A quorum whose elections and commits are scripted: real logs on simulated disks, no network, no timers."""

from collections.abc import Callable, Iterable, Sequence
from uuid import UUID

from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import METADATA_TOPIC, METADATA_TOPIC_ID, NO_LEADER, TopicPartition
from odradek.log.log import Isolation, Log
from odradek.raft.control import QuorumFacts, control_batch, leader_change
from odradek.raft.settings import metadata_log_config
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId
from odradek.raft.voters import Voter, VoterSet
from odradek.records.batch import BatchMeta, build_batch, iter_batches
from odradek.runtime.api import Runtime
from odradek.sim.world.world import World

_PATH = "/data/__cluster_metadata-0"


class ScriptedReplica:
    """What a node sees of the quorum (metadata/quorum_replica.py)."""

    def __init__(self, runtime: Runtime, node_id: int, voters: VoterSet) -> None:
        config, _ = NodeConfig.from_sources({}, {})
        self.runtime = runtime
        self.node_id = node_id
        self.directory_id = UUID(int=700 + node_id)
        self.facts = QuorumFacts(0, voters)
        self.failure: KafkaError | None = None
        self.epoch = 0
        self.leader_id = NO_LEADER
        self.epoch_start_offset = -1
        self.agrees_with = 0
        self.on_committed: Callable[[int], None] = lambda offset: None
        self.on_leader_changed: Callable[[int, int], None] = lambda epoch, leader_id: None
        self.on_snapshot: Callable[[SnapshotId], None] = lambda snapshot_id: None
        self.on_failed: Callable[[KafkaError], None] = lambda failure: None
        if not runtime.disk.exists(_PATH):
            runtime.disk.makedirs(_PATH)
        self.snapshots = SnapshotStore(runtime.disk, _PATH)
        start = 0 if self.snapshots.newest is None else self.snapshots.newest.end_offset
        self.log = Log.open(
            runtime,
            _PATH,
            TopicPartition(METADATA_TOPIC, 0),
            METADATA_TOPIC_ID,
            metadata_log_config(config),
            high_watermark=start,
        )

    @property
    def is_leader(self) -> bool:
        return self.leader_id == self.node_id

    @property
    def high_watermark(self) -> int:
        return self.log.high_watermark

    @property
    def log_end_offset(self) -> int:
        return self.log.log_end_offset

    def append(self, values: Sequence[bytes], now_ms: int) -> int:
        if self.failure is not None:
            raise self.failure
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        records = [(now_ms, None, value, ()) for value in values]
        batch = build_batch(records, base_offset=self.log_end_offset, leader_epoch=self.epoch)
        return self.log.append_as_follower(batch).last_offset

    def append_control(self) -> None:
        """A control batch, as the quorum writes them between those of the controller."""
        assert self.facts.voters is not None
        batch = control_batch(
            [leader_change(self.node_id, self.facts.voters.ids, ())],
            base_offset=self.log_end_offset,
            epoch=self.epoch,
            timestamp_ms=self.runtime.clock.now_ms(),
        )
        self.log.append_as_follower(batch)

    def hear(self, epoch: int, leader_id: int) -> None:
        self.epoch, self.leader_id = epoch, leader_id
        self.on_leader_changed(epoch, leader_id)

    def resign(self) -> None:
        if self.is_leader:
            self.hear(self.epoch, NO_LEADER)

    def commit(self, offset: int) -> None:
        if self.log.advance_high_watermark(offset):
            self.on_committed(offset)

    def fail(self, failure: KafkaError) -> None:
        self.failure = failure
        self.on_failed(failure)
        self.resign()

    def batches(self, offset: int | None = None) -> list[tuple[BatchMeta, bytes]]:
        """From an offset on, or all."""
        found: list[tuple[BatchMeta, bytes]] = []
        offset = self.log.log_start_offset if offset is None else offset
        while offset < self.log_end_offset:
            piece = self.log.read(offset, 1 << 20, Isolation.LOG_END).slice
            assert piece is not None
            data = bytes(piece.read())
            for batch in iter_batches(data):
                found.append((batch, data[batch.position : batch.position + batch.size]))
                offset = batch.last_offset + 1
        return found

    def install(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """A snapshot of the leader's takes the place of the log."""
        self.snapshots.write(snapshot_id, data)
        self.snapshots.written(snapshot_id)
        self.log.truncate_fully_and_start_at(snapshot_id.end_offset)
        self.log.advance_high_watermark(snapshot_id.end_offset)
        self.on_snapshot(snapshot_id)

    def new_snapshot(self, snapshot_id: SnapshotId, last_timestamp_ms: int) -> SnapshotBuilder:
        assert snapshot_id.end_offset <= self.high_watermark
        return SnapshotBuilder(snapshot_id.epoch, last_timestamp_ms, self.facts, self.runtime.clock.now_ms())

    async def save_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None:
        self.snapshots.write(snapshot_id, data)
        self.snapshots.written(snapshot_id)

    def clean_up(self, retention_bytes: int, retention_ms: int) -> None:
        """Everything is kept."""

    async def close(self) -> None:
        self.resign()
        self.log.close(clean=False)


class ScriptedQuorum:
    """`connected` are the replicas that hear of elections, get batches and learn what is committed."""

    def __init__(self, world: World, ids: Sequence[int] = (1, 2, 3)) -> None:
        voters = VoterSet(Voter(n, UUID(int=700 + n), ()) for n in ids)
        self.replicas = {n: ScriptedReplica(world.runtime(f"h{n}", f"h{n}.1"), n, voters) for n in ids}
        self.connected = list(ids)
        self.epoch = 0

    @property
    def leader(self) -> ScriptedReplica:
        """The one that those who are connected follow."""
        (leader_id,) = {self.replicas[n].leader_id for n in self.connected}
        return self.replicas[leader_id]

    def elect(self, leader_id: int) -> ScriptedReplica:
        """The epoch begins with a record. The others drop what the new leader does not have."""
        self.epoch += 1
        leader = self.replicas[leader_id]
        leader.epoch_start_offset = leader.log_end_offset
        leader.epoch = self.epoch
        leader.append_control()
        for replica in self._others(leader):
            self._truncate(replica, leader)
        for n in self.connected:
            self.replicas[n].hear(self.epoch, leader_id)
        return leader

    def replicate(self) -> None:
        """All that the leader has to those who are connected."""
        leader = self.leader
        for replica in self._others(leader):
            if replica.agrees_with != leader.epoch:
                self._truncate(replica, leader)
            for _, data in leader.batches(replica.log_end_offset):
                replica.log.append_as_follower(bytearray(data))

    def commit(self) -> None:
        """Replicate, and let everybody know that a majority has it."""
        assert 2 * len(self.connected) > len(self.replicas), "a minority commits nothing"
        self.replicate()
        leader = self.leader
        for replica in (leader, *self._others(leader)):
            replica.commit(leader.log_end_offset)

    def _others(self, leader: ScriptedReplica) -> Iterable[ScriptedReplica]:
        return [self.replicas[n] for n in self.connected if n != leader.node_id]

    @staticmethod
    def _truncate(replica: ScriptedReplica, leader: ScriptedReplica) -> None:
        """Drop what the leader of this epoch does not have: once."""
        replica.agrees_with = leader.epoch
        known = {_identity(batch) for batch, _ in leader.batches()}
        for batch, _ in replica.batches():
            if batch.base_offset >= leader.log.log_start_offset and _identity(batch) not in known:
                assert batch.base_offset >= replica.high_watermark, "what is committed is never truncated"
                replica.log.truncate_to(batch.base_offset)
                return


def _identity(batch: BatchMeta) -> tuple[int, int, int]:
    return batch.base_offset, batch.partition_leader_epoch, batch.crc
