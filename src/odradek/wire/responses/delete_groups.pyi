"""Made by tools/stubs from definitions/delete_groups.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteGroupsResponse(Message):
    throttle_time: int
    results: Sequence[DeletableGroupResult]
    def __init__(
        self, *, throttle_time: int = ..., results: Sequence[DeletableGroupResult] = ...
    ) -> None: ...

class DeletableGroupResult(Message):
    group_id: str
    error_code: int
    def __init__(self, *, group_id: str = ..., error_code: int = ...) -> None: ...
