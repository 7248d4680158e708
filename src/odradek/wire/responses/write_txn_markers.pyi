"""Made by tools/stubs from definitions/write_txn_markers.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class WriteTxnMarkersResponse(Message):
    markers: Sequence[WritableTxnMarkerResult]
    def __init__(self, *, markers: Sequence[WritableTxnMarkerResult] = ...) -> None: ...

class WritableTxnMarkerResult(Message):
    producer_id: int
    topics: Sequence[WritableTxnMarkerTopicResult]
    def __init__(
        self, *, producer_id: int = ..., topics: Sequence[WritableTxnMarkerTopicResult] = ...
    ) -> None: ...

class WritableTxnMarkerTopicResult(Message):
    name: str
    partitions: Sequence[WritableTxnMarkerPartitionResult]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[WritableTxnMarkerPartitionResult] = ...
    ) -> None: ...

class WritableTxnMarkerPartitionResult(Message):
    partition_index: int
    error_code: int
    def __init__(self, *, partition_index: int = ..., error_code: int = ...) -> None: ...
