"""Made by tools/stubs from definitions/streams_group_describe.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class StreamsGroupDescribeResponse(Message):
    throttle_time: int
    groups: Sequence[DescribedGroup]
    def __init__(self, *, throttle_time: int = ..., groups: Sequence[DescribedGroup] = ...) -> None: ...

class DescribedGroup(Message):
    error_code: int
    error_message: str | None
    group_id: str
    group_state: str
    group_epoch: int
    assignment_epoch: int
    topology: Topology | None
    members: Sequence[Member]
    authorized_operations: int
    def __init__(
        self,
        *,
        error_code: int = ...,
        error_message: str | None = ...,
        group_id: str = ...,
        group_state: str = ...,
        group_epoch: int = ...,
        assignment_epoch: int = ...,
        topology: Topology | None = ...,
        members: Sequence[Member] = ...,
        authorized_operations: int = ...,
    ) -> None: ...

class Topology(Message):
    epoch: int
    subtopologies: Sequence[Subtopology] | None
    def __init__(self, *, epoch: int = ..., subtopologies: Sequence[Subtopology] | None = ...) -> None: ...

class Subtopology(Message):
    subtopology_id: str
    source_topics: Sequence[str]
    repartition_sink_topics: Sequence[str]
    state_changelog_topics: Sequence[TopicInfo]
    repartition_source_topics: Sequence[TopicInfo]
    def __init__(
        self,
        *,
        subtopology_id: str = ...,
        source_topics: Sequence[str] = ...,
        repartition_sink_topics: Sequence[str] = ...,
        state_changelog_topics: Sequence[TopicInfo] = ...,
        repartition_source_topics: Sequence[TopicInfo] = ...,
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

class Member(Message):
    member_id: str
    member_epoch: int
    instance_id: str | None
    rack_id: str | None
    client_id: str
    client_host: str
    topology_epoch: int
    process_id: str
    user_endpoint: Endpoint | None
    client_tags: Sequence[KeyValue]
    task_offsets: Sequence[TaskOffset]
    task_end_offsets: Sequence[TaskOffset]
    assignment: Assignment
    target_assignment: Assignment
    is_classic: bool
    def __init__(
        self,
        *,
        member_id: str = ...,
        member_epoch: int = ...,
        instance_id: str | None = ...,
        rack_id: str | None = ...,
        client_id: str = ...,
        client_host: str = ...,
        topology_epoch: int = ...,
        process_id: str = ...,
        user_endpoint: Endpoint | None = ...,
        client_tags: Sequence[KeyValue] = ...,
        task_offsets: Sequence[TaskOffset] = ...,
        task_end_offsets: Sequence[TaskOffset] = ...,
        assignment: Assignment = ...,
        target_assignment: Assignment = ...,
        is_classic: bool = ...,
    ) -> None: ...

class Endpoint(Message):
    host: str
    port: int
    def __init__(self, *, host: str = ..., port: int = ...) -> None: ...

class TaskOffset(Message):
    subtopology_id: str
    partition: int
    offset: int
    def __init__(self, *, subtopology_id: str = ..., partition: int = ..., offset: int = ...) -> None: ...

class Assignment(Message):
    active_tasks: Sequence[TaskIds]
    standby_tasks: Sequence[TaskIds]
    warmup_tasks: Sequence[TaskIds]
    def __init__(
        self,
        *,
        active_tasks: Sequence[TaskIds] = ...,
        standby_tasks: Sequence[TaskIds] = ...,
        warmup_tasks: Sequence[TaskIds] = ...,
    ) -> None: ...

class TaskIds(Message):
    subtopology_id: str
    partitions: Sequence[int]
    def __init__(self, *, subtopology_id: str = ..., partitions: Sequence[int] = ...) -> None: ...
