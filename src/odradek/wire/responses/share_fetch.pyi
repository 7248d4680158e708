"""Made by tools/stubs from definitions/share_fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.core.types import Buffer
from odradek.wire.classes import Message

class ShareFetchResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout: int
    responses: Sequence[ShareFetchableTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout: int = ...,
        responses: Sequence[ShareFetchableTopicResponse] = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class ShareFetchableTopicResponse(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    acknowledge_error_code: int
    acknowledge_error_message: str | None
    current_leader: LeaderIdAndEpoch
    records: Buffer
    acquired_records: Sequence[AcquiredRecords]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acknowledge_error_code: int = ...,
        acknowledge_error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
        records: Buffer = ...,
        acquired_records: Sequence[AcquiredRecords] = ...,
    ) -> None: ...

class LeaderIdAndEpoch(Message):
    leader_id: int
    leader_epoch: int
    def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...

class AcquiredRecords(Message):
    first_offset: int
    last_offset: int
    delivery_count: int
    def __init__(
        self, *, first_offset: int = ..., last_offset: int = ..., delivery_count: int = ...
    ) -> None: ...

class NodeEndpoint(Message):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...
    ) -> None: ...
