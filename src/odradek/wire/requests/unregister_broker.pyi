"""Made by tools/stubs from definitions/unregister_broker.py."""

from odradek.wire.classes import Message

class UnregisterBrokerRequest(Message):
    broker_id: int
    def __init__(self, *, broker_id: int = ...) -> None: ...
