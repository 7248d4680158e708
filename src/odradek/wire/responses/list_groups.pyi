"""Made by tools/stubs from definitions/list_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListGroupsResponse(Message):
    throttle_time: int
    error_code: int
    groups: Sequence[ListedGroup]
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., groups: Sequence[ListedGroup] = ...
    ) -> None: ...

class ListedGroup(Message):
    group_id: str
    protocol_type: str
    group_state: str
    group_type: str
    def __init__(
        self, *, group_id: str = ..., protocol_type: str = ..., group_state: str = ..., group_type: str = ...
    ) -> None: ...
