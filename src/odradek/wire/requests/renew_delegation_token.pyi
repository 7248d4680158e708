"""Made by tools/stubs from definitions/renew_delegation_token.py."""

from odradek.wire.classes import Message

class RenewDelegationTokenRequest(Message):
    hmac: bytes
    renew_period: int
    def __init__(self, *, hmac: bytes = ..., renew_period: int = ...) -> None: ...
