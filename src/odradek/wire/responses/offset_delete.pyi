"""Made by tools/stubs from definitions/offset_delete.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class OffsetDeleteResponse(Message):
    error_code: int
    throttle_time: int
    topics: Sequence[OffsetDeleteResponseTopic]
    def __init__(
        self,
        *,
        error_code: int = ...,
        throttle_time: int = ...,
        topics: Sequence[OffsetDeleteResponseTopic] = ...,
    ) -> None: ...

class OffsetDeleteResponseTopic(Message):
    name: str
    partitions: Sequence[OffsetDeleteResponsePartition]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[OffsetDeleteResponsePartition] = ...
    ) -> None: ...

class OffsetDeleteResponsePartition(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
