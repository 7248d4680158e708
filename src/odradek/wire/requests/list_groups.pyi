"""Made by tools/stubs from definitions/list_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListGroupsRequest(Message):
    states_filter: Sequence[str]
    types_filter: Sequence[str]
    def __init__(self, *, states_filter: Sequence[str] = ..., types_filter: Sequence[str] = ...) -> None: ...
