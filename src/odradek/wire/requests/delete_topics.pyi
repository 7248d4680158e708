"""Made by tools/stubs from definitions/delete_topics.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DeleteTopicsRequest(Message):
    topic_names: Sequence[str]
    topics: Sequence[DeleteTopicState]
    timeout: int
    def __init__(
        self,
        *,
        topic_names: Sequence[str] = ...,
        topics: Sequence[DeleteTopicState] = ...,
        timeout: int = ...,
    ) -> None: ...

class DeleteTopicState(Message):
    name: str | None
    topic_id: UUID
    def __init__(self, *, name: str | None = ..., topic_id: UUID = ...) -> None: ...
