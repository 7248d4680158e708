"""Made by tools/stubs from definitions/create_acls.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreateAclsRequest(Message):
    creations: Sequence[AclCreation]
    def __init__(self, *, creations: Sequence[AclCreation] = ...) -> None: ...

class AclCreation(Message):
    resource_type: int
    resource_name: str
    resource_pattern_type: int
    principal: str
    host: str
    operation: int
    permission_type: int
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        resource_pattern_type: int = ...,
        principal: str = ...,
        host: str = ...,
        operation: int = ...,
        permission_type: int = ...,
    ) -> None: ...
