"""Made by tools/stubs from definitions/expire_delegation_token.py."""

from odradek.wire.classes import Message

class ExpireDelegationTokenRequest(Message):
    hmac: bytes
    expiry_time_period: int
    def __init__(self, *, hmac: bytes = ..., expiry_time_period: int = ...) -> None: ...
