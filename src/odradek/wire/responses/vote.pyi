"""Made by tools/stubs from definitions/vote.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class VoteResponse(Message):
    error_code: int
    topics: Sequence[TopicData]
    node_endpoints: Sequence[NodeEndpoint]
    def __init__(
        self,
        *,
        error_code: int = ...,
        topics: Sequence[TopicData] = ...,
        node_endpoints: Sequence[NodeEndpoint] = ...,
    ) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    leader_id: int
    leader_epoch: int
    vote_granted: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        leader_id: int = ...,
        leader_epoch: int = ...,
        vote_granted: bool = ...,
    ) -> None: ...

class NodeEndpoint(Message):
    node_id: int
    host: str
    port: int
    def __init__(self, *, node_id: int = ..., host: str = ..., port: int = ...) -> None: ...
