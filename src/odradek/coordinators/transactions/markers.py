"""MarkerSender: writes the markers of decided transactions to all their partitions, with retries.

A partition without a leader is retried later. A partition that no longer exists is skipped. Transactions take
turns, a few markers each, so that one with many partitions does not delay the others. The coordinator decides
what happens when all markers are written.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Final, TypeAlias

from odradek.coordinators.transactions.commands import WriteMarkers
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TopicPartition
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Paced, Slices

if TYPE_CHECKING:
    from odradek.coordinators.transactions.channels import MarkerChannel

_log = logging.getLogger(__name__)

RETRY_MS: Final = 100
AT_A_TIME: Final = 4
"""How many markers of a transaction are sent before the next transaction has its turn."""
LOOK_CALLS: Final = 6
"""The cost of finding the leader of a partition."""
WRITE_CALLS: Final = 100
"""The cost of writing one marker, or of noting that all are written."""

Outcomes: TypeAlias = dict[TopicPartition, ErrorCode]

_HEARD = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT})
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED})


class _Order:
    """The markers of one decided transaction that are not written yet."""

    __slots__ = ("is_fenced", "left", "markers", "partition_index", "timer", "under_way")

    def __init__(self, partition_index: int, markers: WriteMarkers) -> None:
        self.partition_index = partition_index
        self.markers = markers
        self.left = dict.fromkeys(markers.partitions)
        self.under_way: dict[TopicPartition, None] = {}
        self.timer: asyncio.TimerHandle | None = None
        self.is_fenced = False


class MarkerSender:
    def __init__(
        self,
        leader_of: Callable[[TopicPartition], int | None],
        channel: "MarkerChannel",
        written: Callable[[int, WriteMarkers], None],
        slices: Slices,
    ) -> None:
        """`leader_of` returns a broker, NO_LEADER, or None for a partition that does not exist. `written` is
        called with the coordinator's partition when every partition of an order has its marker."""
        self._leader_of = leader_of
        self._deliver = channel.deliver
        self._written = written
        self._slices = slices
        self._orders: dict[str, _Order] = {}
        self._attempts: deque[Paced[None]] = deque()
        self._is_at_work = False

    def __len__(self) -> int:
        return len(self._orders)

    def send(self, partition_index: int, markers: WriteMarkers) -> None:
        self._drop(markers.transactional_id)
        order = self._orders[markers.transactional_id] = _Order(partition_index, markers)
        self._begin(order)

    def forget(self, partition_index: int) -> None:
        """This node no longer coordinates the partition. Its new coordinator sends the markers again."""
        for order in [o for o in self._orders.values() if o.partition_index == partition_index]:
            self._drop(order.markers.transactional_id)

    def close(self) -> None:
        for transactional_id in list(self._orders):
            self._drop(transactional_id)

    def _drop(self, transactional_id: str) -> None:
        order = self._orders.pop(transactional_id, None)
        if order is not None and order.timer is not None:
            order.timer.cancel()

    def _begin(self, order: _Order) -> None:
        order.timer = None
        self._attempts.append(self._attempt(order))
        self._go_on()

    def _go_on(self) -> None:
        if self._attempts and not self._is_at_work:
            self._is_at_work = True
            self._slices.run(self._work(), own=True).when_ready(self._rest)

    def _work(self) -> Paced[None]:
        """All attempts, in turns."""
        while self._attempts:
            attempt = self._attempts.popleft()
            calls = next(attempt, None)
            if calls is not None:
                self._attempts.append(attempt)
                yield calls

    def _rest(self, done: Reply[None]) -> None:
        self._is_at_work = False
        if done.error is not None:
            _log.error("Markers could not be written", exc_info=done.error)
        self._go_on()  # continue with attempts that came after the last one ended

    def _attempt(self, order: _Order) -> Paced[None]:
        brokers: dict[int, list[TopicPartition]] = {}
        for tp in [tp for tp in order.left if tp not in order.under_way]:
            if not self._is_current(order):
                return
            leader = self._leader_of(tp)
            yield LOOK_CALLS
            if leader is None:
                _log.info(
                    "%s no longer exists: no marker written for transaction %r",
                    tp,
                    order.markers.transactional_id,
                )
                del order.left[tp]
            elif leader != NO_LEADER:
                brokers.setdefault(leader, []).append(tp)
        for partitions in brokers.values():
            order.under_way.update(dict.fromkeys(partitions))
        for broker_id, partitions in brokers.items():
            for start in range(0, len(partitions), AT_A_TIME):
                if not self._is_current(order):
                    return
                some = partitions[start : start + AT_A_TIME]
                self._deliver(broker_id, order.markers, some).when_ready(partial(self._heard, order, some))
                yield len(some) * WRITE_CALLS
        self._finish(order)
        yield WRITE_CALLS

    def _is_current(self, order: _Order) -> bool:
        return self._orders.get(order.markers.transactional_id) is order

    def _heard(self, order: _Order, partitions: list[TopicPartition], reply: Reply[Outcomes]) -> None:
        self._note(order, partitions, reply)
        self._finish(order)

    def _note(self, order: _Order, partitions: list[TopicPartition], reply: Reply[Outcomes]) -> None:
        outcomes, error = reply.value, reply.error
        if error is not None:
            if not isinstance(error, KafkaError | OSError):
                _log.error("Markers could not be written", exc_info=error)
            code = error.code if isinstance(error, KafkaError) else ErrorCode.NETWORK_EXCEPTION
            outcomes = dict.fromkeys(partitions, code)
        for tp, code in outcomes.items():
            order.under_way.pop(tp, None)
            if code in _HEARD:
                order.left.pop(tp, None)
            elif code in _FENCED:
                _log.warning(
                    "%s refuses the marker of transaction %r: %s",
                    tp,
                    order.markers.transactional_id,
                    code.name,
                )
                order.is_fenced = True

    def _finish(self, order: _Order) -> None:
        if not self._is_current(order) or order.under_way:
            return
        if order.is_fenced:
            del self._orders[order.markers.transactional_id]
            return
        if order.left:
            if order.timer is None:
                loop = asyncio.get_running_loop()
                order.timer = loop.call_later(RETRY_MS / 1000, self._begin, order)
            return
        del self._orders[order.markers.transactional_id]
        self._written(order.partition_index, order.markers)
