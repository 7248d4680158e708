"""Made by tools/stubs from definitions/write_txn_markers.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class WriteTxnMarkersRequest(Message):
    markers: Sequence[WritableTxnMarker]
    def __init__(self, *, markers: Sequence[WritableTxnMarker] = ...) -> None: ...

class WritableTxnMarker(Message):
    producer_id: int
    producer_epoch: int
    transaction_result: bool
    topics: Sequence[WritableTxnMarkerTopic]
    coordinator_epoch: int
    transaction_version: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        transaction_result: bool = ...,
        topics: Sequence[WritableTxnMarkerTopic] = ...,
        coordinator_epoch: int = ...,
        transaction_version: int = ...,
    ) -> None: ...

class WritableTxnMarkerTopic(Message):
    name: str
    partition_indexes: Sequence[int]
    def __init__(self, *, name: str = ..., partition_indexes: Sequence[int] = ...) -> None: ...
