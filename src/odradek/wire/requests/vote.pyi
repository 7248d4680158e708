"""Made by tools/stubs from definitions/vote.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class VoteRequest(Message):
    cluster_id: str | None
    voter_id: int
    topics: Sequence[TopicData]
    def __init__(
        self, *, cluster_id: str | None = ..., voter_id: int = ..., topics: Sequence[TopicData] = ...
    ) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    replica_epoch: int
    replica_id: int
    replica_directory_id: UUID
    voter_directory_id: UUID
    last_offset_epoch: int
    last_offset: int
    pre_vote: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replica_epoch: int = ...,
        replica_id: int = ...,
        replica_directory_id: UUID = ...,
        voter_directory_id: UUID = ...,
        last_offset_epoch: int = ...,
        last_offset: int = ...,
        pre_vote: bool = ...,
    ) -> None: ...
