"""Made by tools/stubs from definitions/envelope.py."""

from odradek.wire.classes import Message

class EnvelopeResponse(Message):
    response_data: bytes | None
    error_code: int
    def __init__(self, *, response_data: bytes | None = ..., error_code: int = ...) -> None: ...
