"""Made by tools/stubs from definitions/delete_acls.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteAclsResponse(Message):
    throttle_time: int
    filter_results: Sequence[DeleteAclsFilterResult]
    def __init__(
        self, *, throttle_time: int = ..., filter_results: Sequence[DeleteAclsFilterResult] = ...
    ) -> None: ...

class DeleteAclsFilterResult(Message):
    error_code: int
    error_message: str | None
    matching_acls: Sequence[DeleteAclsMatchingAcl]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        matching_acls: Sequence[DeleteAclsMatchingAcl] = ...,
    ) -> None: ...

class DeleteAclsMatchingAcl(Message):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...
