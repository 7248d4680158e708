"""Made by tools/stubs from definitions/alter_share_group_offsets.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class AlterShareGroupOffsetsResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    responses: Sequence[AlterShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: Sequence[AlterShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponseTopic(Message):
    topic_name: str
    topic_id: UUID
    partitions: Sequence[AlterShareGroupOffsetsResponsePartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        partitions: Sequence[AlterShareGroupOffsetsResponsePartition] = ...,
    ) -> None: ...

class AlterShareGroupOffsetsResponsePartition(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
