"""Made by tools/stubs from definitions/describe_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeGroupsResponse(Message):
    throttle_time: int
    groups: Sequence[DescribedGroup]
    def __init__(self, *, throttle_time: int = ..., groups: Sequence[DescribedGroup] = ...) -> None: ...

class DescribedGroup(Message):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    protocol_type: str
    protocol_data: str
    members: Sequence[DescribedGroupMember]
    authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        group_id: str = ...,
        group_state: str = ...,
        protocol_type: str = ...,
        protocol_data: str = ...,
        members: Sequence[DescribedGroupMember] = ...,
        authorized_operations: int = ...,
    ) -> None: ...

class DescribedGroupMember(Message):
    member_id: str
    group_instance_id: str | None
    client_id: str
    client_host: str
    member_metadata: bytes
    member_assignment: bytes
    def __init__(
        self,
        *,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        member_metadata: bytes = ...,
        member_assignment: bytes = ...,
    ) -> None: ...
