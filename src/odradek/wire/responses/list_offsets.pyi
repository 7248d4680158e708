"""Made by tools/stubs from definitions/list_offsets.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListOffsetsResponse(Message):
    throttle_time: int
    topics: Sequence[ListOffsetsTopicResponse]
    def __init__(
        self, *, throttle_time: int = ..., topics: Sequence[ListOffsetsTopicResponse] = ...
    ) -> None: ...

class ListOffsetsTopicResponse(Message):
    name: str
    partitions: Sequence[ListOffsetsPartitionResponse]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[ListOffsetsPartitionResponse] = ...
    ) -> None: ...

class ListOffsetsPartitionResponse(Message):
    partition_index: int
    error_code: int
    timestamp: int
    offset: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        timestamp: int = ...,
        offset: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...
