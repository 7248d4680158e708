"""Made by tools/stubs from definitions/offset_commit.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class OffsetCommitRequest(Message):
    group_id: str
    generation_id_or_member_epoch: int
    member_id: str
    retention_time: int
    group_instance_id: str | None
    topics: Sequence[OffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id_or_member_epoch: int = ...,
        member_id: str = ...,
        retention_time: int = ...,
        group_instance_id: str | None = ...,
        topics: Sequence[OffsetCommitRequestTopic] = ...,
    ) -> None: ...

class OffsetCommitRequestTopic(Message):
    name: str
    topic_id: UUID
    partitions: Sequence[OffsetCommitRequestPartition]
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        partitions: Sequence[OffsetCommitRequestPartition] = ...,
    ) -> None: ...

class OffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        committed_metadata: str | None = ...,
    ) -> None: ...
