"""Made by tools/stubs from definitions/alter_replica_log_dirs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AlterReplicaLogDirsRequest(Message):
    dirs: Sequence[AlterReplicaLogDir]
    def __init__(self, *, dirs: Sequence[AlterReplicaLogDir] = ...) -> None: ...

class AlterReplicaLogDir(Message):
    path: str
    topics: Sequence[AlterReplicaLogDirTopic]
    def __init__(self, *, path: str = ..., topics: Sequence[AlterReplicaLogDirTopic] = ...) -> None: ...

class AlterReplicaLogDirTopic(Message):
    name: str
    partitions: Sequence[int]
    def __init__(self, *, name: str = ..., partitions: Sequence[int] = ...) -> None: ...
