"""Made by tools/stubs from definitions/describe_share_group_offsets.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DescribeShareGroupOffsetsResponse(Message):
    throttle_time: int
    groups: Sequence[DescribeShareGroupOffsetsResponseGroup]
    def __init__(
        self, *, throttle_time: int = ..., groups: Sequence[DescribeShareGroupOffsetsResponseGroup] = ...
    ) -> None: ...

class DescribeShareGroupOffsetsResponseGroup(Message):
    group_id: str
    topics: Sequence[DescribeShareGroupOffsetsResponseTopic]
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Sequence[DescribeShareGroupOffsetsResponseTopic] = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponseTopic(Message):
    topic_name: str
    topic_id: UUID
    partitions: Sequence[DescribeShareGroupOffsetsResponsePartition]
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        partitions: Sequence[DescribeShareGroupOffsetsResponsePartition] = ...,
    ) -> None: ...

class DescribeShareGroupOffsetsResponsePartition(Message):
    partition_index: int
    start_offset: int
    leader_epoch: int
    lag: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        start_offset: int = ...,
        leader_epoch: int = ...,
        lag: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...
