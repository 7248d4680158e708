"""Made by tools/stubs from definitions/add_partitions_to_txn.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AddPartitionsToTxnRequest(Message):
    v3_and_below_transactional_id: str
    v3_and_below_producer_id: int
    v3_and_below_producer_epoch: int
    v3_and_below_topics: Sequence[AddPartitionsToTxnTopic]
    transactions: Sequence[AddPartitionsToTxnTransaction]
    def __init__(
        self,
        *,
        v3_and_below_transactional_id: str = ...,
        v3_and_below_producer_id: int = ...,
        v3_and_below_producer_epoch: int = ...,
        v3_and_below_topics: Sequence[AddPartitionsToTxnTopic] = ...,
        transactions: Sequence[AddPartitionsToTxnTransaction] = ...,
    ) -> None: ...

class AddPartitionsToTxnTopic(Message):
    name: str
    partitions: Sequence[int]
    def __init__(self, *, name: str = ..., partitions: Sequence[int] = ...) -> None: ...

class AddPartitionsToTxnTransaction(Message):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    verify_only: bool
    topics: Sequence[AddPartitionsToTxnTopic]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        verify_only: bool = ...,
        topics: Sequence[AddPartitionsToTxnTopic] = ...,
    ) -> None: ...
