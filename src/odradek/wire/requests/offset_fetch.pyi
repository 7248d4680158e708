"""Made by tools/stubs from definitions/offset_fetch.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class OffsetFetchRequest(Message):
    group_id: str
    topics: Sequence[OffsetFetchRequestTopic] | None
    groups: Sequence[OffsetFetchRequestGroup]
    require_stable: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        topics: Sequence[OffsetFetchRequestTopic] | None = ...,
        groups: Sequence[OffsetFetchRequestGroup] = ...,
        require_stable: bool = ...,
    ) -> None: ...

class OffsetFetchRequestTopic(Message):
    name: str
    partition_indexes: Sequence[int]
    def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...

class OffsetFetchRequestGroup(Message):
    group_id: str
    member_id: str | None
    member_epoch: int
    topics: Sequence[OffsetFetchRequestTopics] | None
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str | None = ...,
        member_epoch: int = ...,
        topics: Sequence[OffsetFetchRequestTopics] | None = ...,
    ) -> None: ...

class OffsetFetchRequestTopics(Message):
    name: str
    topic_id: UUID
    partition_indexes: Sequence[int]
    def __init__(
        self, *, name: str = ..., topic_id: UUID = ..., partition_indexes: Sequence[int] = ...
    ) -> None: ...
