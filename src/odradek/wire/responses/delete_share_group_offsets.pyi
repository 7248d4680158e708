"""Made by tools/stubs from definitions/delete_share_group_offsets.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class DeleteShareGroupOffsetsResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    responses: Sequence[DeleteShareGroupOffsetsResponseTopic]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        responses: Sequence[DeleteShareGroupOffsetsResponseTopic] = ...,
    ) -> None: ...

class DeleteShareGroupOffsetsResponseTopic(Message):
    topic_name: str
    topic_id: UUID
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        topic_name: str = ...,
        topic_id: UUID = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...
