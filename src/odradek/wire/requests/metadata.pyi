"""Made by tools/stubs from definitions/metadata.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class MetadataRequest(Message):
    topics: Sequence[MetadataRequestTopic] | None
    allow_auto_topic_creation: bool
    include_cluster_authorized_operations: bool
    include_topic_authorized_operations: bool
    def __init__(
        self,
        *,
        topics: Sequence[MetadataRequestTopic] | None = ...,
        allow_auto_topic_creation: bool = ...,
        include_cluster_authorized_operations: bool = ...,
        include_topic_authorized_operations: bool = ...,
    ) -> None: ...

class MetadataRequestTopic(Message):
    topic_id: UUID
    name: str | None
    def __init__(self, *, topic_id: UUID = ..., name: str | None = ...) -> None: ...
