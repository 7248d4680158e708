"""Made by tools/stubs from definitions/describe_delegation_token.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeDelegationTokenRequest(Message):
    owners: Sequence[DescribeDelegationTokenOwner] | None
    def __init__(self, *, owners: Sequence[DescribeDelegationTokenOwner] | None = ...) -> None: ...

class DescribeDelegationTokenOwner(Message):
    principal_type: str
    principal_name: str
    def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
