"""AddPartitionsToTxn v0-v5: a client's request up to v3, a broker's for several transactions from v4 on."""

from collections.abc import Sequence
from typing import Any

from odradek.broker.dispatch import RequestContext, serves
from odradek.broker.handlers.end_txn import told
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION, Identity
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types

_LAST_OF_CLIENTS = 3
_FIRST_WITH_ABORTABLE = 5


@serves(ApiKey.ADD_PARTITIONS_TO_TXN, min_version=0, max_version=5)
async def add_partitions_to_txn(ctx: RequestContext, request: Any) -> Any:
    types = response_types(ApiKey.ADD_PARTITIONS_TO_TXN)
    results = []
    for txn in request.transactions:
        producer = Identity(txn.producer_id, txn.producer_epoch)
        codes = await _add(ctx, txn.transactional_id, producer, _partitions(txn.topics), txn.verify_only)
        results.append(
            types.AddPartitionsToTxnResult(
                transactional_id=txn.transactional_id, topic_results=_by_topic(types, codes)
            )
        )
    return types.AddPartitionsToTxnResponse(results_by_transaction=results)


def _partitions(topics: Sequence[Any]) -> list[TopicPartition]:
    return [TopicPartition(topic.name, index) for topic in topics for index in topic.partitions]


async def _add(
    ctx: RequestContext,
    transactional_id: str,
    producer: Identity,
    partitions: list[TopicPartition],
    verify_only: bool,
) -> dict[TopicPartition, ErrorCode]:
    """A code for each partition; where one does not exist, nothing is attempted."""
    topics = ctx.node.metadata.image.topics_by_name
    known = [tp.topic in topics and tp.partition in topics[tp.topic].partitions for tp in partitions]
    if not all(known):
        return {
            tp: ErrorCode.OPERATION_NOT_ATTEMPTED if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            for tp, exists in zip(partitions, known, strict=True)
        }
    transactions = ctx.node.transactions
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


def _by_topic(types: Any, codes: dict[TopicPartition, ErrorCode]) -> list[Any]:
    topics: dict[str, list[Any]] = {}
    for tp, code in codes.items():
        topics.setdefault(tp.topic, []).append(
            types.AddPartitionsToTxnPartitionResult(partition_index=tp.partition, partition_error_code=code)
        )
    return [
        types.AddPartitionsToTxnTopicResult(name=name, results_by_partition=rows)
        for name, rows in topics.items()
    ]
