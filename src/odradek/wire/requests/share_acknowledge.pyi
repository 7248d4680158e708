"""Made by tools/stubs from definitions/share_acknowledge.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ShareAcknowledgeRequest(Message):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    is_renew_ack: bool
    topics: Sequence[AcknowledgeTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        is_renew_ack: bool = ...,
        topics: Sequence[AcknowledgeTopic] = ...,
    ) -> None: ...

class AcknowledgeTopic(Message):
    topic_id: UUID
    partitions: Sequence[AcknowledgePartition]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[AcknowledgePartition] = ...) -> None: ...

class AcknowledgePartition(Message):
    partition_index: int
    acknowledgement_batches: Sequence[AcknowledgementBatch]
    def __init__(
        self, *, partition_index: int = ..., acknowledgement_batches: Sequence[AcknowledgementBatch] = ...
    ) -> None: ...

class AcknowledgementBatch(Message):
    first_offset: int
    last_offset: int
    acknowledge_types: Sequence[int]
    def __init__(
        self, *, first_offset: int = ..., last_offset: int = ..., acknowledge_types: Sequence[int] = ...
    ) -> None: ...
