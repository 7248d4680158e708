"""Made by tools/stubs from definitions/describe_log_dirs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeLogDirsRequest(Message):
    topics: Sequence[DescribableLogDirTopic] | None
    def __init__(self, *, topics: Sequence[DescribableLogDirTopic] | None = ...) -> None: ...

class DescribableLogDirTopic(Message):
    topic: str
    partitions: Sequence[int]
    def __init__(self, *, topic: str = ..., partitions: Sequence[int] = ...) -> None: ...
