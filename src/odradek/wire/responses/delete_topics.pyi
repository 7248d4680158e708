"""Made by tools/stubs from definitions/delete_topics.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DeleteTopicsResponse(Message):
    throttle_time: int
    responses: Sequence[DeletableTopicResult]
    def __init__(
        self, *, throttle_time: int = ..., responses: Sequence[DeletableTopicResult] = ...
    ) -> None: ...

class DeletableTopicResult(Message):
    name: str | None
    topic_id: UUID
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        name: str | None = ...,
        topic_id: UUID = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...
