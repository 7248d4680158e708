"""The snapshots of a replica: written here, fetched from the leader, read by others, and removed when old."""

from functools import partial
from typing import Final

from odradek.core.types import Buffer
from odradek.log.log import Log
from odradek.raft.incoming import IncomingSnapshot
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import Snapshot, SnapshotBuilder, SnapshotId, read_snapshot
from odradek.raft.voter_history import VoterHistory
from odradek.runtime.api import Runtime

MAX_PIECE_BYTES: Final = 8 << 20


class ReplicaSnapshots:
    """What the driver does with snapshots. The machine hears of it from the driver."""

    def __init__(self, runtime: Runtime, log: Log, store: SnapshotStore, history: VoterHistory) -> None:
        self._runtime = runtime
        self._log = log
        self._store = store
        self._history = history
        self._incoming: IncomingSnapshot | None = None

    # --- written here ---------------------------------------------------------------------------------

    def new(self, snapshot_id: SnapshotId, last_timestamp_ms: int) -> SnapshotBuilder:
        assert snapshot_id.end_offset <= self._log.high_watermark, "a snapshot holds what is committed"
        facts = self._history.at(snapshot_id.end_offset)
        return SnapshotBuilder(snapshot_id.epoch, last_timestamp_ms, facts, self._runtime.clock.now_ms())

    async def save(self, snapshot_id: SnapshotId, data: bytes) -> None:
        """Write a snapshot away from the loop. Raises OSError: the log is whole without it."""
        await self._runtime.offload(partial(self._store.write, snapshot_id, data))
        self._store.written(snapshot_id)

    def clean_up(self, retention_bytes: int, retention_ms: int) -> int:
        """Drop the oldest snapshots, and the log before the next one, beyond what is to be kept.

        Gives the offset at which the log begins then. A limit below 0 is none.
        """
        now_ms, store = self._runtime.clock.now_ms(), self._store
        while len(store.ids) > 1:
            oldest, following = store.ids[:2]
            size = self._log.size_bytes + sum(store.size_bytes(i) for i in store.ids)
            age_ms = now_ms - read_snapshot(store.read(oldest), lambda data, batch: None).last_timestamp_ms
            is_too_much = 0 <= retention_bytes < size
            is_too_old = 0 <= retention_ms < age_ms
            if not (is_too_much or is_too_old):
                break
            self._log.increment_log_start_offset(following.end_offset)
            store.remove(oldest)
        self._log.retain(now_ms)
        self._log.purge_deleted(self._runtime.clock.steady_ms())
        return self._log.log_start_offset

    # --- fetched from the leader ----------------------------------------------------------------------

    def begin_incoming(self, snapshot_id: SnapshotId) -> None:
        self._incoming = IncomingSnapshot(snapshot_id)

    def drop_incoming(self) -> None:
        self._incoming = None

    def add_incoming(self, snapshot_id: SnapshotId, position: int, data: Buffer) -> None:
        if self._incoming is not None:
            self._incoming.add(snapshot_id, position, data)

    async def finish_incoming(self, snapshot_id: SnapshotId) -> Snapshot:
        """The snapshot is durable when this returns. Raises SnapshotError, OSError."""
        incoming, self._incoming = self._incoming, None
        assert incoming is not None and incoming.snapshot_id == snapshot_id, "another snapshot is on its way"
        data, snapshot = incoming.finish()
        await self.save(snapshot_id, data)
        return snapshot

    # --- read by others -------------------------------------------------------------------------------

    async def read_piece(self, snapshot_id: SnapshotId, position: int, max_bytes: int) -> tuple[int, bytes]:
        """The size of the snapshot, and some of its bytes. FileNotFoundError where it is gone."""
        if snapshot_id not in self._store.ids:
            raise FileNotFoundError(snapshot_id.file_name)
        data = await self._runtime.offload(partial(self._store.read, snapshot_id))
        return len(data), data[position : position + min(max_bytes, MAX_PIECE_BYTES)]
