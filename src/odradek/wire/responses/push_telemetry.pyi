"""Made by tools/stubs from definitions/push_telemetry.py."""

from odradek.wire.classes import Message

class PushTelemetryResponse(Message):
    throttle_time: int
    error_code: int
    def __init__(self, *, throttle_time: int = ..., error_code: int = ...) -> None: ...
