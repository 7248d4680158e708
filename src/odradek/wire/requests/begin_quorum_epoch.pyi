"""Made by tools/stubs from definitions/begin_quorum_epoch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class BeginQuorumEpochRequest(Message):
    cluster_id: str | None
    voter_id: int
    topics: Sequence[TopicData]
    leader_endpoints: Sequence[LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        voter_id: int = ...,
        topics: Sequence[TopicData] = ...,
        leader_endpoints: Sequence[LeaderEndpoint] = ...,
    ) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    voter_directory_id: UUID
    leader_id: int
    leader_epoch: int
    def __init__(
        self,
        *,
        partition_index: int = ...,
        voter_directory_id: UUID = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
    ) -> None: ...

class LeaderEndpoint(Message):
    name: str
    host: str
    port: int
    def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
