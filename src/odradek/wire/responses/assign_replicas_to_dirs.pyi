"""Made by tools/stubs from definitions/assign_replicas_to_dirs.py."""

from collections.abc import Sequence
from uuid import UUID

from odradek.wire.classes import Message

class AssignReplicasToDirsResponse(Message):
    throttle_time: int
    error_code: int
    directories: Sequence[DirectoryData]
    def __init__(
        self, *, throttle_time: int = ..., error_code: int = ..., directories: Sequence[DirectoryData] = ...
    ) -> None: ...

class DirectoryData(Message):
    id_: UUID
    topics: Sequence[TopicData]
    def __init__(self, *, id_: UUID = ..., topics: Sequence[TopicData] = ...) -> None: ...

class TopicData(Message):
    topic_id: UUID
    partitions: Sequence[PartitionData]
    def __init__(self, *, topic_id: UUID = ..., partitions: Sequence[PartitionData] = ...) -> None: ...

class PartitionData(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
