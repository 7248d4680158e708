"""Writing the end of a transaction to partitions that this node leads, for any coordinator."""

import asyncio
import logging
from typing import TYPE_CHECKING

from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.coordinators.transactions.markers import Outcomes
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import GROUP_METADATA_TOPIC, NO_OFFSET, TopicPartition
from odradek.records.control import EndTransactionMarker
from odradek.runtime.reply import Reply

if TYPE_CHECKING:
    from odradek.broker.node import Node

_log = logging.getLogger(__name__)


def write_markers(
    node: "Node", markers: WriteMarkers, partitions: list[TopicPartition], *, own: bool = False
) -> Reply[Outcomes]:
    """Append a marker to each partition; the outcomes, once the markers are committed.

    `own`: for this node's coordinator, who need not hear of partitions where there is nothing to end.
    """
    outcomes: Outcomes = {}
    waits: dict[TopicPartition, asyncio.Future[None]] = {}
    for tp in partitions:
        outcomes[tp] = ErrorCode.NONE
        try:
            wait = _write(node, markers, tp)
        except KafkaError as e:
            if not (own and e.code is ErrorCode.INVALID_PRODUCER_EPOCH and _is_ended(node, markers, tp)):
                outcomes[tp] = e.code
            continue
        if wait is not None:
            waits[tp] = wait
    if not waits:
        return Reply(outcomes)
    return Reply.later(asyncio.get_running_loop().create_task(_all_committed(outcomes, waits)))


def _is_ended(node: "Node", markers: WriteMarkers, tp: TopicPartition) -> bool:
    """Whether a newer epoch has written to the partition, where no transaction of the producer is open.

    Apache Kafka gives up then, and a write forged with a guessed producer id holds up the transactional id.
    """
    known = node.replicas.partition(tp).log.producers.get(markers.producer.producer_id)
    if known is None or known.current_txn_first_offset != NO_OFFSET:
        return False
    _log.warning("%s has moved on: no marker of %r", tp, markers.transactional_id)
    return True


def _write(node: "Node", markers: WriteMarkers, tp: TopicPartition) -> "asyncio.Future[None] | None":
    marker = EndTransactionMarker(markers.commit, markers.coordinator_epoch)
    partition = node.replicas.partition(tp)
    if tp.topic == GROUP_METADATA_TOPIC:
        try:
            return node.groups.host.end_transaction(
                tp.partition, markers.producer, marker, markers.transaction_version
            )
        except KafkaError as e:
            if e.code is ErrorCode.NOT_COORDINATOR:
                raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER) from e
            raise
    info = partition.append_marker(
        markers.producer, marker, markers.transaction_version, node.runtime.clock.now_ms()
    )
    return partition.when_committed(info.last_offset + 1, node.config.int("request.timeout.ms"))


async def _all_committed(outcomes: Outcomes, waits: "dict[TopicPartition, asyncio.Future[None]]") -> Outcomes:
    for tp, wait in waits.items():
        try:
            await wait
        except KafkaError as e:
            outcomes[tp] = e.code
    return outcomes
