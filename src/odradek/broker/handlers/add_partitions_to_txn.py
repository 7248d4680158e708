"""AddPartitionsToTxn v0-v5: sent by clients up to v3, by brokers for several transactions since v4."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Protocol

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.handlers.end_txn import told
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.metadata.publisher import MetadataPublisher
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.add_partitions_to_txn import AddPartitionsToTxnRequest

_LAST_OF_CLIENTS = 3
_FIRST_WITH_ABORTABLE = 5


class Needs(Protocol):
    metadata: MetadataPublisher
    slices: Slices
    transactions: TransactionCoordinator


@serves(ApiKey.ADD_PARTITIONS_TO_TXN, min_version=0, max_version=5)
async def add_partitions_to_txn(ctx: RequestContext[Needs], request: "AddPartitionsToTxnRequest") -> Any:
    types = responses.add_partitions_to_txn
    results = []
    slices = ctx.services.slices
    pace = slices.pacer()
    for txn in request.transactions:
        producer = ProducerIdAndEpoch(txn.producer_id, txn.producer_epoch)
        partitions = await slices.run(_partitions(txn.topics))
        codes = await _add(ctx, txn.transactional_id, producer, partitions, txn.verify_only)
        results.append(
            types.AddPartitionsToTxnResult(
                transactional_id=txn.transactional_id, topic_results=await slices.run(_by_topic(types, codes))
            )
        )
        await pace(4 * STEP)
    return types.AddPartitionsToTxnResponse(results_by_transaction=results)


def _partitions(topics: Sequence[Any]) -> Paced[list[TopicPartition]]:
    """The partitions without duplicates: each is answered once."""
    partitions: dict[TopicPartition, None] = {}
    for topic in topics:
        yield FEW
        for index in topic.partitions:
            partitions[TopicPartition(topic.name, index)] = None
            yield FEW
    return list(partitions)


async def _add(
    ctx: RequestContext[Needs],
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: list[TopicPartition],
    verify_only: bool,
) -> dict[TopicPartition, ErrorCode]:
    """One error code per partition. If a partition does not exist, none is added."""
    topics = ctx.services.metadata.image.topics_by_name
    refused = {}
    all_known = True
    pace = ctx.services.slices.pacer()
    for tp in partitions:
        known = tp.topic in topics and tp.partition in topics[tp.topic].partitions
        refused[tp] = ErrorCode.OPERATION_NOT_ATTEMPTED if known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        all_known = all_known and known
        await pace(FEW)
    if not all_known:
        return refused
    transactions = ctx.services.transactions
    try:
        if verify_only:
            codes = await transactions.verify_partitions(transactional_id, producer, partitions)
            return dict(zip(partitions, codes, strict=True))
        from_client = ctx.api_version <= _LAST_OF_CLIENTS
        code = await transactions.add_partitions(
            transactional_id,
            producer,
            partitions,
            0 if from_client else EPOCH_PER_TRANSACTION,
            ctx.connection.number if from_client else None,
        )
    except KafkaError as e:
        code = told(e.code, ctx.api_version, _FIRST_WITH_ABORTABLE)
    return dict.fromkeys(partitions, code)


def _by_topic(types: Any, codes: dict[TopicPartition, ErrorCode]) -> Paced[list[Any]]:
    topics: dict[str, list[Any]] = {}
    for tp, code in codes.items():
        topics.setdefault(tp.topic, []).append(
            types.AddPartitionsToTxnPartitionResult(partition_index=tp.partition, partition_error_code=code)
        )
        yield STEP
    results = []
    for name, rows in topics.items():
        results.append(types.AddPartitionsToTxnTopicResult(name=name, results_by_partition=rows))
        yield STEP
    return results
