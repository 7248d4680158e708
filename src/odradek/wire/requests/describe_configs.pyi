"""Made by tools/stubs from definitions/describe_configs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeConfigsRequest(Message):
    resources: Sequence[DescribeConfigsResource]
    include_synonyms: bool
    include_documentation: bool
    def __init__(
        self,
        *,
        resources: Sequence[DescribeConfigsResource] = ...,
        include_synonyms: bool = ...,
        include_documentation: bool = ...,
    ) -> None: ...

class DescribeConfigsResource(Message):
    resource_type: int
    resource_name: str
    configuration_keys: Sequence[str] | None
    def __init__(
        self,
        *,
        resource_type: int = ...,
        resource_name: str = ...,
        configuration_keys: Sequence[str] | None = ...,
    ) -> None: ...
