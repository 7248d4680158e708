"""Made by tools/stubs from definitions/create_partitions.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreatePartitionsResponse(Message):
    throttle_time: int
    results: Sequence[CreatePartitionsTopicResult]
    def __init__(
        self, *, throttle_time: int = ..., results: Sequence[CreatePartitionsTopicResult] = ...
    ) -> None: ...

class CreatePartitionsTopicResult(Message):
    name: str
    error_code: int
    error_message: str | None
    def __init__(
        self, *, name: str = ..., error_code: int = ..., error_message: str | None = ...
    ) -> None: ...
