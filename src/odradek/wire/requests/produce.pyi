"""Made by tools/stubs from definitions/produce.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.core.types import Buffer
from odradek.wire.classes import Message

class ProduceRequest(Message):
    transactional_id: str | None
    acks: int
    timeout: int
    topic_data: Sequence[TopicProduceData]
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        acks: int = ...,
        timeout: int = ...,
        topic_data: Sequence[TopicProduceData] = ...,
    ) -> None: ...

class TopicProduceData(Message):
    name: str
    topic_id: UUID
    partition_data: Sequence[PartitionProduceData]
    def __init__(
        self, *, name: str = ..., topic_id: UUID = ..., partition_data: Sequence[PartitionProduceData] = ...
    ) -> None: ...

class PartitionProduceData(Message):
    index: int
    records: Buffer | None
    def __init__(self, *, index: int = ..., records: Buffer | None = ...) -> None: ...
