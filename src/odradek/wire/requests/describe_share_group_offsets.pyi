"""Made by tools/stubs from definitions/describe_share_group_offsets.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeShareGroupOffsetsRequest(Message):
    groups: Sequence[DescribeShareGroupOffsetsRequestGroup]
    def __init__(self, *, groups: Sequence[DescribeShareGroupOffsetsRequestGroup] = ...) -> None: ...

class DescribeShareGroupOffsetsRequestGroup(Message):
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None
    def __init__(
        self, *, group_id: str = ..., topics: Sequence[DescribeShareGroupOffsetsRequestTopic] | None = ...
    ) -> None: ...

class DescribeShareGroupOffsetsRequestTopic(Message):
    topic_name: str
    partitions: Sequence[int]
    def __init__(self, *, topic_name: str = ..., partitions: Sequence[int] = ...) -> None: ...
