"""Made by tools/stubs from definitions/alter_partition_reassignments.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterPartitionReassignmentsResponse(Message):
    throttle_time: int
    allow_replication_factor_change: bool
    error_code: int
    error_message: str | None
    responses: Sequence[ReassignableTopicResponse]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        allow_replication_factor_change: bool = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: Sequence[ReassignableTopicResponse] = ...,
    ) -> None: ...

class ReassignableTopicResponse(Message):
    name: str
    partitions: Sequence[ReassignablePartitionResponse]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[ReassignablePartitionResponse] = ...
    ) -> None: ...

class ReassignablePartitionResponse(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, partition_index: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
