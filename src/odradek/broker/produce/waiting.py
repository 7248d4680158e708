"""WaitingRun: Produce requests of one receive to one partition that wait for the high watermark together.

One place in the order of replies, one waiter and one timer serve all of them. When the high watermark has
passed some of them, these are answered with one send.
"""

import asyncio
from typing import TYPE_CHECKING, TypeAlias

from odradek.broker.produce.requests import produced
from odradek.broker.produce.routes import Route
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.log import AppendInfo
from odradek.wire.produce import encode_produce_response

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection, Place
    from odradek.replication.leader import PartitionLeader
    from odradek.replication.partition import Partition

Outcome: TypeAlias = "AppendInfo | KafkaError"


def encode_outcome(route: Route, correlation_id: int, outcome: Outcome, partition: "Partition") -> bytes:
    if type(outcome) is AppendInfo:
        return route.acknowledge(correlation_id, outcome)
    assert isinstance(outcome, KafkaError)
    rows = [(route.topic, [produced(route.index, outcome, partition)])]
    return encode_produce_response(route.version, correlation_id, rows)


class WaitingRun:
    """Requests with acks=all that one leader has appended, in their order. Those that failed wait only for
    the ones before them."""

    __slots__ = (
        "_connection",
        "_correlation_ids",
        "_leader",
        "_next",
        "_outcomes",
        "_partition",
        "_place",
        "_route",
        "_timer",
    )

    def __init__(
        self,
        connection: "Connection",
        route: Route,
        partition: "Partition",
        leader: "PartitionLeader",
        correlation_ids: list[int],
        outcomes: list[Outcome],
    ) -> None:
        assert len(correlation_ids) == len(outcomes)
        self._connection = connection
        self._route = route
        self._partition = partition
        self._leader = leader
        self._correlation_ids = correlation_ids
        self._outcomes = outcomes
        self._next = 0  # the first one that is not answered
        self._place: Place | None = connection.reserve(route.header)
        connection.wait_for(self._place, len(outcomes))
        timeout_s = route.timeout_ms / 1000
        self._timer = asyncio.get_running_loop().call_later(timeout_s, self._time_out)
        self._answer(self._first_uncommitted())

    def _first_uncommitted(self) -> int:
        outcomes, high_watermark = self._outcomes, self._partition.log.high_watermark
        at = self._next
        while at < len(outcomes):
            outcome = outcomes[at]
            if type(outcome) is AppendInfo and outcome.last_offset >= high_watermark:
                break
            at += 1
        return at

    def _answer(self, end: int) -> None:
        """Answer the requests up to `end`, and wait for the next one."""
        place, start, count = self._place, self._next, len(self._outcomes)
        assert place is not None and start <= end <= count
        self._next = end
        if end == count:
            self._place = None
            self._timer.cancel()
        else:
            outcome = self._outcomes[end]
            assert type(outcome) is AppendInfo
            self._leader.commit_waiters.add(outcome.last_offset + 1, self._moved)
        if end > start:
            replies = [
                encode_outcome(self._route, self._correlation_ids[at], self._outcomes[at], self._partition)
                for at in range(start, end)
            ]
            self._connection.fulfil_some(place, replies, is_last=end == count)

    def _moved(self, error: KafkaError | None) -> None:
        """The high watermark has moved, or the leader has resigned."""
        if self._place is None:
            return
        if error is not None:
            self._fail(len(self._outcomes), error)
            return
        end = self._first_uncommitted()
        if self._leader.under_min_isr:
            self._fail(end, KafkaError(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND))
        else:
            self._answer(end)

    def _time_out(self) -> None:
        if self._place is not None:
            self._fail(len(self._outcomes), KafkaError(ErrorCode.REQUEST_TIMED_OUT))

    def _fail(self, end: int, error: KafkaError) -> None:
        for at in range(self._next, end):
            if type(self._outcomes[at]) is AppendInfo:
                self._outcomes[at] = error
        self._answer(end)
