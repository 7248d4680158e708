"""The end of transactions, brought to the brokers that lead their partitions: WriteTxnMarkers v1-v2.

One request for each call. markers.py decides which partitions are asked again.
"""

from typing import Any

from odradek.client.broker_connections import BrokerConnections
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.markers import Outcomes
from odradek.core.errors import ErrorCode, KafkaError, known_code
from odradek.core.types import TopicPartition
from odradek.runtime.reply import Reply
from odradek.runtime.scope import Scope
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey


class RemoteMarkers:
    """A MarkerChannel to other brokers. `close` ends what is under way."""

    def __init__(self, connections: BrokerConnections) -> None:
        self._connections = connections
        self._scope = Scope(lambda error: None)  # each reply has its own error

    def deliver(
        self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]
    ) -> Reply[Outcomes]:
        asking = self._deliver(broker_id, markers, partitions)
        return Reply.later(self._scope.spawn(asking, name=f"markers to broker {broker_id}"))

    async def _deliver(
        self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]
    ) -> Outcomes:
        try:
            response = await self._connections.ask(
                broker_id, ApiKey.WRITE_TXN_MARKERS, _request(markers, partitions)
            )
        except KafkaError as e:
            return dict.fromkeys(partitions, e.code)
        return _outcomes(response, partitions)

    async def close(self) -> None:
        await self._scope.close()
        self._connections.close()


def _request(markers: WriteMarkers, partitions: list[TopicPartition]) -> Any:
    types = requests.write_txn_markers
    by_topic: dict[str, list[int]] = {}
    for tp in partitions:
        by_topic.setdefault(tp.topic, []).append(tp.partition)
    marker = types.WritableTxnMarker(
        producer_id=markers.producer.producer_id,
        producer_epoch=markers.producer.producer_epoch,
        transaction_result=markers.commit,
        topics=[
            types.WritableTxnMarkerTopic(name=name, partition_indexes=indexes)
            for name, indexes in by_topic.items()
        ],
        coordinator_epoch=markers.coordinator_epoch,
        transaction_version=markers.transaction_version,
    )
    return types.WriteTxnMarkersRequest(markers=[marker])


def _outcomes(response: Any, partitions: list[TopicPartition]) -> Outcomes:
    """One for each partition: one that the broker left out is asked again as any other failure."""
    outcomes = dict.fromkeys(partitions, ErrorCode.UNKNOWN_SERVER_ERROR)
    for marker in response.markers:
        for topic in marker.topics:
            for row in topic.partitions:
                tp = TopicPartition(topic.name, row.partition_index)
                if tp in outcomes:
                    outcomes[tp] = known_code(row.error_code)
    return outcomes
