"""Made by tools/stubs from definitions/offset_commit.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class OffsetCommitResponse(Message):
    throttle_time: int
    topics: Sequence[OffsetCommitResponseTopic]
    def __init__(
        self, *, throttle_time: int = ..., topics: Sequence[OffsetCommitResponseTopic] = ...
    ) -> None: ...

class OffsetCommitResponseTopic(Message):
    name: str
    topic_id: UUID
    partitions: Sequence[OffsetCommitResponsePartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: Sequence[OffsetCommitResponsePartition] = ...,
    ) -> None: ...

class OffsetCommitResponsePartition(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
