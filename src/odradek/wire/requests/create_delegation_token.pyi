"""Made by tools/stubs from definitions/create_delegation_token.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreateDelegationTokenRequest(Message):
    owner_principal_type: str | None
    owner_principal_name: str | None
    renewers: Sequence[CreatableRenewers]
    max_lifetime: int
    def __init__(
        self,
        *,
        owner_principal_type: str | None = ...,
        owner_principal_name: str | None = ...,
        renewers: Sequence[CreatableRenewers] = ...,
        max_lifetime: int = ...,
    ) -> None: ...

class CreatableRenewers(Message):
    principal_type: str
    principal_name: str
    def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
