"""Made by tools/stubs from definitions/txn_offset_commit.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class TxnOffsetCommitResponse(Message):
    throttle_time: int
    topics: Sequence[TxnOffsetCommitResponseTopic]
    def __init__(
        self, *, throttle_time: int = ..., topics: Sequence[TxnOffsetCommitResponseTopic] = ...
    ) -> None: ...

class TxnOffsetCommitResponseTopic(Message):
    name: str
    partitions: Sequence[TxnOffsetCommitResponsePartition]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[TxnOffsetCommitResponsePartition] = ...
    ) -> None: ...

class TxnOffsetCommitResponsePartition(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
