"""Made by tools/stubs from definitions/incremental_alter_configs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class IncrementalAlterConfigsRequest(Message):
    resources: Sequence[AlterConfigsResource]
    validate_only: bool
    def __init__(
        self, *, resources: Sequence[AlterConfigsResource] = ..., validate_only: bool = ...
    ) -> None: ...

class AlterConfigsResource(Message):
    resource_type: int
    resource_name: str
    configs: Sequence[AlterableConfig]
    def __init__(
        self, *, resource_type: int = ..., resource_name: str = ..., configs: Sequence[AlterableConfig] = ...
    ) -> None: ...

class AlterableConfig(Message):
    name: str
    config_operation: int
    value: str | None
    def __init__(self, *, name: str = ..., config_operation: int = ..., value: str | None = ...) -> None: ...
