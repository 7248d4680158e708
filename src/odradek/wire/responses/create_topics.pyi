"""Made by tools/stubs from definitions/create_topics.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class CreateTopicsResponse(Message):
    throttle_time: int
    topics: Sequence[CreatableTopicResult]
    def __init__(self, *, throttle_time: int = ..., topics: Sequence[CreatableTopicResult] = ...) -> None: ...

class CreatableTopicResult(Message):
    name: str
    topic_id: UUID
    error_code: int
    error_message: str | None
    topic_config_error_code: int
    num_partitions: int
    replication_factor: int
    configs: Sequence[CreatableTopicConfigs] | None
    def __init__(
        self,
        *,
        name: str = ...,
        topic_id: UUID = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topic_config_error_code: int = ...,
        num_partitions: int = ...,
        replication_factor: int = ...,
        configs: Sequence[CreatableTopicConfigs] | None = ...,
    ) -> None: ...

class CreatableTopicConfigs(Message):
    name: str
    value: str | None
    read_only: bool
    config_source: int
    is_sensitive: bool
    def __init__(
        self,
        *,
        name: str = ...,
        value: str | None = ...,
        read_only: bool = ...,
        config_source: int = ...,
        is_sensitive: bool = ...,
    ) -> None: ...
