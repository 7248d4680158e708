"""Made by tools/stubs from definitions/delete_share_group_state.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DeleteShareGroupStateRequest(Message):
    group_id: str
    topics: Sequence[DeleteStateData]
    def __init__(self, *, group_id: str = ..., topics: Sequence[DeleteStateData] = ...) -> None: ...

class DeleteStateData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition: int
    def __init__(self, *, partition: int = ...) -> None: ...
