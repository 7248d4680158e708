"""Made by tools/stubs from definitions/list_transactions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListTransactionsRequest(Message):
    state_filters: Sequence[str]
    producer_id_filters: Sequence[int]
    duration_filter: int
    transactional_id_pattern: str | None
    def __init__(
        self,
        *,
        state_filters: Sequence[str] = ...,
        producer_id_filters: Sequence[int] = ...,
        duration_filter: int = ...,
        transactional_id_pattern: str | None = ...,
    ) -> None: ...
