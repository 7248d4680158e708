"""Made by tools/stubs from definitions/describe_quorum.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeQuorumRequest(Message):
    topics: Sequence[TopicData]
    def __init__(self, *, topics: Sequence[TopicData] = ...) -> None: ...

class TopicData(Message):
    topic_name: str
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    def __init__(self, *, partition_index: int = ...) -> None: ...
