"""Decisions: runs the controller's decisions one at a time, so that nothing changes during a long one.

Others wait by rank: brokers first, because their sessions could end while they wait for clients, then the
controller's own ticks, then short requests, then long ones.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from odradek.controller.metrics import ControllerMetrics
from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.reply import Reply
from odradek.runtime.slices import Paced, Slices
from odradek.wire.api_keys import ApiKey

if TYPE_CHECKING:
    from odradek.wire.requests.create_partitions import CreatePartitionsRequest
    from odradek.wire.requests.create_topics import CreateTopicsRequest
    from odradek.wire.requests.elect_leaders import ElectLeadersRequest

T = TypeVar("T")

FEW_ENTRIES = 16
"""A request with more entries is long."""


class Rank(IntEnum):
    """The order in which waiting work runs."""

    BROKER = 0
    TICK = 1
    SHORT = 2
    LONG = 3


class Decisions:
    """Runs paced work, one after the other. It continues even if its caller is gone."""

    __slots__ = ("_idle", "_is_taken", "_metrics", "_refusal", "_slices", "_waiting")

    def __init__(self, slices: Slices, metrics: ControllerMetrics | None = None) -> None:
        self._slices = slices
        self._metrics = metrics or ControllerMetrics()
        self._is_taken = False
        self._refusal: KafkaError | None = None
        self._idle: asyncio.Future[None] | None = None
        self._waiting: tuple[deque[tuple[Callable[[], Paced[Any]], asyncio.Future[Any], float]], ...] = tuple(
            deque() for _ in Rank
        )

    def run(self, begin: Callable[[], Paced[T]], rank: Rank) -> Reply[T]:
        """Run the work of `begin` now, or when it is its turn."""
        if self._refusal is not None:
            return Reply.failed(self._refusal)
        if not self._is_taken and not any(self._waiting):
            return self._run(begin, asyncio.get_running_loop().time())
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        self._waiting[rank].append((begin, future, loop.time()))
        return Reply.later(future)

    def refuse(self, refusal: KafkaError) -> None:
        """Refuse waiting and new work. Work in progress continues until something that it needs is
        refused."""
        self._refusal = refusal
        for queue in self._waiting:
            while queue:
                _complete(queue.popleft()[1], Reply.failed(refusal))

    async def close(self) -> None:
        """Refuse waiting work, and wait for the work in progress."""
        self.refuse(self._refusal or KafkaError(ErrorCode.NOT_CONTROLLER))
        if self._is_taken:
            self._idle = asyncio.get_running_loop().create_future()
            await self._idle

    def _run(self, begin: Callable[[], Paced[T]], asked: float) -> Reply[T]:
        """Run it as the node's own work, so that it does not wait for the work of clients."""
        self._is_taken = True
        loop = asyncio.get_running_loop()
        began = loop.time()
        self._metrics.queue.add(int(1e6 * (began - asked)))
        reply = self._slices.run(begin(), own=True)
        if reply.is_ready:
            self._is_taken = False
            self._metrics.processing.add(int(1e6 * (loop.time() - began)))
            return reply
        future: asyncio.Future[T] = loop.create_future()
        reply.when_ready(partial(self._end, future, began))
        return Reply.later(future)

    def _end(self, future: "asyncio.Future[Any]", began: float, reply: Reply[Any]) -> None:
        self._is_taken = False
        self._metrics.processing.add(int(1e6 * (asyncio.get_running_loop().time() - began)))
        _complete(future, reply)
        if any(self._waiting):
            asyncio.get_running_loop().call_soon(self._next)
        elif self._idle is not None:
            self._idle.set_result(None)

    def _next(self) -> None:
        """Run the next waiting work, one in each turn of the loop."""
        queue = next(filter(None, self._waiting), None)
        if queue is None:
            return
        begin, future, asked = queue.popleft()
        if not future.cancelled():
            self._run(begin, asked).when_ready(partial(_complete, future))
        if not self._is_taken and any(self._waiting):
            asyncio.get_running_loop().call_soon(self._next)


def _complete(future: "asyncio.Future[Any]", reply: Reply[Any]) -> None:
    if future.done():
        return
    if reply.error is None:
        future.set_result(reply.value)
    else:
        future.set_exception(reply.error)
        future.exception()  # mark it as retrieved: the caller may be gone


def rank_of(api_key: ApiKey, request: Any) -> Rank:
    """The rank of a request. Requests that only brokers send have the rank BROKER."""
    entries = _ENTRIES.get(api_key)
    if entries is None:
        return Rank.BROKER
    return Rank.LONG if entries(request) > FEW_ENTRIES else Rank.SHORT


def _new_topics(request: "CreateTopicsRequest") -> int:
    topics = request.topics
    if len(topics) > FEW_ENTRIES:
        return len(topics)
    return sum(max(t.num_partitions, 1) + len(t.assignments) + len(t.configs) for t in topics)


def _new_partitions(request: "CreatePartitionsRequest") -> int:
    topics = request.topics
    return len(topics) if len(topics) > FEW_ENTRIES else sum(max(topic.count, 1) for topic in topics)


def _altered(request: Any) -> int:
    resources = request.resources
    if len(resources) > FEW_ENTRIES:
        return len(resources)
    return sum(1 + len(resource.configs) for resource in resources)


def _elections(request: "ElectLeadersRequest") -> int:
    asked = request.topic_partitions
    if asked is None or len(asked) > FEW_ENTRIES:
        return FEW_ENTRIES + 1
    return sum(len(topic.partitions) for topic in asked)


def _reassigned(request: Any) -> int:
    topics = request.topics
    return len(topics) if len(topics) > FEW_ENTRIES else sum(len(topic.partitions) for topic in topics)


_ENTRIES: dict[ApiKey, Callable[[Any], int]] = {
    ApiKey.CREATE_TOPICS: _new_topics,
    ApiKey.DELETE_TOPICS: lambda request: len(request.topics),
    ApiKey.CREATE_PARTITIONS: _new_partitions,
    ApiKey.ALTER_CONFIGS: _altered,
    ApiKey.INCREMENTAL_ALTER_CONFIGS: _altered,
    ApiKey.UPDATE_FEATURES: lambda request: len(request.feature_updates),
    ApiKey.ELECT_LEADERS: _elections,
    ApiKey.ALTER_PARTITION_REASSIGNMENTS: _reassigned,
    ApiKey.UNREGISTER_BROKER: lambda request: 1,
}
