"""Made by tools/stubs from definitions/renew_delegation_token.py."""

from odradek.wire.classes import Message

class RenewDelegationTokenResponse(Message):
    error_code: int
    expiry_timestamp: int
    throttle_time: int
    def __init__(
        self, *, error_code: int = ..., expiry_timestamp: int = ..., throttle_time: int = ...
    ) -> None: ...
