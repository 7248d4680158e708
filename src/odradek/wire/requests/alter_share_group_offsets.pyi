"""Made by tools/stubs from definitions/alter_share_group_offsets.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterShareGroupOffsetsRequest(Message):
    group_id: str
    topics: Sequence[AlterShareGroupOffsetsRequestTopic]
    def __init__(
        self, *, group_id: str = ..., topics: Sequence[AlterShareGroupOffsetsRequestTopic] = ...
    ) -> None: ...

class AlterShareGroupOffsetsRequestTopic(Message):
    topic_name: str
    partitions: Sequence[AlterShareGroupOffsetsRequestPartition]
    def __init__(
        self, *, topic_name: str = ..., partitions: Sequence[AlterShareGroupOffsetsRequestPartition] = ...
    ) -> None: ...

class AlterShareGroupOffsetsRequestPartition(Message):
    partition_index: int
    start_offset: int
    def __init__(self, *, partition_index: int = ..., start_offset: int = ...) -> None: ...
