"""Made by tools/stubs from definitions/describe_log_dirs.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeLogDirsResponse(Message):
    throttle_time: int
    error_code: int
    results: Sequence[DescribeLogDirsResult]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        error_code: int = ...,
        results: Sequence[DescribeLogDirsResult] = ...,
    ) -> None: ...

class DescribeLogDirsResult(Message):
    error_code: int
    log_dir: str
    topics: Sequence[DescribeLogDirsTopic]
    total_bytes: int
    usable_bytes: int
    is_cordoned: bool
    def __init__(
        self,
        *,
        error_code: int = ...,
        log_dir: str = ...,
        topics: Sequence[DescribeLogDirsTopic] = ...,
        total_bytes: int = ...,
        usable_bytes: int = ...,
        is_cordoned: bool = ...,
    ) -> None: ...

class DescribeLogDirsTopic(Message):
    name: str
    partitions: Sequence[DescribeLogDirsPartition]
    def __init__(self, *, name: str = ..., partitions: Sequence[DescribeLogDirsPartition] = ...) -> None: ...

class DescribeLogDirsPartition(Message):
    partition_index: int
    partition_size: int
    offset_lag: int
    is_future_key: bool
    def __init__(
        self,
        *,
        partition_index: int = ...,
        partition_size: int = ...,
        offset_lag: int = ...,
        is_future_key: bool = ...,
    ) -> None: ...
