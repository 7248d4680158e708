"""Made by tools/stubs from definitions/delete_records.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteRecordsResponse(Message):
    throttle_time: int
    topics: Sequence[DeleteRecordsTopicResult]
    def __init__(
        self, *, throttle_time: int = ..., topics: Sequence[DeleteRecordsTopicResult] = ...
    ) -> None: ...

class DeleteRecordsTopicResult(Message):
    name: str
    partitions: Sequence[DeleteRecordsPartitionResult]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[DeleteRecordsPartitionResult] = ...
    ) -> None: ...

class DeleteRecordsPartitionResult(Message):
    partition_index: int
    low_watermark: int
    error_code: int
    def __init__(
        self, *, partition_index: int = ..., low_watermark: int = ..., error_code: int = ...
    ) -> None: ...
