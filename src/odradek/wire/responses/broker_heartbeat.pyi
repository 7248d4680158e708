"""Made by tools/stubs from definitions/broker_heartbeat.py."""

from odradek.wire.classes import Message

class BrokerHeartbeatResponse(Message):
    throttle_time: int
    error_code: int
    is_caught_up: bool
    is_fenced: bool
    should_shut_down: bool
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        is_caught_up: bool = ...,
        is_fenced: bool = ...,
        should_shut_down: bool = ...,
    ) -> None: ...
