"""Made by tools/stubs from definitions/broker_registration.py."""

from odradek.wire.classes import Message

class BrokerRegistrationResponse(Message):
    throttle_time: int
    error_code: int
    broker_epoch: int
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., broker_epoch: int = ...
    ) -> None: ...
