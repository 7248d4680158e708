"""The way from a broker to the coordinator of a transactional id, here or on another broker.

Another broker is asked by AddPartitionsToTxn v4-v5, one transaction in each request. Its answers are those of
the coordinator on this node. Who asks again, and when, is decided by the users.
"""

from collections.abc import Callable
from typing import Any, Final, Protocol

from odradek.client.broker_connections import BrokerConnections
from odradek.coordinators.transactions.channels import TransactionChannel
from odradek.coordinators.transactions.metadata import EPOCH_PER_TRANSACTION
from odradek.core.errors import ErrorCode, KafkaError, known_code
from odradek.core.types import NO_LEADER, TRANSACTION_STATE_TOPIC, ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey

_FIRST_OF_BROKERS: Final = 4
_NOT_THERE = frozenset(
    {
        ErrorCode.BROKER_NOT_AVAILABLE,
        # The one who asks leads the partition: the coordinator's broker has yet to hear of it.
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)


class LocalTransactions(TransactionChannel, Protocol):
    def partition_for(self, transactional_id: str) -> int: ...


class TransactionCoordinators:
    """The TransactionChannel of a broker. For `leader_of` see MarkerSender."""

    def __init__(
        self,
        broker_id: int,
        local: LocalTransactions,
        leader_of: Callable[[TopicPartition], int | None],
        connections: BrokerConnections,
    ) -> None:
        self._broker_id = broker_id
        self._local = local
        self._leader_of = leader_of
        self._connections = connections
        self._scope = Scope(lambda error: None)  # each reply has its own error

    def add_partitions(
        self,
        transactional_id: str,
        producer: ProducerIdAndEpoch,
        partitions: list[TopicPartition],
        client_version: int,
    ) -> Reply[ErrorCode]:
        coordinator = self._coordinator_of(transactional_id)
        if coordinator == self._broker_id:
            return self._local.add_partitions(transactional_id, producer, partitions, client_version)
        assert client_version == EPOCH_PER_TRANSACTION, "clients that add by a request ask the coordinator"
        request = _request(transactional_id, producer, partitions, verify_only=False)
        return self._ask(coordinator, request, partitions).then(_all_added)

    def verify_partitions(
        self, transactional_id: str, producer: ProducerIdAndEpoch, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        coordinator = self._coordinator_of(transactional_id)
        if coordinator == self._broker_id:
            return self._local.verify_partitions(transactional_id, producer, partitions)
        request = _request(transactional_id, producer, partitions, verify_only=True)
        return self._ask(coordinator, request, partitions)

    async def close(self) -> None:
        await self._scope.close()
        self._connections.close()

    def _coordinator_of(self, transactional_id: str) -> int:
        """NO_LEADER where nobody coordinates it now, or the topic of transactions does not exist yet."""
        index = self._local.partition_for(transactional_id)
        leader = self._leader_of(TopicPartition(TRANSACTION_STATE_TOPIC, index))
        return NO_LEADER if leader is None else leader

    def _ask(
        self, coordinator: int, request: Any, partitions: list[TopicPartition]
    ) -> Reply[list[ErrorCode]]:
        """One code for each partition. Fails where the coordinator cannot be asked."""
        if coordinator == NO_LEADER:
            return Reply.failed(KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE))
        asking = self._ask_remote(coordinator, request, partitions)
        return Reply.later(self._scope.spawn(asking, name=f"ask coordinator {coordinator}"))

    async def _ask_remote(
        self, coordinator: int, request: Any, partitions: list[TopicPartition]
    ) -> list[ErrorCode]:
        try:
            response = await self._connections.ask(
                coordinator, ApiKey.ADD_PARTITIONS_TO_TXN, request, _FIRST_OF_BROKERS
            )
        except KafkaError as e:
            raise KafkaError(_as_coordinator_error(e.code), e.message) from e
        if response.error_code:
            raise KafkaError(known_code(response.error_code), f"broker {coordinator} refused the question")
        return _codes(response, partitions)


def _request(
    transactional_id: str,
    producer: ProducerIdAndEpoch,
    partitions: list[TopicPartition],
    *,
    verify_only: bool,
) -> Any:
    types = requests.add_partitions_to_txn
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    transaction = types.AddPartitionsToTxnTransaction(
        transactional_id=transactional_id,
        producer_id=producer.producer_id,
        producer_epoch=producer.producer_epoch,
        verify_only=verify_only,
        topics=[
            types.AddPartitionsToTxnTopic(name=name, partitions=indexes) for name, indexes in by_topic.items()
        ],
    )
    return types.AddPartitionsToTxnRequest(transactions=[transaction])


def _codes(response: Any, partitions: list[TopicPartition]) -> list[ErrorCode]:
    """In the order of the partitions. A partition that is not in the response counts as not answered."""
    found = {
        TopicPartition(topic.name, row.partition_index): known_code(row.partition_error_code)
        for transaction in response.results_by_transaction
        for topic in transaction.topic_results
        for row in topic.results_by_partition
    }
    return [_as_coordinator_error(found.get(tp, ErrorCode.NETWORK_EXCEPTION)) for tp in partitions]


def _as_coordinator_error(code: ErrorCode) -> ErrorCode:
    return ErrorCode.COORDINATOR_NOT_AVAILABLE if code in _NOT_THERE else code


def _all_added(codes: list[ErrorCode]) -> ErrorCode:
    for code in codes:
        if code is not ErrorCode.NONE:
            raise KafkaError(code)
    return ErrorCode.NONE
