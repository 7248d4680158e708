"""Made by tools/stubs from definitions/leave_group.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class LeaveGroupResponse(Message):
    throttle_time: int
    error_code: int
    members: Sequence[MemberResponse]
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., members: Sequence[MemberResponse] = ...
    ) -> None: ...

class MemberResponse(Message):
    member_id: str
    group_instance_id: str | None
    error_code: int
    def __init__(
        self, *, member_id: str = ..., group_instance_id: str | None = ..., error_code: int = ...
    ) -> None: ...
