"""Made by tools/stubs from definitions/describe_delegation_token.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeDelegationTokenResponse(Message):
    error_code: int
    tokens: Sequence[DescribedDelegationToken]
    throttle_time: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        tokens: Sequence[DescribedDelegationToken] = ...,
        throttle_time: int = ...,
    ) -> None: ...

class DescribedDelegationToken(Message):
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes
    renewers: Sequence[DescribedDelegationTokenRenewer]
    def __init__(
        self,
        *,
        principal_type: str = ...,
        principal_name: str = ...,
        token_requester_principal_type: str = ...,
        token_requester_principal_name: str = ...,
        issue_timestamp: int = ...,
        expiry_timestamp: int = ...,
        max_timestamp: int = ...,
        token_id: str = ...,
        hmac: bytes = ...,
        renewers: Sequence[DescribedDelegationTokenRenewer] = ...,
    ) -> None: ...

class DescribedDelegationTokenRenewer(Message):
    principal_type: str
    principal_name: str
    def __init__(self, *, principal_type: str = ..., principal_name: str = ...) -> None: ...
