"""Made by tools/stubs from definitions/fetch_snapshot.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class FetchSnapshotRequest(Message):
    cluster_id: str | None
    replica_id: int
    max_bytes: int
    topics: Sequence[TopicSnapshot]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        max_bytes: int = ...,
        topics: Sequence[TopicSnapshot] = ...,
    ) -> None: ...

class TopicSnapshot(Message):
    name: str
    partitions: Sequence[PartitionSnapshot]
    def __init__(self, *, name: str = ..., partitions: Sequence[PartitionSnapshot] = ...) -> None: ...

class PartitionSnapshot(Message):
    partition: int
    current_leader_epoch: int
    snapshot_id: SnapshotId
    position: int
    replica_directory_id: UUID
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        snapshot_id: SnapshotId = ...,
        position: int = ...,
        replica_directory_id: UUID = ...,
    ) -> None: ...

class SnapshotId(Message):
    end_offset: int
    epoch: int
    def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...
