"""Made by tools/stubs from definitions/list_partition_reassignments.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListPartitionReassignmentsRequest(Message):
    timeout: int
    topics: Sequence[ListPartitionReassignmentsTopics] | None
    def __init__(
        self, *, timeout: int = ..., topics: Sequence[ListPartitionReassignmentsTopics] | None = ...
    ) -> None: ...

class ListPartitionReassignmentsTopics(Message):
    name: str
    partition_indexes: Sequence[int]
    def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...
