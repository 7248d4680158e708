"""Made by tools/stubs from definitions/write_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class WriteShareGroupStateRequest(Message):
    group_id: str
    topics: Sequence[WriteStateData]
    def __init__(self, *, group_id: str = ..., topics: Sequence[WriteStateData] = ...) -> None: ...

class WriteStateData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition: int
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    state_batches: Sequence[StateBatch]
    def __init__(
        self,
        *,
        partition: int = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
        state_batches: Sequence[StateBatch] = ...,
    ) -> None: ...

class StateBatch(Message):
    first_offset: int
    last_offset: int
    delivery_state: int
    delivery_count: int
    def __init__(
        self,
        *,
        first_offset: int = ...,
        last_offset: int = ...,
        delivery_state: int = ...,
        delivery_count: int = ...,
    ) -> None: ...
