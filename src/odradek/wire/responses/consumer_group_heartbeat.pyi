"""Made by tools/stubs from definitions/consumer_group_heartbeat.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ConsumerGroupHeartbeatResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    member_id: str | None
    member_epoch: int
    heartbeat_interval: int
    assignment: Assignment | None
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        heartbeat_interval: int = ...,
        assignment: Assignment | None = ...,
    ) -> None: ...

class Assignment(Message):
    topic_partitions: Sequence[TopicPartitions]
    def __init__(self, *, topic_partitions: Sequence[TopicPartitions] = ...) -> None: ...

class TopicPartitions(Message):
    topic_id: UUID
    partitions: Sequence[int]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[int] = ...) -> None: ...
