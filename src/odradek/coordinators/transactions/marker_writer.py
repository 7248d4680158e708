"""MarkerWriter: writes transaction markers to partitions that this broker leads."""

import asyncio
import logging

from odradek.coordinators.host import CoordinatorHost
from odradek.coordinators.transactions.channels import MarkerChannel
from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.markers import Outcomes
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, NO_OFFSET, TopicPartition
from odradek.records.control import EndTransactionMarker
from odradek.replication.manager import ReplicaManager
from odradek.runtime.api import Clock
from odradek.runtime.reply import Reply

_log = logging.getLogger(__name__)


class MarkerWriter:
    """Appends markers to partitions of this broker, for any coordinator.

    Markers for `__consumer_offsets` go through `groups`, whose shards replay them.
    """

    __slots__ = ("_clock", "_commit_timeout_ms", "_groups", "_replicas")

    def __init__(
        self, replicas: ReplicaManager, groups: CoordinatorHost, clock: Clock, commit_timeout_ms: int
    ) -> None:
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._commit_timeout_ms = commit_timeout_ms

    def write(
        self, markers: WriteMarkers, partitions: list[TopicPartition], *, own: bool = False
    ) -> Reply[Outcomes]:
        """Append a marker to each partition. Returns the outcomes after the markers are committed.

        `own`: for this node's coordinator, for which a partition without an open transaction counts as done.
        """
        outcomes: Outcomes = {}
        waits: dict[TopicPartition, asyncio.Future[None]] = {}
        for tp in partitions:
            outcomes[tp] = ErrorCode.NONE
            try:
                wait = self._write(markers, tp)
            except KafkaError as e:
                if not (own and e.code is ErrorCode.INVALID_PRODUCER_EPOCH and self._is_ended(markers, tp)):
                    outcomes[tp] = e.code
                continue
            if wait is not None:
                waits[tp] = wait
        if not waits:
            return Reply(outcomes)
        return Reply.later(asyncio.get_running_loop().create_task(_all_committed(outcomes, waits)))

    def _is_ended(self, markers: WriteMarkers, tp: TopicPartition) -> bool:
        """Whether the producer has no open transaction here and a newer epoch has written to the partition.

        Apache Kafka's coordinator then gives up on the marker, so a forged write with a guessed producer id
        blocks the transactional id.
        """
        known = self._replicas.partition(tp).log.producers.get(markers.producer.producer_id)
        if known is None or known.current_txn_first_offset != NO_OFFSET:
            return False
        _log.warning(
            "%s has records of a newer producer epoch: no marker written for transaction %r",
            tp,
            markers.transactional_id,
        )
        return True

    def _write(self, markers: WriteMarkers, tp: TopicPartition) -> "asyncio.Future[None] | None":
        marker = EndTransactionMarker(markers.commit, markers.coordinator_epoch)
        partition = self._replicas.partition(tp)
        if tp.topic == GROUP_METADATA_TOPIC:
            try:
                return self._groups.end_transaction(
                    tp.partition, markers.producer, marker, markers.transaction_version
                )
            except KafkaError as e:
                if e.code is ErrorCode.NOT_COORDINATOR:
                    raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from e
                raise
        info = partition.append_marker(
            markers.producer, marker, markers.transaction_version, self._clock.now_ms()
        )
        return partition.when_committed(info.last_offset + 1, self._commit_timeout_ms)


class BrokerMarkers:
    """The MarkerChannel of this broker's coordinator. `remote` delivers to all other brokers."""

    __slots__ = ("_broker_id", "_local", "_remote")

    def __init__(self, broker_id: int, local: MarkerWriter, remote: MarkerChannel) -> None:
        self._broker_id = broker_id
        self._local = local
        self._remote = remote

    def deliver(
        self, broker_id: int, markers: WriteMarkers, partitions: list[TopicPartition]
    ) -> Reply[Outcomes]:
        if broker_id != self._broker_id:
            return self._remote.deliver(broker_id, markers, partitions)
        return self._local.write(markers, partitions, own=True)


async def _all_committed(outcomes: Outcomes, waits: "dict[TopicPartition, asyncio.Future[None]]") -> Outcomes:
    for tp, wait in waits.items():
        try:
            await wait
        except KafkaError as e:
            outcomes[tp] = e.code
    return outcomes
