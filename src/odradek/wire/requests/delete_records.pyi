"""Made by tools/stubs from definitions/delete_records.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DeleteRecordsRequest(Message):
    topics: Sequence[DeleteRecordsTopic]
    timeout: int
    def __init__(self, *, topics: Sequence[DeleteRecordsTopic] = ..., timeout: int = ...) -> None: ...

class DeleteRecordsTopic(Message):
    name: str
    partitions: Sequence[DeleteRecordsPartition]
    def __init__(self, *, name: str = ..., partitions: Sequence[DeleteRecordsPartition] = ...) -> None: ...

class DeleteRecordsPartition(Message):
    partition_index: int
    offset: int
    def __init__(self, *, partition_index: int = ..., offset: int = ...) -> None: ...
