"""Made by tools/stubs from definitions/offset_fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class OffsetFetchResponse(Message):
    throttle_time: int
    topics: Sequence[OffsetFetchResponseTopic]
    error_code: int
    groups: Sequence[OffsetFetchResponseGroup]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        topics: Sequence[OffsetFetchResponseTopic] = ...,
        error_code: int = ...,
        groups: Sequence[OffsetFetchResponseGroup] = ...,
    ) -> None: ...

class OffsetFetchResponseTopic(Message):
    name: str
    partitions: Sequence[OffsetFetchResponsePartition]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[OffsetFetchResponsePartition] = ...
    ) -> None: ...

class OffsetFetchResponsePartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...

class OffsetFetchResponseGroup(Message):
    group_id: str
    topics: Sequence[OffsetFetchResponseTopics]
    error_code: int
    def __init__(
        self, *, group_id: str = ..., topics: Sequence[OffsetFetchResponseTopics] = ..., error_code: int = ...
    ) -> None: ...

class OffsetFetchResponseTopics(Message):
    name: str
    topic_id: UUID
    partitions: Sequence[OffsetFetchResponsePartitions]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: Sequence[OffsetFetchResponsePartitions] = ...,
    ) -> None: ...

class OffsetFetchResponsePartitions(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    metadata: str | None
    error_code: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        metadata: str | None = ...,
        error_code: int = ...,
    ) -> None: ...
