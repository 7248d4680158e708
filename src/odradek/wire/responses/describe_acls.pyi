"""Made by tools/stubs from definitions/describe_acls.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeAclsResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    resources: Sequence[DescribeAclsResource]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        resources: Sequence[DescribeAclsResource] = ...,
    ) -> None: ...

class DescribeAclsResource(Message):
    resource_type: int
    resource_name: str
    pattern_type: int
    acls: Sequence[AclDescription]
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        acls: Sequence[AclDescription] = ...,
    ) -> None: ...

class AclDescription(Message):
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self, *, principal: str = ..., host: str = ..., operation: int = ..., permission_type: int = ...
    ) -> None: ...
