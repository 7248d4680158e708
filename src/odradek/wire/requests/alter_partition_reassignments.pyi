"""Made by tools/stubs from definitions/alter_partition_reassignments.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterPartitionReassignmentsRequest(Message):
    timeout: int
    allow_replication_factor_change: bool
    topics: Sequence[ReassignableTopic]
    def __init__(
        self,
        *,
        timeout: int = ...,
        allow_replication_factor_change: bool = ...,
        topics: Sequence[ReassignableTopic] = ...,
    ) -> None: ...

class ReassignableTopic(Message):
    name: str
    partitions: Sequence[ReassignablePartition]
    def __init__(self, *, name: str = ..., partitions: Sequence[ReassignablePartition] = ...) -> None: ...

class ReassignablePartition(Message):
    partition_index: int
    replicas: Sequence[int] | None
    def __init__(self, *, partition_index: int = ..., replicas: Sequence[int] | None = ...) -> None: ...
