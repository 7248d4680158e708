"""Made by tools/stubs from definitions/share_group_describe.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ShareGroupDescribeResponse(Message):
    throttle_time: int
    groups: Sequence[DescribedGroup]
    def __init__(self, *, throttle_time: int = ..., groups: Sequence[DescribedGroup] = ...) -> None: ...

class DescribedGroup(Message):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    assignor_name: str
    members: Sequence[Member]
    authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        group_id: str = ...,
        group_state: str = ...,
        group_epoch: int = ...,
        assignment_epoch: int = ...,
        assignor_name: str = ...,
        members: Sequence[Member] = ...,
        authorized_operations: int = ...,
    ) -> None: ...

class Member(Message):
    member_id: str
    rack_id: str | None
    member_epoch: int
    client_id: str
    client_host: str
    subscribed_topic_names: Sequence[str]
    assignment: Assignment
    def __init__(
        self,
        *,
        member_id: str = ...,
        rack_id: str | None = ...,
        member_epoch: int = ...,
        client_id: str = ...,
        client_host: str = ...,
        subscribed_topic_names: Sequence[str] = ...,
        assignment: Assignment = ...,
    ) -> None: ...

class Assignment(Message):
    topic_partitions: Sequence[TopicPartitions]
    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ...) -> None: ...

class TopicPartitions(Message):
    topic_id: UUID
    topic_name: str
    partitions: Sequence[int]
    def __init__(
        self, *, topic_id: UUID = ..., topic_name: str = ..., partitions: Sequence[int] = ...
    ) -> None: ...
