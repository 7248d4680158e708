"""Made by tools/stubs from definitions/list_partition_reassignments.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class ListPartitionReassignmentsResponse(Message):
    throttle_time: int
    error_code: int
    error_message: str | None
    topics: Sequence[OngoingTopicReassignment]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        topics: Sequence[OngoingTopicReassignment] = ...,
    ) -> None: ...

class OngoingTopicReassignment(Message):
    name: str
    partitions: Sequence[OngoingPartitionReassignment]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[OngoingPartitionReassignment] = ...
    ) -> None: ...

class OngoingPartitionReassignment(Message):
    partition_index: int
    replicas: Sequence[int]
    adding_replicas: Sequence[int]
    removing_replicas: Sequence[int]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        replicas: Sequence[int] = ...,
        adding_replicas: Sequence[int] = ...,
        removing_replicas: Sequence[int] = ...,
    ) -> None: ...
