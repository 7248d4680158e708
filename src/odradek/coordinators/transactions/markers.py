"""Bringing the outcome of a transaction to every partition it wrote to, however long that takes.

A partition without a leader is asked again later, one that is gone is left out. Who leads a partition and how
a broker is reached is known to the node; what follows when all have heard is the coordinator's to decide.
"""

import asyncio
import logging
from collections.abc import Callable
from functools import partial
from typing import Final, TypeAlias

from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.runtime.reply import Reply

log = logging.getLogger("odradek.coordinators.transactions")

RETRY_MS: Final = 100

Outcomes: TypeAlias = dict[TopicPartition, ErrorCode]
Deliver: TypeAlias = Callable[[int, WriteMarkers, list[TopicPartition]], Reply[Outcomes]]

_HEARD = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Order:
    """What is left to do for one decided transaction."""

    __slots__ = ("left", "markers", "partition_index", "timer", "under_way")

    def __init__(self, partition_index: int, markers: WriteMarkers) -> None:
        self.partition_index = partition_index
        self.markers = markers
        self.left = dict.fromkeys(markers.partitions)
        self.under_way: dict[TopicPartition, None] = {}
        self.timer: asyncio.TimerHandle | None = None


class MarkerSender:
    def __init__(
        self,
        leader_of: Callable[[TopicPartition], int | None],
        deliver: Deliver,
        written: Callable[[int, WriteMarkers], None],
    ) -> None:
        """`leader_of` gives a broker, NO_LEADER, or None for a partition that is gone; `written` is called
        with the coordinator's partition when every partition of an order has its marker."""
        self._leader_of = leader_of
        self._deliver = deliver
        self._written = written
        self._orders: dict[str, _Order] = {}

    def __len__(self) -> int:
        return len(self._orders)

    def send(self, partition_index: int, markers: WriteMarkers) -> None:
        self._drop(markers.transactional_id)
        order = self._orders[markers.transactional_id] = _Order(partition_index, markers)
        self._attempt(order)

    def forget(self, partition_index: int) -> None:
        """This node does not coordinate the partition any more: whoever does begins anew."""
        for order in [o for o in self._orders.values() if o.partition_index == partition_index]:
            self._drop(order.markers.transactional_id)

    def outstanding(self, transactional_id: str) -> list[TopicPartition]:
        """The partitions that have not heard yet."""
        order = self._orders.get(transactional_id)
        return [] if order is None else list(order.left)

    def close(self) -> None:
        for transactional_id in list(self._orders):
            self._drop(transactional_id)

    def _drop(self, transactional_id: str) -> None:
        order = self._orders.pop(transactional_id, None)
        if order is not None and order.timer is not None:
            order.timer.cancel()

    def _attempt(self, order: _Order) -> None:
        order.timer = None
        brokers: dict[int, list[TopicPartition]] = {}
        for tp in [tp for tp in order.left if tp not in order.under_way]:
            leader = self._leader_of(tp)
            if leader is None:
                log.info("%s is gone: no marker of transaction %r", tp, order.markers.transactional_id)
                del order.left[tp]
            elif leader != NO_LEADER:
                brokers.setdefault(leader, []).append(tp)
        for broker_id, partitions in brokers.items():
            order.under_way.update(dict.fromkeys(partitions))
            reply = self._deliver(broker_id, order.markers, partitions)
            if reply.is_ready:
                self._note(order, partitions, reply)
            else:
                reply.when_ready(partial(self._heard, order, partitions))
        self._finish(order)

    def _heard(self, order: _Order, partitions: list[TopicPartition], reply: Reply[Outcomes]) -> None:
        self._note(order, partitions, reply)
        self._finish(order)

    def _note(self, order: _Order, partitions: list[TopicPartition], reply: Reply[Outcomes]) -> None:
        outcomes, error = reply.value, reply.error
        if error is not None:
            if not isinstance(error, KafkaError | OSError):
                log.error("Markers could not be written", exc_info=error)
            code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
            outcomes = dict.fromkeys(partitions, code)
        for tp, code in outcomes.items():
            order.under_way.pop(tp, None)
            if code in _HEARD:
                order.left.pop(tp, None)
            elif code in _FENCED:
                log.warning("%s refuses the end of %r: %s", tp, order.markers.transactional_id, code.name)
                self._orders.pop(order.markers.transactional_id, None)

    def _finish(self, order: _Order) -> None:
        if self._orders.get(order.markers.transactional_id) is not order or order.under_way:
            return
        if order.left:
            if order.timer is None:
                loop = asyncio.get_running_loop()
                order.timer = loop.call_later(RETRY_MS / 1000, self._attempt, order)
            return
        del self._orders[order.markers.transactional_id]
        self._written(order.partition_index, order.markers)
