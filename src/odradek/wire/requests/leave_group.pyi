"""Made by tools/stubs from definitions/leave_group.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class LeaveGroupRequest(Message):
    group_id: str
    member_id: str
    members: Sequence[MemberIdentity]
    def __init__(
        self, *, group_id: str = ..., member_id: str = ..., members: Sequence[MemberIdentity] = ...
    ) -> None: ...

class MemberIdentity(Message):
    member_id: str
    group_instance_id: str | None
    reason: str | None
    def __init__(
        self, *, member_id: str = ..., group_instance_id: str | None = ..., reason: str | None = ...
    ) -> None: ...
