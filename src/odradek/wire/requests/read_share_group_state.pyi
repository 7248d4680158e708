"""Made by tools/stubs from definitions/read_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ReadShareGroupStateRequest(Message):
    group_id: str
    topics: Sequence[ReadStateData]
    def __init__(self, *, group_id: str = ..., topics: Sequence[ReadStateData] = ...) -> None: ...

class ReadStateData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition: int
    leader_epoch: int
    def __init__(self, *, partition: int = ..., leader_epoch: int = ...) -> None: ...
