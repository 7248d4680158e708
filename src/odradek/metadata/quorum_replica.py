"""What a node needs of the quorum's replica: the log, how far it is committed, who leads. No logic.

`raft/driver.py` is the one that runs; tests script others.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

from odradek.core.errors import KafkaError
from odradek.log.log import Log
from odradek.raft.control import QuorumFacts
from odradek.raft.snapshot_store import SnapshotStore
from odradek.raft.snapshots import SnapshotBuilder, SnapshotId


class QuorumReplica(Protocol):
    """Callbacks come from the event loop, in this order where one step causes several: `on_failed`,
    `on_leader_changed`, `on_snapshot`, `on_committed`."""

    node_id: int
    log: Log
    snapshots: SnapshotStore
    failure: KafkaError | None
    on_committed: Callable[[int], None]
    """The high watermark moved up to an offset."""
    on_leader_changed: Callable[[int, int], None]
    """Epoch and leader are these now. Also when this replica begins or ceases to lead."""
    on_snapshot: Callable[[SnapshotId], None]
    """A fetched snapshot took the place of the log up to its end."""
    on_failed: Callable[[KafkaError], None]
    """The disk failed: nothing more is appended here."""

    @property
    def facts(self) -> QuorumFacts: ...
    @property
    def epoch(self) -> int: ...
    @property
    def leader_id(self) -> int: ...
    @property
    def is_leader(self) -> bool: ...
    @property
    def epoch_start_offset(self) -> int:
        """Where the epoch begins that this replica leads."""
        ...

    @property
    def high_watermark(self) -> int: ...
    @property
    def log_end_offset(self) -> int: ...
    def append(self, values: Sequence[bytes], now_ms: int) -> int:
        """Append one batch and give its last offset. NOT_CONTROLLER where this replica does not lead."""
        ...

    def resign(self) -> None:
        """Cease to lead; another replica may."""
        ...

    def new_snapshot(self, snapshot_id: SnapshotId, last_timestamp_ms: int) -> SnapshotBuilder: ...
    async def save_snapshot(self, snapshot_id: SnapshotId, data: bytes) -> None: ...
    def clean_up(self, retention_bytes: int, retention_ms: int) -> None: ...
