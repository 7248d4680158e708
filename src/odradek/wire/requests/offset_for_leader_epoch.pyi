"""Made by tools/stubs from definitions/offset_for_leader_epoch.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class OffsetForLeaderEpochRequest(Message):
    replica_id: int
    topics: Sequence[OffsetForLeaderTopic]
    def __init__(self, *, replica_id: int = ..., topics: Sequence[OffsetForLeaderTopic] = ...) -> None: ...

class OffsetForLeaderTopic(Message):
    topic: str
    partitions: Sequence[OffsetForLeaderPartition]
    def __init__(self, *, topic: str = ..., partitions: Sequence[OffsetForLeaderPartition] = ...) -> None: ...

class OffsetForLeaderPartition(Message):
    partition: int
    current_leader_epoch: int
    leader_epoch: int
    def __init__(
        self, *, partition: int = ..., current_leader_epoch: int = ..., leader_epoch: int = ...
    ) -> None: ...
