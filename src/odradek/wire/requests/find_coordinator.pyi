"""Made by tools/stubs from definitions/find_coordinator.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class FindCoordinatorRequest(Message):
    key: str
    key_type: int
    coordinator_keys: Sequence[str]
    def __init__(
        self, *, key: str = ..., key_type: int = ..., coordinator_keys: Sequence[str] = ...
    ) -> None: ...
