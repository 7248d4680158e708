"""Made by tools/stubs from definitions/produce.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ProduceResponse(Message):
    responses: Sequence[TopicProduceResponse]
    throttle_time: int
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        responses: Sequence[TopicProduceResponse] = ...,
        throttle_time: int = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class TopicProduceResponse(Message):
    name: str
    topic_id: UUID
    partition_responses: Sequence[PartitionProduceResponse]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partition_responses: Sequence[PartitionProduceResponse] = ...,
    ) -> None: ...

class PartitionProduceResponse(Message):
    index: int
    error_code: int
    base_offset: int
    log_append_time: int
    log_start_offset: int
    record_errors: Sequence[BatchIndexAndErrorMessage]
    error_message: str | None
    current_leader: LeaderIdAndEpoch
    def __init__(
        self,
        *,
        index: int = ...,
        error_code: int = ...,
        base_offset: int = ...,
        log_append_time: int = ...,
        log_start_offset: int = ...,
        record_errors: Sequence[BatchIndexAndErrorMessage] = ...,
        error_message: str | None = ...,
        current_leader: LeaderIdAndEpoch = ...,
    ) -> None: ...

class BatchIndexAndErrorMessage(Message):
    batch_index: int
    batch_index_error_message: str | None
    def __init__(self, *, batch_index: int = ..., batch_index_error_message: str | None = ...) -> None: ...

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
