"""Made by tools/stubs from definitions/allocate_producer_ids.py."""

from odradek.wire.classes import Message

class AllocateProducerIdsRequest(Message):
    broker_id: int
    broker_epoch: int
    def __init__(self, *, broker_id: int = ..., broker_epoch: int = ...) -> None: ...
