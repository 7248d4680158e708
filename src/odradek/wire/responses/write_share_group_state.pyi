"""Made by tools/stubs from definitions/write_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class WriteShareGroupStateResponse(Message):
    results: Sequence[WriteStateResult]
    def __init__(self, *, results: Sequence[WriteStateResult] = ...) -> None: ...

class WriteStateResult(Message):
    topic_id: UUID
    partitions: Sequence[PartitionResult]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionResult] = ...) -> None: ...

class PartitionResult(Message):
    partition: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, partition: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
