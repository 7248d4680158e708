"""Made by tools/stubs from definitions/sasl_authenticate.py."""

from odradek.wire.classes import Message

class SaslAuthenticateResponse(Message):
    error_code: int
    error_message: str | None
    auth_bytes: bytes
    session_lifetime: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        auth_bytes: bytes = ...,
        session_lifetime: int = ...,
    ) -> None: ...
