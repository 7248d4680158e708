"""Made by tools/stubs from definitions/fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.core.types import Buffer
from odradek.wire.classes import Message

class FetchResponse(Message):
    throttle_time: int
    error_code: int
    session_id: int
    responses: Sequence[FetchableTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        session_id: int = ...,
        responses: Sequence[FetchableTopicResponse] = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class FetchableTopicResponse(Message):
    topic: str
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(
        self, *, topic: str = ..., topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...
    ) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    high_watermark: int
    last_stable_offset: int
    log_start_offset: int
    diverging_epoch: EpochEndOffset
    current_leader: LeaderIdAndEpoch
    snapshot_id: SnapshotId
    aborted_transactions: Sequence[AbortedTransaction] | None
    preferred_read_replica: int
    records: Buffer | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        high_watermark: int = ...,
        last_stable_offset: int = ...,
        log_start_offset: int = ...,
        diverging_epoch: EpochEndOffset = ...,
        current_leader: LeaderIdAndEpoch = ...,
        snapshot_id: SnapshotId = ...,
        aborted_transactions: Sequence[AbortedTransaction] | None = ...,
        preferred_read_replica: int = ...,
        records: Buffer | None = ...,
    ) -> None: ...

class EpochEndOffset(Message):
    epoch: int
    end_offset: int
    def __init__(self, *, epoch: int = ..., end_offset: int = ...) -> None: ...

class LeaderIdAndEpoch(Message):
    leader_id: int
    leader_epoch: int
    def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...

class SnapshotId(Message):
    end_offset: int
    epoch: int
    def __init__(self, *, end_offset: int = ..., epoch: int = ...) -> None: ...

class AbortedTransaction(Message):
    producer_id: int
    first_offset: int
    def __init__(self, *, producer_id: int = ..., first_offset: int = ...) -> None: ...

class NodeEndpoint(Message):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...
    ) -> None: ...
