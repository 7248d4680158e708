"""Made by tools/stubs from definitions/consumer_group_heartbeat.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ConsumerGroupHeartbeatRequest(Message):
    group_id: str
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: int
    subscribed_topic_names: Sequence[str] | None
    subscribed_topic_regex: str | None
    server_assignor: str | None
    topic_partitions: Sequence[TopicPartitions] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        rebalance_timeout: int = ...,
        subscribed_topic_names: Sequence[str] | None = ...,
        subscribed_topic_regex: str | None = ...,
        server_assignor: str | None = ...,
        topic_partitions: Sequence[TopicPartitions] | None = ...,
    ) -> None: ...

class TopicPartitions(Message):
    topic_id: UUID
    partitions: Sequence[int]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[int] = ...) -> None: ...
