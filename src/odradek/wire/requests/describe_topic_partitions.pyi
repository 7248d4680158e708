"""Made by tools/stubs from definitions/describe_topic_partitions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeTopicPartitionsRequest(Message):
    topics: Sequence[TopicRequest]
    response_partition_limit: int
    cursor: Cursor | None
    def __init__(
        self,
        *,
        topics: Sequence[TopicRequest] = ...,
        response_partition_limit: int = ...,
        cursor: Cursor | None = ...,
    ) -> None: ...

class TopicRequest(Message):
    name: str
    def __init__(self, *, name: str = ...) -> None: ...

class Cursor(Message):
    topic_name: str
    partition_index: int
    def __init__(self, *, topic_name: str = ..., partition_index: int = ...) -> None: ...
