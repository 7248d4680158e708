"""Made by tools/stubs from definitions/end_quorum_epoch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class EndQuorumEpochRequest(Message):
    cluster_id: str | None
    topics: Sequence[TopicData]
    leader_endpoints: Sequence[LeaderEndpoint]
    def __init__(
        self,
        *,
        cluster_id: str | None = ...,
        topics: Sequence[TopicData] = ...,
        leader_endpoints: Sequence[LeaderEndpoint] = ...,
    ) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    leader_id: int
    leader_epoch: int
    preferred_successors: Sequence[int]
    preferred_candidates: Sequence[ReplicaInfo]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        preferred_successors: Sequence[int] = ...,
        preferred_candidates: Sequence[ReplicaInfo] = ...,
    ) -> None: ...

class ReplicaInfo(Message):
    candidate_id: int
    candidate_directory_id: UUID
    def __init__(self, *, candidate_id: int = ..., candidate_directory_id: UUID = ...) -> None: ...

class LeaderEndpoint(Message):
    name: str
    host: str
    port: int
    def __init__(self, *, name: str = ..., host: str = ..., port: int = ...) -> None: ...
