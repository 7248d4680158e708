"""Made by tools/stubs from definitions/alter_replica_log_dirs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterReplicaLogDirsResponse(Message):
    throttle_time: int
    results: Sequence[AlterReplicaLogDirTopicResult]
    def __init__(
        self, *, throttle_time: int = ..., results: Sequence[AlterReplicaLogDirTopicResult] = ...
    ) -> None: ...

class AlterReplicaLogDirTopicResult(Message):
    topic_name: str
    partitions: Sequence[AlterReplicaLogDirPartitionResult]
    def __init__(
        self, *, topic_name: str = ..., partitions: Sequence[AlterReplicaLogDirPartitionResult] = ...
    ) -> None: ...

class AlterReplicaLogDirPartitionResult(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
