"""TxnOffsetCommit v0-v5: offsets that take effect when their transaction commits, fenced by the group's
generation.

Since v5 the commit itself adds the offsets' partition to the transaction. Before, AddOffsetsToTxn has added
it, and the coordinator is asked whether it has.
"""

from typing import TYPE_CHECKING, Any, Final, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.coordinators.groups.commands import CommitOffsets, OffsetToCommit
from odradek.coordinators.groups.coordinator import GroupCoordinator
from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.coordinators.transactions.speakers import Speakers
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, ProducerIdAndEpoch, TopicPartition
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.manager import ReplicaManager
from odradek.runtime.slices import FEW, STEP, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.replication.partition import Partition
    from odradek.wire.requests.txn_offset_commit import TxnOffsetCommitRequest

_FIRST_WITH_ABORTABLE: Final = 4
_FIRST_THAT_ADDS: Final = 5
_ASK_AGAIN = frozenset({ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NETWORK_EXCEPTION})


class Needs(Protocol):
    groups: GroupCoordinator
    metadata: MetadataPublisher
    offset_speakers: Speakers
    replicas: ReplicaManager
    slices: Slices
    txn_partitions: AddPartitionsToTxnManager


@serves(ApiKey.TXN_OFFSET_COMMIT, min_version=0, max_version=5)
async def txn_offset_commit(ctx: RequestContext[Needs], request: "TxnOffsetCommitRequest") -> Any:
    types = responses.txn_offset_commit
    known = ctx.services.metadata.image.topics_by_name
    topics, accepted, offsets = [], [], []
    pace = ctx.services.slices.pacer()
    for topic in request.topics:
        found = known.get(topic.name)
        rows = []
        await pace(STEP)
        for entry in topic.partitions:
            await pace(STEP)
            row = types.TxnOffsetCommitResponsePartition(partition_index=entry.partition_index)
            rows.append(row)
            if found is None or entry.partition_index not in found.partitions:
                row.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                continue
            accepted.append(row)
            offsets.append(
                OffsetToCommit(
                    found.name,
                    found.id,
                    entry.partition_index,
                    entry.committed_offset,
                    entry.committed_leader_epoch,
                    entry.committed_metadata or "",
                )
            )
        topics.append(types.TxnOffsetCommitResponseTopic(name=topic.name, partitions=rows))
    if offsets:
        codes = await _commit(ctx, request, offsets)
        for row, code in zip(accepted, codes, strict=True):
            row.error_code = code
            await pace(FEW)
    return types.TxnOffsetCommitResponse(topics=topics)


async def _commit(
    ctx: RequestContext[Needs], request: "TxnOffsetCommitRequest", offsets: list[OffsetToCommit]
) -> list[int]:
    """One error code per offset."""
    groups = ctx.services.groups
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    try:
        if not request.group_id:
            raise KafkaError(ErrorCode.INVALID_GROUP_ID)
        await _join_transaction(ctx, request, producer, groups.partition_for(request.group_id))
    except KafkaError as e:
        return [_told(e.code, ctx.api_version)] * len(offsets)
    if ctx.api_version < _FIRST_THAT_ADDS:
        # A delayed request of the last transaction would move the group's offsets back.
        ctx.services.offset_speakers.require_newest(request.transactional_id, ctx.connection.number)
    ctx.services.offset_speakers.heard(request.transactional_id, ctx.connection.number)
    return await groups.commit_offsets(
        CommitOffsets(
            request.group_id,
            request.member_id,
            request.group_instance_id,
            request.generation_id,
            offsets,
            unknown_group_is_illegal_generation=True,
            producer=producer,
        )
    )


async def _join_transaction(
    ctx: RequestContext[Needs], request: "TxnOffsetCommitRequest", producer: ProducerIdAndEpoch, index: int
) -> None:
    """Add the offsets' partition to the transaction, or verify it. Raises KafkaError."""
    services = ctx.services
    partition = services.replicas.find(GROUP_METADATA_TOPIC, index)
    if partition is None:
        raise KafkaError(ErrorCode.NOT_COORDINATOR)
    if _is_ongoing_here(partition, producer):
        return
    adds = ctx.api_version >= _FIRST_THAT_ADDS
    tp = TopicPartition(GROUP_METADATA_TOPIC, index)
    if adds:
        await services.txn_partitions.add_with_retries(request.transactional_id, producer, [tp])
    elif services.txn_partitions.verifies:
        guard = partition.verification.begin(producer.producer_id)
        try:
            await _verify(services, request.transactional_id, producer, tp)
            if not (_is_ongoing_here(partition, producer) or partition.verification.holds(guard)):
                raise KafkaError(ErrorCode.INVALID_TXN_STATE)
        finally:
            partition.verification.release(guard)


def _is_ongoing_here(partition: "Partition", producer: ProducerIdAndEpoch) -> bool:
    """Whether the transaction is open here. First raises INVALID_PRODUCER_EPOCH for a zombie."""
    if partition.log.producers.is_fenced(*producer):
        raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH)
    return partition.log.producers.in_transaction(*producer)


async def _verify(
    services: Needs, transactional_id: str, producer: ProducerIdAndEpoch, tp: TopicPartition
) -> None:
    (code,) = await services.txn_partitions.verify(transactional_id, producer, [tp])
    if code is not ErrorCode.NONE:
        raise KafkaError(code)


def _told(code: ErrorCode, version: int) -> ErrorCode:
    if code is ErrorCode.PRODUCER_FENCED:
        return ErrorCode.INVALID_PRODUCER_EPOCH
    if code is ErrorCode.TRANSACTION_ABORTABLE and version < _FIRST_WITH_ABORTABLE:
        return ErrorCode.INVALID_TXN_STATE
    if code in _ASK_AGAIN or (code is ErrorCode.CONCURRENT_TRANSACTIONS and version < _FIRST_THAT_ADDS):
        return ErrorCode.COORDINATOR_NOT_AVAILABLE
    return code
