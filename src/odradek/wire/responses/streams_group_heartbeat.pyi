"""Made by tools/stubs from definitions/streams_group_heartbeat.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class StreamsGroupHeartbeatResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    member_id: str
    member_epoch: int
    heartbeat_interval: int
    acceptable_recovery_lag: int
    task_offset_interval: int
    status: Sequence[Status] | None
    active_tasks: Sequence[TaskIds] | None
    standby_tasks: Sequence[TaskIds] | None
    warmup_tasks: Sequence[TaskIds] | None
    endpoint_information_epoch: int
    partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        member_id: str = ...,
        member_epoch: int = ...,
        heartbeat_interval: int = ...,
        acceptable_recovery_lag: int = ...,
        task_offset_interval: int = ...,
        status: Sequence[Status] | None = ...,
        active_tasks: Sequence[TaskIds] | None = ...,
        standby_tasks: Sequence[TaskIds] | None = ...,
        warmup_tasks: Sequence[TaskIds] | None = ...,
        endpoint_information_epoch: int = ...,
        partitions_by_user_endpoint: Sequence[EndpointToPartitions] | None = ...,
    ) -> None: ...

class Status(Message):
    status_code: int
    status_detail: str
    def __init__(self, *, status_code: int = ..., status_detail: str = ...) -> None: ...

class TaskIds(Message):
    subtopology_id: str
    partitions: Sequence[int]
    def __init__(self, *, subtopology_id: str = ..., partitions: Sequence[int] = ...) -> None: ...

class EndpointToPartitions(Message):
    user_endpoint: Endpoint
    active_partitions: Sequence[TopicPartition]
    standby_partitions: Sequence[TopicPartition]
    def __init__(
        self,
        *,
        user_endpoint: Endpoint = ...,
        active_partitions: Sequence[TopicPartition] = ...,
        standby_partitions: Sequence[TopicPartition] = ...,
    ) -> None: ...

class Endpoint(Message):
    host: str
    port: int
    def __init__(self, *, host: str = ..., port: int = ...) -> None: ...

class TopicPartition(Message):
    topic: str
    partitions: Sequence[int]
    def __init__(self, *, topic: str = ..., partitions: Sequence[int] = ...) -> None: ...
