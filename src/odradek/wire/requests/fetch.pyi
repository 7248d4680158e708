"""Made by tools/stubs from definitions/fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class FetchRequest(Message):
    cluster_id: str | None
    replica_id: int
    replica_state: ReplicaState
    max_wait: int
    min_bytes: int
    max_bytes: int
    isolation_level: int
    session_id: int
    session_epoch: int
    topics: Sequence[FetchTopic]
    forgotten_topics_data: Sequence[ForgottenTopic]
    rack_id: str
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        replica_id: int = ...,
        replica_state: ReplicaState = ...,
        max_wait: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        isolation_level: int = ...,
        session_id: int = ...,
        session_epoch: int = ...,
        topics: Sequence[FetchTopic] = ...,
        forgotten_topics_data: Sequence[ForgottenTopic] = ...,
        rack_id: str = ...,
    ) -> None: ...

class ReplicaState(Message):
    replica_id: int
    replica_epoch: int
    def __init__(self, *, replica_id: int = ..., replica_epoch: int = ...) -> None: ...

class FetchTopic(Message):
    topic: str
    topic_id: UUID
    partitions: Sequence[FetchPartition]
    def __init__(
        self, *, topic: str = ..., topic_id: UUID = ..., partitions: Sequence[FetchPartition] = ...
    ) -> None: ...

class FetchPartition(Message):
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    partition_max_bytes: int
    replica_directory_id: UUID
    high_watermark: int
    def __init__(
        self,
        *,
        partition: int = ...,
        current_leader_epoch: int = ...,
        fetch_offset: int = ...,
        last_fetched_epoch: int = ...,
        log_start_offset: int = ...,
        partition_max_bytes: int = ...,
        replica_directory_id: UUID = ...,
        high_watermark: int = ...,
    ) -> None: ...

class ForgottenTopic(Message):
    topic: str
    topic_id: UUID
    partitions: Sequence[int]
    def __init__(
        self, *, topic: str = ..., topic_id: UUID = ..., partitions: Sequence[int] = ...
    ) -> None: ...
