"""Made by tools/stubs from definitions/alter_partition.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class AlterPartitionResponse(Message):
    throttle_time: int
    error_code: int
    topics: Sequence[TopicData]
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., topics: Sequence[TopicData] = ...
    ) -> None: ...

class TopicData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    isr: Sequence[int]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        isr: Sequence[int] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...
