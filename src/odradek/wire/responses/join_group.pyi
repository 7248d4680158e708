"""Made by tools/stubs from definitions/join_group.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class JoinGroupResponse(Message):
    throttle_time: int
    error_code: int
    generation_id: int
    protocol_type: str | None
    protocol_name: str | None
    leader: str
    skip_assignment: bool
    member_id: str
    members: Sequence[JoinGroupResponseMember]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        generation_id: int = ...,
        protocol_type: str | None = ...,
        protocol_name: str | None = ...,
        leader: str = ...,
        skip_assignment: bool = ...,
        member_id: str = ...,
        members: Sequence[JoinGroupResponseMember] = ...,
    ) -> None: ...

class JoinGroupResponseMember(Message):
    member_id: str
    group_instance_id: str | None
    metadata: bytes
    def __init__(
        self, *, member_id: str = ..., group_instance_id: str | None = ..., metadata: bytes = ...
    ) -> None: ...
