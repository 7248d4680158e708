"""Made by tools/stubs from definitions/offset_delete.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class OffsetDeleteRequest(Message):
    group_id: str
    topics: Sequence[OffsetDeleteRequestTopic]
    def __init__(self, *, group_id: str = ..., topics: Sequence[OffsetDeleteRequestTopic] = ...) -> None: ...

class OffsetDeleteRequestTopic(Message):
    name: str
    partitions: Sequence[OffsetDeleteRequestPartition]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[OffsetDeleteRequestPartition] = ...
    ) -> None: ...

class OffsetDeleteRequestPartition(Message):
    partition_index: int
    def __init__(self, *, partition_index: int = ...) -> None: ...
