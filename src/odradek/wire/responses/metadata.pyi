"""Made by tools/stubs from definitions/metadata.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class MetadataResponse(Message):
    throttle_time: int
    brokers: Sequence[MetadataResponseBroker]
    cluster_id: str | None
    controller_id: int
    topics: Sequence[MetadataResponseTopic]
    cluster_authorized_operations: int
    error_code: int
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        brokers: Sequence[MetadataResponseBroker] = ...,
        cluster_id: str | None = ...,
        controller_id: int = ...,
        topics: Sequence[MetadataResponseTopic] = ...,
        cluster_authorized_operations: int = ...,
        error_code: int = ...,
    ) -> None: ...

class MetadataResponseBroker(Message):
    node_id: int
    host: str
    port: int
    rack: str | None
    def __init__(
        self, *, node_id: int = ..., host: str = ..., port: int = ..., rack: str | None = ...
    ) -> None: ...

class MetadataResponseTopic(Message):
    error_code: int
    name: str | None
    topic_id: UUID
    is_internal: bool
    partitions: Sequence[MetadataResponsePartition]
    topic_authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        name: str | None = ...,
        topic_id: UUID = ...,
        is_internal: bool = ...,
        partitions: Sequence[MetadataResponsePartition] = ...,
        topic_authorized_operations: int = ...,
    ) -> None: ...

class MetadataResponsePartition(Message):
    error_code: int
    partition_index: int
    leader_id: int
    leader_epoch: int
    replica_nodes: Sequence[int]
    isr_nodes: Sequence[int]
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
        offline_replicas: Sequence[int] = ...,
    ) -> None: ...
