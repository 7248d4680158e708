"""Made by tools/stubs from definitions/read_share_group_state_summary.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ReadShareGroupStateSummaryRequest(Message):
    group_id: str
    topics: Sequence[ReadStateSummaryData]
    def __init__(self, *, group_id: str = ..., topics: Sequence[ReadStateSummaryData] = ...) -> None: ...

class ReadStateSummaryData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition: int
    leader_epoch: int
    def __init__(self, *, partition: int = ..., leader_epoch: int = ...) -> None: ...
