"""Made by tools/stubs from definitions/sasl_handshake.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class SaslHandshakeResponse(Message):
    error_code: int
    mechanisms: Sequence[str]
    def __init__(self, *, error_code: int = ..., mechanisms: Sequence[str] = ...) -> None: ...
