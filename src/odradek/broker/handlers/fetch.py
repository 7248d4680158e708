"""Fetch v4-v18: records from the log, long polling, incremental sessions (KIP-227).

Coded by hand (wire/fetch.py): the records never enter Python, only their place in the log file does.
A fetch that finds less than min_bytes waits on its partitions until they move or max_wait_ms has passed.
Deviation: the preferred read replica is never set: reading from a follower needs a second node.
"""

import asyncio
from typing import TYPE_CHECKING
from uuid import UUID

from odradek.broker.dispatch import serves_raw
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.files import FileSlice
from odradek.log.log import Isolation
from odradek.replication.fetch import FetchRead, PartitionAnswer, read_partitions
from odradek.replication.fetch_sessions import INVALID_SESSION_ID, FetchContext, PartitionFetch, PartitionKey
from odradek.wire.api_keys import ApiKey
from odradek.wire.fetch import FetchRequest, PartitionFetched, encode_fetch_response
from odradek.wire.headers import RequestHeader
from odradek.wire.produce import NodeEndpoint

if TYPE_CHECKING:
    from odradek.broker.connection import Connection, Place
    from odradek.broker.node import Node

READ_COMMITTED = 1
CONSUMER = -1
TOPIC_IDS_FROM = 13


@serves_raw(ApiKey.FETCH, min_version=4, max_version=18)
def fetch(
    node: "Node", connection: "Connection", header: RequestHeader, frame: memoryview, position: int
) -> None:
    request = FetchRequest.parse(frame, position, header.api_version)
    try:
        context = _begin(node, request, uses_topic_ids=header.api_version >= TOPIC_IDS_FROM)
    except KafkaError as e:
        connection.reply(
            header, *encode_fetch_response(header.api_version, header.correlation_id, [], error_code=e.code)
        )
        return
    pending = _Fetch(node, connection, header, request, context)
    read = pending.read()
    if pending.is_enough(read) or request.max_wait_ms <= 0:
        connection.reply(header, *pending.encode(read))
    else:
        pending.wait(read)


def _begin(node: "Node", request: FetchRequest, *, uses_topic_ids: bool) -> FetchContext:
    wanted = [
        (
            PartitionKey(topic, p.partition_index),
            PartitionFetch(
                p.fetch_offset,
                p.partition_max_bytes,
                p.current_leader_epoch,
                p.last_fetched_epoch,
                p.log_start_offset,
            ),
        )
        for topic, partitions in request.topics
        for p in partitions
    ]
    forgotten = [PartitionKey(topic, index) for topic, indexes in request.forgotten for index in indexes]
    return node.fetch_sessions.begin(
        request.session_id,
        request.session_epoch,
        wanted,
        forgotten,
        privileged=request.replica_id >= 0,
        uses_topic_ids=uses_topic_ids,
        now_ms=node.runtime.clock.now_ms(),
        new_id=node.new_session_id,
    )


class _Fetch:
    """One fetch, answered at once or waiting on its partitions."""

    __slots__ = (
        "_connection",
        "_context",
        "_header",
        "_isolation",
        "_max_bytes",
        "_node",
        "_place",
        "_poked",
        "_request",
        "_timer",
        "_watched",
    )

    def __init__(
        self,
        node: "Node",
        connection: "Connection",
        header: RequestHeader,
        request: FetchRequest,
        context: FetchContext,
    ) -> None:
        self._node = node
        self._connection = connection
        self._header = header
        self._request = request
        self._context = context
        self._max_bytes = min(request.max_bytes, node.fetch_max_bytes)
        if request.replica_id != CONSUMER:
            self._isolation = Isolation.LOG_END
        elif request.isolation_level == READ_COMMITTED:
            self._isolation = Isolation.TXN_COMMITTED
        else:
            self._isolation = Isolation.HIGH_WATERMARK
        self._place: Place | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._watched: list[PartitionAnswer] = []
        self._poked = False

    def read(self) -> FetchRead:
        return read_partitions(
            self._node.replicas,
            self._context.partitions,
            self._max_bytes,
            self._isolation,
            self._request.replica_id,
        )

    def is_enough(self, read: FetchRead) -> bool:
        return read.settled or read.size >= self._request.min_bytes or not self._context.partitions

    # --- waiting --------------------------------------------------------------------------------------

    def wait(self, read: FetchRead) -> None:
        self._place = self._connection.reserve(self._header)
        self._watched = read.answers
        for answer in read.answers:
            if answer.partition is not None:
                answer.partition.add_fetch_waiter(self)
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._request.max_wait_ms / 1000, self._answer_now)
        self._connection.on_close[self] = self._forget

    def poke(self) -> None:
        """A watched partition moved. One look per turn of the loop, however many appends it brought."""
        if not self._poked:
            self._poked = True
            asyncio.get_running_loop().call_soon(self._look_again)

    def _look_again(self) -> None:
        self._poked = False
        if self._place is None:
            return
        read = self.read()
        if self.is_enough(read):
            self._answer(read)

    def _answer_now(self) -> None:
        if self._place is not None:
            self._answer(self.read())

    def _answer(self, read: FetchRead) -> None:
        place = self._place
        assert place is not None
        self._forget()
        self._connection.fulfil(place, *self.encode(read))

    def _forget(self) -> None:
        self._place = None
        assert self._timer is not None
        self._timer.cancel()
        for answer in self._watched:
            if answer.partition is not None:
                answer.partition.remove_fetch_waiter(self)
        self._connection.on_close.pop(self, None)

    # --- the reply ------------------------------------------------------------------------------------

    def encode(self, read: FetchRead) -> list[bytes | FileSlice]:
        context, session = self._context, self._context.session
        topics: dict[str | UUID, list[PartitionFetched]] = {}
        leaders: dict[int, None] = {}
        for answer in read.answers:
            key, failed = answer.key, answer.error is not ErrorCode.NONE
            if session is not None:
                known = session.partitions.get(key)
                if known is not None:
                    news = known.has_news(answer.size, failed, answer.high_watermark, answer.log_start_offset)
                    if context.incremental and not news and answer.diverging_epoch is None:
                        continue
                    known.told(failed, answer.high_watermark, answer.log_start_offset)
                    if answer.size:
                        session.move_to_end(key)
            if answer.current_leader is not None:
                leaders[answer.current_leader[0]] = None
            if answer.partition is not None:
                metrics = answer.partition.metrics
                metrics.fetches += 1
                metrics.bytes_out += answer.size
                metrics.failed_fetches += failed
            topics.setdefault(key.topic, []).append(
                PartitionFetched(
                    key.partition,
                    answer.error,
                    answer.high_watermark,
                    answer.last_stable_offset,
                    answer.log_start_offset,
                    [] if answer.partition is None else answer.aborted,
                    answer.records,
                    answer.size,
                    diverging_epoch=answer.diverging_epoch,
                    current_leader=answer.current_leader,
                )
            )
        return encode_fetch_response(
            self._header.api_version,
            self._header.correlation_id,
            list(topics.items()),
            session_id=INVALID_SESSION_ID if session is None else session.id,
            node_endpoints=[
                NodeEndpoint(leader, *endpoint)
                for leader in leaders
                if (endpoint := self._node.endpoint(leader, self._connection.listener)) is not None
            ],
        )
