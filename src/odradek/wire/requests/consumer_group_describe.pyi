"""Made by tools/stubs from definitions/consumer_group_describe.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ConsumerGroupDescribeRequest(Message):
    group_ids: Sequence[str]
    include_authorized_operations: bool
    def __init__(
        self, *, group_ids: Sequence[str] = ..., include_authorized_operations: bool = ...
    ) -> None: ...
