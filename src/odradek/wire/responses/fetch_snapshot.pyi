"""Made by tools/stubs from definitions/fetch_snapshot.py."""

from collections.abc import Sequence

from odradek.core.types import Buffer
from odradek.wire.classes import Message

class FetchSnapshotResponse(Message):
    throttle_time: int
    error_code: int
    topics: Sequence[TopicSnapshot]
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        topics: Sequence[TopicSnapshot] = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class TopicSnapshot(Message):
    name: str
    partitions: Sequence[PartitionSnapshot]
    def __init__(self, *, name: str = ..., partitions: Sequence[PartitionSnapshot] = ...) -> None: ...

class PartitionSnapshot(Message):
    index: int
    error_code: int
    snapshot_id: SnapshotId
    current_leader: LeaderIdAndEpoch
    size: int
    position: int
    unaligned_records: Buffer
    def __init__(
        self,
        *,
        index: int = ...,
        error_code: int = ...,
        snapshot_id: SnapshotId = ...,
        current_leader: LeaderIdAndEpoch = ...,
        size: int = ...,
        position: int = ...,
        unaligned_records: Buffer = ...,
    ) -> None: ...

class SnapshotId(Message):
    end_offset: int
    epoch: int
    def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...

class LeaderIdAndEpoch(Message):
    leader_id: int
    leader_epoch: int
    def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...

class NodeEndpoint(Message):
    node_id: int
    host: str
    port: int
    def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
