"""Made by tools/stubs from definitions/heartbeat.py."""

from odradek.wire.classes import Message

class HeartbeatResponse(Message):
    throttle_time: int
    error_code: int
    def __init__(self, *, throttle_time: int = ..., error_code: int = ...) -> None: ...
