"""Made by tools/stubs from definitions/find_coordinator.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class FindCoordinatorResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    node_id: int
    host: str
    port: int
    coordinators: Sequence[Coordinator]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        node_id: int = ...,
        host: str = ...,
        port: int = ...,
        coordinators: Sequence[Coordinator] = ...,
    ) -> None: ...

class Coordinator(Message):
    key: str
    node_id: int
    host: str
    port: int
    error_code: int
    error_message: str | None
    def __init__(
        self,
        *,
        key: str = ...,
        node_id: int = ...,
        host: str = ...,
        port: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
    ) -> None: ...
