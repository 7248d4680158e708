"""Made by tools/stubs from definitions/sasl_handshake.py."""

from odradek.wire.classes import Message

class SaslHandshakeRequest(Message):
    mechanism: str
    def __init__(self, *, mechanism: str = ...) -> None: ...
