"""Made by tools/stubs from definitions/list_offsets.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListOffsetsRequest(Message):
    replica_id: int
    isolation_level: int
    topics: Sequence[ListOffsetsTopic]
    timeout: int
    def __init__(
        self,
        *,
        replica_id: int = ...,
        isolation_level: int = ...,
        topics: Sequence[ListOffsetsTopic] = ...,
        timeout: int = ...,
    ) -> None: ...

class ListOffsetsTopic(Message):
    name: str
    partitions: Sequence[ListOffsetsPartition]
    def __init__(self, *, name: str = ..., partitions: Sequence[ListOffsetsPartition] = ...) -> None: ...

class ListOffsetsPartition(Message):
    partition_index: int
    current_leader_epoch: int
    timestamp: int
    def __init__(
        self, *, partition_index: int = ..., current_leader_epoch: int = ..., timestamp: int = ...
    ) -> None: ...
