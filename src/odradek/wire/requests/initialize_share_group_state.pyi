"""Made by tools/stubs from definitions/initialize_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class InitializeShareGroupStateRequest(Message):
    group_id: str
    topics: Sequence[InitializeStateData]
    def __init__(self, *, group_id: str = ..., topics: Sequence[InitializeStateData] = ...) -> None: ...

class InitializeStateData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition: int
    state_epoch: int
    start_offset: int
    def __init__(self, *, partition: int = ..., state_epoch: int = ..., start_offset: int = ...) -> None: ...
