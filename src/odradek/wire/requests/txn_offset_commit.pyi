"""Made by tools/stubs from definitions/txn_offset_commit.py."""

from collections.abc import Sequence

from odradek.wire.classes import Message

class TxnOffsetCommitRequest(Message):
    transactional_id: str
    group_id: str
    producer_id: int
    producer_epoch: int
    generation_id: int
    member_id: str
    group_instance_id: str | None
    topics: Sequence[TxnOffsetCommitRequestTopic]
    def __init__(
        self,
        *,
        transactional_id: str = ...,
        group_id: str = ...,
        producer_id: int = ...,
        producer_epoch: int = ...,
        generation_id: int = ...,
        member_id: str = ...,
        group_instance_id: str | None = ...,
        topics: Sequence[TxnOffsetCommitRequestTopic] = ...,
    ) -> None: ...

class TxnOffsetCommitRequestTopic(Message):
    name: str
    partitions: Sequence[TxnOffsetCommitRequestPartition]
    def __init__(
        self, *, name: str = ..., partitions: Sequence[TxnOffsetCommitRequestPartition] = ...
    ) -> None: ...

class TxnOffsetCommitRequestPartition(Message):
    partition_index: int
    committed_offset: int
    committed_leader_epoch: int
    committed_metadata: str | None
    def __init__(
        self,
        *,
        partition_index: int = ...,
        committed_offset: int = ...,
        committed_leader_epoch: int = ...,
        committed_metadata: str | None = ...,
    ) -> None: ...
