"""Made by tools/stubs from definitions/controller_registration.py."""

from odradek.wire.classes import Message

class ControllerRegistrationResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
