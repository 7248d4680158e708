"""Made by tools/stubs from definitions/describe_transactions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeTransactionsResponse(Message):
    throttle_time: int
    transaction_states: Sequence[TransactionState]
    def __init__(
        self, *, throttle_time: int = ..., transaction_states: Sequence[TransactionState] = ...
    ) -> None: ...

class TransactionState(Message):
    error_code: int
    transactional_id: str
    transaction_state: str
    transaction_timeout: int
    transaction_start_time: int
    producer_id: int
    producer_epoch: int
    topics: Sequence[TopicData]
    def __init__(
        self,
        *,
        error_code: int = ...,
        transactional_id: str = ...,
        transaction_state: str = ...,
        transaction_timeout: int = ...,
        transaction_start_time: int = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        topics: Sequence[TopicData] = ...,
    ) -> None: ...

class TopicData(Message):
    topic: str
    partitions: Sequence[int]
    def __init__(self, *, topic: str = ..., partitions: Sequence[int] = ...) -> None: ...
