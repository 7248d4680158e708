"""Made by tools/stubs from definitions/alter_configs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterConfigsResponse(Message):
    throttle_time: int
    responses: Sequence[AlterConfigsResourceResponse]
    def __init__(
        self, *, throttle_time: int = ..., responses: Sequence[AlterConfigsResourceResponse] = ...
    ) -> None: ...

class AlterConfigsResourceResponse(Message):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
    ) -> None: ...
