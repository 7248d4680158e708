"""Made by tools/stubs from definitions/list_config_resources.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListConfigResourcesResponse(Message):
    throttle_time: int
    error_code: int
    config_resources: Sequence[ConfigResource]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        config_resources: Sequence[ConfigResource] = ...,
    ) -> None: ...

class ConfigResource(Message):
    resource_name: str
    resource_type: int
    def __init__(self, *, resource_name: str = ..., resource_type: int = ...) -> None: ...
