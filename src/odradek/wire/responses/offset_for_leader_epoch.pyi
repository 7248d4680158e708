"""Made by tools/stubs from definitions/offset_for_leader_epoch.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class OffsetForLeaderEpochResponse(Message):
    throttle_time: int
    topics: Sequence[OffsetForLeaderTopicResult]
    def __init__(
        self, *, throttle_time: int = ..., topics: Sequence[OffsetForLeaderTopicResult] = ...
    ) -> None: ...

class OffsetForLeaderTopicResult(Message):
    topic: str
    partitions: Sequence[EpochEndOffset]
    def __init__(self, *, topic: str = ..., partitions: Sequence[EpochEndOffset] = ...) -> None: ...

class EpochEndOffset(Message):
    error_code: int
    partition: int
    leader_epoch: int
    end_offset: int
    def __init__(
        self, *, error_code: int = ..., partition: int = ..., leader_epoch: int = ..., end_offset: int = ...
    ) -> None: ...
