"""Made by tools/stubs from definitions/describe_producers.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeProducersRequest(Message):
    topics: Sequence[TopicRequest]
    def __init__(self, *, topics: Sequence[TopicRequest] = ...) -> None: ...

class TopicRequest(Message):
    name: str
    partition_indexes: Sequence[int]
    def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...
