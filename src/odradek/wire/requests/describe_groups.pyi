"""Made by tools/stubs from definitions/describe_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeGroupsRequest(Message):
    groups: Sequence[str]
    include_authorized_operations: bool
    def __init__(self, *, groups: Sequence[str] = ..., include_authorized_operations: bool = ...) -> None: ...
