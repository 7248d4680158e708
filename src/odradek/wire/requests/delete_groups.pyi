"""Made by tools/stubs from definitions/delete_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteGroupsRequest(Message):
    groups_names: Sequence[str]
    def __init__(self, *, groups_names: Sequence[str] = ...) -> None: ...
