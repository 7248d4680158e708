"""Made by tools/stubs from definitions/read_share_group_state_summary.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ReadShareGroupStateSummaryResponse(Message):
    results: Sequence[ReadStateSummaryResult]
    def __init__(self, *, results: Sequence[ReadStateSummaryResult] = ...) -> None: ...

class ReadStateSummaryResult(Message):
    topic_id: UUID
    partitions: Sequence[PartitionResult]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionResult] = ...) -> None: ...

class PartitionResult(Message):
    partition: int
    error_code: int
    error_message: str | None
    state_epoch: int
    leader_epoch: int
    start_offset: int
    delivery_complete_count: int
    def __init__(
        self,
        *,
        partition: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        state_epoch: int = ...,
        leader_epoch: int = ...,
        start_offset: int = ...,
        delivery_complete_count: int = ...,
    ) -> None: ...
