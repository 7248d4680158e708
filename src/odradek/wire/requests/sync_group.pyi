"""Made by tools/stubs from definitions/sync_group.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class SyncGroupRequest(Message):
    group_id: str
    generation_id: int
    member_id: str
    group_instance_id: str | None
    protocol_type: str | None
    protocol_name: str | None
    assignments: Sequence[SyncGroupRequestAssignment]
    def __init__(
        self,
        *,
        group_id: str = ...,
        generation_id: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        assignments: Sequence[SyncGroupRequestAssignment] = ...,
    ) -> None: ...

class SyncGroupRequestAssignment(Message):
    member_id: str
    assignment: bytes
    def __init__(self, *, member_id: str = ..., assignment: bytes = ...) -> None: ...
