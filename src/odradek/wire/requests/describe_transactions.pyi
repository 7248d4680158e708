"""Made by tools/stubs from definitions/describe_transactions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeTransactionsRequest(Message):
    transactional_ids: Sequence[str]
    def __init__(self, *, transactional_ids: Sequence[str] = ...) -> None: ...
