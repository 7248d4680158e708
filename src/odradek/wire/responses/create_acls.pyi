"""Made by tools/stubs from definitions/create_acls.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreateAclsResponse(Message):
    throttle_time: int
    results: Sequence[AclCreationResult]
    def __init__(self, *, throttle_time: int = ..., results: Sequence[AclCreationResult] = ...) -> None: ...

class AclCreationResult(Message):
    error_code: int
    error_message: str | None
    def __init__(self, *, error_code: int = ..., error_message: str | None = ...) -> None: ...
