"""Made by tools/stubs from definitions/init_producer_id.py."""

from odradek.wire.classes import Message

class InitProducerIdRequest(Message):
    transactional_id: str | None
    transaction_timeout: int
    producer_id: int
    producer_epoch: int
    enable2_pc: bool
    keep_prepared_txn: bool
    def __init__(
        self,
        *,
        transactional_id: str | None = ...,
        transaction_timeout: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        enable2_pc: bool = ...,
        keep_prepared_txn: bool = ...,
    ) -> None: ...
