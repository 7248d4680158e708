"""Made by tools/stubs from definitions/describe_configs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeConfigsResponse(Message):
    throttle_time: int
    results: Sequence[DescribeConfigsResult]
    def __init__(
        self, *, throttle_time: int = ..., results: Sequence[DescribeConfigsResult] = ...
    ) -> None: ...

class DescribeConfigsResult(Message):
    error_code: int
    error_message: str | None
    resource_type: int
    resource_name: str
    configs: Sequence[DescribeConfigsResourceResult]
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        resource_type: int = ...,
        resource_name: str = ...,
        configs: Sequence[DescribeConfigsResourceResult] = ...,
    ) -> None: ...

class DescribeConfigsResourceResult(Message):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    synonyms: Sequence[DescribeConfigsSynonym]
    config_type: int
    documentation: str | None
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
        read_only: bool = ...,
        config_source: int = ...,
        is_sensitive: bool = ...,
        synonyms: Sequence[DescribeConfigsSynonym] = ...,
        config_type: int = ...,
        documentation: str | None = ...,
    ) -> None: ...

class DescribeConfigsSynonym(Message):
    name: str
    value: str | None
    source: int
    def __init__(self, *, name: str = ..., value: str | None = ..., source: int = ...) -> None: ...
