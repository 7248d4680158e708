"""Made by tools/stubs from definitions/list_transactions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListTransactionsResponse(Message):
    throttle_time: int
    error_code: int
    unknown_state_filters: Sequence[str]
    transaction_states: Sequence[TransactionState]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        unknown_state_filters: Sequence[str] = ...,
        transaction_states: Sequence[TransactionState] = ...,
    ) -> None: ...

class TransactionState(Message):
    transactional_id: str
    producer_id: int
    transaction_state: str
    def __init__(
        self, *, transactional_id: str = ..., producer_id: int = ..., transaction_state: str = ...
    ) -> None: ...
