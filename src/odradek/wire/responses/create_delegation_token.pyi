"""Made by tools/stubs from definitions/create_delegation_token.py."""

from odradek.wire.classes import Message

class CreateDelegationTokenResponse(Message):
    error_code: int
    principal_type: str
    principal_name: str
    token_requester_principal_type: str
    token_requester_principal_name: str
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    token_id: str
    hmac: bytes
    throttle_time: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        principal_type: str = ...,
        principal_name: str = ...,
        token_requester_principal_type: str = ...,
        token_requester_principal_name: str = ...,
        issue_timestamp: int = ...,
        expiry_timestamp: int = ...,
        max_timestamp: int = ...,
        token_id: str = ...,
        hmac: bytes = ...,
        throttle_time: int = ...,
    ) -> None: ...
