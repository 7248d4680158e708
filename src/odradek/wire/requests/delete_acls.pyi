"""Made by tools/stubs from definitions/delete_acls.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteAclsRequest(Message):
    filters: Sequence[DeleteAclsFilter]
    def __init__(self, *, filters: Sequence[DeleteAclsFilter] = ...) -> None: ...

class DeleteAclsFilter(Message):
    resource_type_filter: int
    resource_name_filter: str | None
    pattern_type_filter: int
    principal_filter: str | None
    host_filter: str | None
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type_filter: int = ...,
        resource_name_filter: str | None = ...,
        pattern_type_filter: int = ...,
        principal_filter: str | None = ...,
        host_filter: str | None = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...
