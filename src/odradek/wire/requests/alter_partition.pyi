"""Made by tools/stubs from definitions/alter_partition.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class AlterPartitionRequest(Message):
    broker_id: int
    broker_epoch: int
    topics: Sequence[TopicData]
    def __init__(
        self, *, broker_id: int = ..., broker_epoch: int = ..., topics: Sequence[TopicData] = ...
    ) -> None: ...

class TopicData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    leader_epoch: int
    new_isr: Sequence[int]
    new_isr_with_epochs: Sequence[BrokerState]
    leader_recovery_state: int
    partition_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        leader_epoch: int = ...,
        new_isr: Sequence[int] = ...,
        new_isr_with_epochs: Sequence[BrokerState] = ...,
        leader_recovery_state: int = ...,
        partition_epoch: int = ...,
    ) -> None: ...

class BrokerState(Message):
    broker_id: int
    broker_epoch: int
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ...) -> None: ...
