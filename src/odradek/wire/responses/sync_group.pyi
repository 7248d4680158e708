"""Made by tools/stubs from definitions/sync_group.py."""

from odradek.wire.classes import Message

class SyncGroupResponse(Message):
    throttle_time: int
    error_code: int
    protocol_type: str | None
    protocol_name: str | None
    assignment: bytes
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignment: bytes = ...,
    ) -> None: ...
