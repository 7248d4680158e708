"""Made by tools/stubs from definitions/share_fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class ShareFetchRequest(Message):
    group_id: str | None
    member_id: str | None
    share_session_epoch: int
    max_wait: int
    min_bytes: int
    max_bytes: int
    max_records: int
    batch_size: int
    share_acquire_mode: int
    is_renew_ack: bool
    topics: Sequence[FetchTopic]
    forgotten_topics_data: Sequence[ForgottenTopic]
    def __init__(
        self,
        *,
        group_id: str | None = ...,
        member_id: str | None = ...,
        share_session_epoch: int = ...,
        max_wait: int = ...,
        min_bytes: int = ...,
        max_bytes: int = ...,
        max_records: int = ...,
        batch_size: int = ...,
        share_acquire_mode: int = ...,
        is_renew_ack: bool = ...,
        topics: Sequence[FetchTopic] = ...,
        forgotten_topics_data: Sequence[ForgottenTopic] = ...,
    ) -> None: ...

class FetchTopic(Message):
    topic_id: UUID
    partitions: Sequence[FetchPartition]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[FetchPartition] = ...) -> None: ...

class FetchPartition(Message):
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

class ForgottenTopic(Message):
    topic_id: UUID
    partitions: Sequence[int]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[int] = ...) -> None: ...
