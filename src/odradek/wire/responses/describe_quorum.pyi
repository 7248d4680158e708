"""Made by tools/stubs from definitions/describe_quorum.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DescribeQuorumResponse(Message):
    error_code: int
    error_message: str | None
    topics: Sequence[TopicData]
    nodes: Sequence[Node]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: Sequence[TopicData] = ...,
        nodes: Sequence[Node] = ...,
    ) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    leader_id: int
    leader_epoch: int
    high_watermark: int
    current_voters: Sequence[ReplicaState]
    observers: Sequence[ReplicaState]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        high_watermark: int = ...,
        current_voters: Sequence[ReplicaState] = ...,
        observers: Sequence[ReplicaState] = ...,
    ) -> None: ...

class ReplicaState(Message):
    replica_id: int
    replica_directory_id: UUID
    log_end_offset: int
    last_fetch_timestamp: int
    last_caught_up_timestamp: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        replica_directory_id: UUID = ...,
        log_end_offset: int = ...,
        last_fetch_timestamp: int = ...,
        last_caught_up_timestamp: int = ...,
    ) -> None: ...

class Node(Message):
    node_id: int
    listeners: Sequence[Listener]
    def __init__(self, *, node_id: int = ..., listeners: Sequence[Listener] = ...) -> None: ...

class Listener(Message):
    name: str
    host: str
    port: int
    def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
