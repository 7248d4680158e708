"""Made by tools/stubs from definitions/add_partitions_to_txn.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class AddPartitionsToTxnResponse(Message):
    throttle_time: int
    results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult]
    error_code: int
    results_by_transaction: Sequence[AddPartitionsToTxnResult]
    def __init__(
        self,
        *,
        throttle_time: int = ...,
        results_by_topic_v3_and_below: Sequence[AddPartitionsToTxnTopicResult] = ...,
        error_code: int = ...,
        results_by_transaction: Sequence[AddPartitionsToTxnResult] = ...,
    ) -> None: ...

class AddPartitionsToTxnTopicResult(Message):
    name: str
    results_by_partition: Sequence[AddPartitionsToTxnPartitionResult]
    def __init__(
        self, *, name: str = ..., results_by_partition: Sequence[AddPartitionsToTxnPartitionResult] = ...
    ) -> None: ...

class AddPartitionsToTxnPartitionResult(Message):
    partition_index: int
    partition_error_code: int
    def __init__(self, *, partition_index: int = ..., partition_error_code: int = ...) -> None: ...

class AddPartitionsToTxnResult(Message):
    transactional_id: str
    topic_results: Sequence[AddPartitionsToTxnTopicResult]
    def __init__(
        self, *, transactional_id: str = ..., topic_results: Sequence[AddPartitionsToTxnTopicResult] = ...
    ) -> None: ...
