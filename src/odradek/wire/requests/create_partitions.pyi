"""Made by tools/stubs from definitions/create_partitions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreatePartitionsRequest(Message):
    topics: Sequence[CreatePartitionsTopic]
    timeout: int
    validate_only: bool
    def __init__(
        self, *, topics: Sequence[CreatePartitionsTopic] = ..., timeout: int = ..., validate_only: bool = ...
    ) -> None: ...

class CreatePartitionsTopic(Message):
    name: str
    count: int
    assignments: Sequence[CreatePartitionsAssignment] | None
    def __init__(
        self,
        *,
        name: str = ...,
        count: int = ...,
        assignments: Sequence[CreatePartitionsAssignment] | None = ...,
    ) -> None: ...

class CreatePartitionsAssignment(Message):
    broker_ids: Sequence[int]
    def __init__(self, *, broker_ids: Sequence[int] = ...) -> None: ...
