"""Made by tools/stubs from definitions/describe_producers.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class DescribeProducersResponse(Message):
    throttle_time: int
    topics: Sequence[TopicResponse]
    def __init__(self, *, throttle_time: int = ..., topics: Sequence[TopicResponse] = ...) -> None: ...

class TopicResponse(Message):
    name: str
    partitions: Sequence[PartitionResponse]
    def __init__(self, *, name: str = ..., partitions: Sequence[PartitionResponse] = ...) -> None: ...

class PartitionResponse(Message):
    partition_index: int
    error_code: int
    error_message: str | None
    active_producers: Sequence[ProducerState]
    def __init__(
        self,
        *,
        partition_index: int = ...,
        error_code: int = ...,
        error_message: str | None = ...,
        active_producers: Sequence[ProducerState] = ...,
    ) -> None: ...

class ProducerState(Message):
    producer_id: int
    producer_epoch: int
    last_sequence: int
    last_timestamp: int
    coordinator_epoch: int
    current_txn_start_offset: int
    def __init__(
        self,
        *,
        producer_id: int = ...,
        producer_epoch: int = ...,
        last_sequence: int = ...,
        last_timestamp: int = ...,
        coordinator_epoch: int = ...,
        current_txn_start_offset: int = ...,
    ) -> None: ...
