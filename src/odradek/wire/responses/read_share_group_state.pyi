"""Made by tools/stubs from definitions/read_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ReadShareGroupStateResponse(Message):
    results: Sequence[ReadStateResult]
    def __init__(self, *, results: Sequence[ReadStateResult] = ...) -> None: ...

class ReadStateResult(Message):
    topic_id: UUID
    partitions: Sequence[PartitionResult]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionResult] = ...) -> None: ...

class PartitionResult(Message):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    start_offset: int
    state_batches: Sequence[StateBatch]
    def __init__(
        self,
        *,
        partition: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        state_epoch: int = ...,
        start_offset: int = ...,
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
