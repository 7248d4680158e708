"""Made by tools/stubs from definitions/streams_group_heartbeat.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class StreamsGroupHeartbeatRequest(Message):
    group_id: str
    member_id: str
    member_epoch: int
    endpoint_information_epoch: int
    instance_id: str | None
    rack_id: str | None
    rebalance_timeout: int
    topology: Topology | None
    active_tasks: Sequence[TaskIds] | None
    standby_tasks: Sequence[TaskIds] | None
    warmup_tasks: Sequence[TaskIds] | None
    process_id: str | None
    user_endpoint: Endpoint | None
    client_tags: Sequence[KeyValue] | None
    task_offsets: Sequence[TaskOffset] | None
    task_end_offsets: Sequence[TaskOffset] | None
    shutdown_application: bool
    def __init__(
        self,
        *,
        group_id: str = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        endpoint_information_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        rebalance_timeout: int = ...,
        topology: Topology | None = ...,
        active_tasks: Sequence[TaskIds] | None = ...,
        standby_tasks: Sequence[TaskIds] | None = ...,
        warmup_tasks: Sequence[TaskIds] | None = ...,
        process_id: str | None = ...,
        user_endpoint: Endpoint | None = ...,
        client_tags: Sequence[KeyValue] | None = ...,
        task_offsets: Sequence[TaskOffset] | None = ...,
        task_end_offsets: Sequence[TaskOffset] | None = ...,
        shutdown_application: bool = ...,
    ) -> None: ...

class Topology(Message):
    epoch: int
    subtopologies: Sequence[Subtopology]
    def __init__(self, *, epoch: int = ..., subtopologies: Sequence[Subtopology] = ...) -> None: ...

class Subtopology(Message):
    subtopology_id: str
    source_topics: Sequence[str]
    source_topic_regex: Sequence[str]
    state_changelog_topics: Sequence[TopicInfo]
    repartition_sink_topics: Sequence[str]
    repartition_source_topics: Sequence[TopicInfo]
    copartition_groups: Sequence[CopartitionGroup]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        source_topics: Sequence[str] = ...,
        source_topic_regex: Sequence[str] = ...,
        state_changelog_topics: Sequence[TopicInfo] = ...,
        repartition_sink_topics: Sequence[str] = ...,
        repartition_source_topics: Sequence[TopicInfo] = ...,
        copartition_groups: Sequence[CopartitionGroup] = ...,
    ) -> None: ...

class TopicInfo(Message):
    name: str
    partitions: int
    replication_factor: int
    topic_configs: Sequence[KeyValue]
    def __init__(
        self,
        *,
        name: str = ...,
        partitions: int = ...,
        replication_factor: int = ...,
        topic_configs: Sequence[KeyValue] = ...,
    ) -> None: ...

class KeyValue(Message):
    key: str
    value: str
    def __init__(self, *, key: str = ..., value: str = ...) -> None: ...

class CopartitionGroup(Message):
    source_topics: Sequence[int]
    source_topic_regex: Sequence[int]
    repartition_source_topics: Sequence[int]
    def __init__(
        self,
        *,
        source_topics: Sequence[int] = ...,
        source_topic_regex: Sequence[int] = ...,
        repartition_source_topics: Sequence[int] = ...,
    ) -> None: ...

class TaskIds(Message):
    subtopology_id: str
    partitions: Sequence[int]
    def __init__(self, *, subtopology_id: str = ..., partitions: Sequence[int] = ...) -> None: ...

class Endpoint(Message):
    host: str
    port: int
    def __init__(self, *, host: str = ..., port: int = ...) -> None: ...

class TaskOffset(Message):
    subtopology_id: str
    partition: int
    offset: int
    def __init__(self, *, subtopology_id: str = ..., partition: int = ..., offset: int = ...) -> None: ...
