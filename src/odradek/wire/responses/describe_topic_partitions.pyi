"""Made by tools/stubs from definitions/describe_topic_partitions.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DescribeTopicPartitionsResponse(Message):
    throttle_time: int
    topics: Sequence[DescribeTopicPartitionsResponseTopic]
    next_cursor: Cursor | None
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        topics: Sequence[DescribeTopicPartitionsResponseTopic] = ...,
        next_cursor: Cursor | None = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponseTopic(Message):
    error_code: int
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: Sequence[DescribeTopicPartitionsResponsePartition]
    topic_authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        name: str | None = ...,
        topic_id: UUID = ...,
        is_internal: bool = ...,
        partitions: Sequence[DescribeTopicPartitionsResponsePartition] = ...,
        topic_authorized_operations: int = ...,
    ) -> None: ...

class DescribeTopicPartitionsResponsePartition(Message):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
    eligible_leader_replicas: Sequence[int] | None
    last_known_elr: Sequence[int] | None
    offline_replicas: Sequence[int]
    def __init__(
        self,
        *,
        error_code: int = ...,
        partition_index: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        replica_nodes: Sequence[int] = ...,
        isr_nodes: Sequence[int] = ...,
        eligible_leader_replicas: Sequence[int] | None = ...,
        last_known_elr: Sequence[int] | None = ...,
        offline_replicas: Sequence[int] = ...,
    ) -> None: ...

class Cursor(Message):
    topic_name: str
    partition_index: int
    def __init__(self, *, topic_name: str = ..., partition_index: int = ...) -> None: ...
