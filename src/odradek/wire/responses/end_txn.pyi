"""Made by tools/stubs from definitions/end_txn.py."""

from odradek.wire.classes import Message

class EndTxnResponse(Message):
    throttle_time: int
    error_code: int
    producer_id: int
    producer_epoch: int
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
    ) -> None: ...
