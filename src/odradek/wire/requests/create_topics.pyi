"""Made by tools/stubs from definitions/create_topics.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class CreateTopicsRequest(Message):
    topics: Sequence[CreatableTopic]
    timeout: int
    validate_only: bool
    def __init__(
        self, *, topics: Sequence[CreatableTopic] = ..., timeout: int = ..., validate_only: bool = ...
    ) -> None: ...

class CreatableTopic(Message):
    name: str
    num_partitions: int
    replication_factor: int
    assignments: Sequence[CreatableReplicaAssignment]
    configs: Sequence[CreatableTopicConfig]
    def __init__(
        self,
        *,
        name: str = ...,
        num_partitions: int = ...,
        replication_factor: int = ...,
        assignments: Sequence[CreatableReplicaAssignment] = ...,
        configs: Sequence[CreatableTopicConfig] = ...,
    ) -> None: ...

class CreatableReplicaAssignment(Message):
    partition_index: int
    broker_ids: Sequence[int]
    def __init__(self, *, partition_index: int = ..., broker_ids: Sequence[int] = ...) -> None: ...

class CreatableTopicConfig(Message):
    name: str
    value: str | None
    def __init__(self, *, name: str = ..., value: str | None = ...) -> None: ...
