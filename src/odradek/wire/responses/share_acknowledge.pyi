"""Made by tools/stubs from definitions/share_acknowledge.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ShareAcknowledgeResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    acquisition_lock_timeout: int
    responses: Sequence[ShareAcknowledgeTopicResponse]
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        acquisition_lock_timeout: int = ...,
        responses: Sequence[ShareAcknowledgeTopicResponse] = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class ShareAcknowledgeTopicResponse(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    current_leader: LeaderIdAndEpoch
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
    ) -> None: ...

class LeaderIdAndEpoch(Message):
    leader_id: int
    leader_epoch: int
    def __init__(self, *, leader_id: int = ..., leader_epoch: int = ...) -> None: ...

class NodeEndpoint(Message):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...
    ) -> None: ...
