"""Transactions over the wire: listing, describing, ending them. commands/txn.py shows the tables."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from odradek.cli.errors import Failure, Usage, kafka_failure
from odradek.cli.requests.cluster_access import ClusterAccess, TopicInfo
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMEOUT_MS, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

ENDED = ("Empty", "CompleteCommit", "CompleteAbort", "Dead")
# From version 2 on a marker needs a higher epoch than the transaction's, which only a coordinator gives.
_MARKER_VERSION = 1


class Listed(NamedTuple):
    transactional_id: str
    state: str
    producer_id: int
    coordinator: int


class Described(NamedTuple):
    """What a coordinator knows of a transactional id; None where no transaction is open."""

    transactional_id: str
    state: str
    producer_id: int
    producer_epoch: int
    coordinator: int
    timeout_ms: int
    start_ms: int | None
    partitions: list[TopicPartition]


class ActiveProducer(NamedTuple):
    """A producer as the leader of a partition knows it; `start_offset` is of its open transaction."""

    tp: TopicPartition
    producer_id: int
    producer_epoch: int
    last_sequence: int | None
    last_timestamp_ms: int | None
    coordinator_epoch: int | None
    start_offset: int | None


def list_transactions(
    cluster: ClusterAccess,
    states: Sequence[str] = (),
    producer_ids: Iterable[int] = (),
    older_than_ms: int | None = None,
    pattern: str | None = None,
) -> list[Listed]:
    """The transactional ids of all coordinators, by name."""
    types = request_types(ApiKey.LIST_TRANSACTIONS)
    request = types.ListTransactionsRequest(
        state_filters=list(states),
        producer_id_filters=list(producer_ids),
        duration_filter=-1 if older_than_ms is None else older_than_ms,
        transactional_id_pattern=pattern,
    )
    found = []
    for broker_id in cluster.broker_ids():
        response = cluster.send(ApiKey.LIST_TRANSACTIONS, request, node_id=broker_id)
        if response.error_code:
            error = KafkaError(ErrorCode(response.error_code))
            raise kafka_failure(f"transactions of broker {broker_id}", "", error)
        if response.unknown_state_filters:
            raise Usage(f"--state {response.unknown_state_filters[0]}: no such state")
        found += [
            Listed(t.transactional_id, t.transaction_state, t.producer_id, broker_id)
            for t in response.transaction_states
        ]
    return sorted(found)


def describe_transaction(cluster: ClusterAccess, transactional_id: str) -> Described:
    types = request_types(ApiKey.DESCRIBE_TRANSACTIONS)
    coordinator = cluster.transaction_coordinator(transactional_id)
    request = types.DescribeTransactionsRequest(transactional_ids=[transactional_id])
    (found,) = cluster.send(ApiKey.DESCRIBE_TRANSACTIONS, request, node_id=coordinator).transaction_states
    if found.error_code:
        error = KafkaError(ErrorCode(found.error_code))
        raise kafka_failure(f"transactional id {transactional_id}", transactional_id, error)
    return Described(
        found.transactional_id,
        found.transaction_state,
        found.producer_id,
        found.producer_epoch,
        coordinator,
        found.transaction_timeout,
        found.transaction_start_time if found.transaction_start_time >= 0 else None,
        sorted(TopicPartition(topic.topic, p) for topic in found.topics for p in topic.partitions),
    )


def active_producers(
    cluster: ClusterAccess, topics: Sequence[TopicInfo], partitions: Sequence[TopicPartition]
) -> list[ActiveProducer]:
    """The producers that the leaders of some partitions remember, by partition and id."""
    types = request_types(ApiKey.DESCRIBE_PRODUCERS)

    def request(wanted: Mapping[str, list[int]]) -> Any:
        return types.DescribeProducersRequest(
            topics=[types.TopicRequest(name=name, partition_indexes=i) for name, i in wanted.items()]
        )

    found = []
    for response in cluster.send_to_leaders(ApiKey.DESCRIBE_PRODUCERS, partitions, topics, request):
        for topic in response.topics:
            for partition in topic.partitions:
                tp = TopicPartition(topic.name, partition.partition_index)
                if partition.error_code:
                    error = KafkaError(ErrorCode(partition.error_code), partition.error_message)
                    raise kafka_failure(f"partition {tp}", tp.topic, error)
                found += [_producer(tp, producer) for producer in partition.active_producers]
    return sorted(found, key=lambda producer: (producer.tp, producer.producer_id))


def _producer(tp: TopicPartition, state: Any) -> ActiveProducer:
    def known(value: int) -> int | None:
        return value if value >= 0 else None

    return ActiveProducer(
        tp,
        state.producer_id,
        state.producer_epoch,
        known(state.last_sequence),
        known(state.last_timestamp),
        known(state.coordinator_epoch),
        known(state.current_txn_start_offset),
    )


def owners(cluster: ClusterAccess, producer_ids: Iterable[int]) -> dict[int, Described]:
    """What coordinators know of these producers; those that no coordinator knows are left out."""
    ids = sorted(set(producer_ids))
    if not ids:
        return {}
    found = {}
    for listed in list_transactions(cluster, producer_ids=ids):
        try:
            found[listed.producer_id] = describe_transaction(cluster, listed.transactional_id)
        except Failure:
            continue  # it has expired between the two questions
    return found


def is_hanging(producer: ActiveProducer, owner: Described | None) -> bool:
    """Is its transaction open on the partition, and no coordinator is going to end it there?"""
    if producer.start_offset is None:
        return False
    if owner is None or owner.producer_id != producer.producer_id:
        return True
    return owner.state in ENDED or producer.tp not in owner.partitions


def write_abort(cluster: ClusterAccess, topics: Sequence[TopicInfo], producer: ActiveProducer) -> None:
    """An abort marker for one transaction, written by the leader of its partition."""
    types = request_types(ApiKey.WRITE_TXN_MARKERS)

    def request(wanted: Mapping[str, list[int]]) -> Any:
        return types.WriteTxnMarkersRequest(
            markers=[
                types.WritableTxnMarker(
                    producer_id=producer.producer_id,
                    producer_epoch=producer.producer_epoch,
                    transaction_result=False,
                    coordinator_epoch=producer.coordinator_epoch or 0,
                    transaction_version=_MARKER_VERSION,
                    topics=[
                        types.WritableTxnMarkerTopic(name=name, partition_indexes=i)
                        for name, i in wanted.items()
                    ],
                )
            ]
        )

    for response in cluster.send_to_leaders(ApiKey.WRITE_TXN_MARKERS, [producer.tp], topics, request):
        codes = [p.error_code for m in response.markers for t in m.topics for p in t.partitions]
        for code in filter(None, codes):
            raise kafka_failure(f"partition {producer.tp}", producer.tp.topic, KafkaError(ErrorCode(code)))


def fence(cluster: ClusterAccess, described: Described) -> None:
    """Have the coordinator abort what is open, by taking the transactional id from its producer."""
    from odradek.client.batches import NOBODY
    from odradek.client.transaction_requests import TransactionRequests

    async def fenced() -> None:
        requests = TransactionRequests(cluster.client.client, described.transactional_id)
        deadline = asyncio.get_running_loop().time() + cluster.timeout_ms / 1000
        try:
            await requests.init(
                NOBODY, _taken_for_ms(described.timeout_ms), deadline, enable_2pc=False, keep_prepared=False
            )
        finally:
            requests.close()

    with cluster.failing(f"transactional id {described.transactional_id}", described.transactional_id):
        cluster.client.call(fenced)


def _taken_for_ms(timeout_ms: int) -> int:
    """The timeout stays what it was, unless it was that of two-phase commit, which is none."""
    return timeout_ms if timeout_ms < NO_TIMEOUT_MS else 60_000


def commit_decided(cluster: ClusterAccess, described: Described) -> None:
    """Commit an open transaction, as an external coordinator has decided."""
    from odradek.client.transaction_requests import TransactionRequests
    from odradek.core.types import ProducerIdAndEpoch

    async def committed() -> None:
        requests = TransactionRequests(cluster.client.client, described.transactional_id)
        deadline = asyncio.get_running_loop().time() + cluster.client.client.api_timeout_ms / 1000
        try:
            identity = ProducerIdAndEpoch(described.producer_id, described.producer_epoch)
            await requests.end(identity, True, deadline, version_1=False)
        finally:
            requests.close()

    with cluster.failing(f"transactional id {described.transactional_id}", described.transactional_id):
        cluster.client.call(committed)


def decided_rows(cluster: ClusterAccess, found: Described) -> int:
    """How many records of an open transaction a Spark query has decided to commit; 0 where none has."""
    return decisions(cluster).get((found.transactional_id, found.producer_id, found.producer_epoch), 0)


def decisions(cluster: ClusterAccess) -> dict[tuple[str, int, int], int]:
    """How many records each transaction has that a Spark query decided to commit; by id, producer, epoch."""
    from odradek.spark.ledger.ledger import LEDGER_TOPIC
    from odradek.spark.ledger.ledger_log import LedgerLog, is_there

    client = cluster.client
    with cluster.failing(LEDGER_TOPIC):
        if not client.call(is_there, client.client):
            return {}
        view = client.call(LedgerLog(client.client).read)
    return {
        participant[:3]: participant.rows
        for entry in view.entries.values()
        for participant in entry.decision.participants
    }
