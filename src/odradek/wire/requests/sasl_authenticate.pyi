"""Made by tools/stubs from definitions/sasl_authenticate.py."""

from odradek.wire.classes import Message

class SaslAuthenticateRequest(Message):
    auth_bytes: bytes
    def __init__(self, *, auth_bytes: bytes = ...) -> None: ...
