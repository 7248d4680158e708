"""PendingFetch: one Fetch request from its frame to its reply. It reads, waits for data, and replies."""

import asyncio
import logging
from typing import TYPE_CHECKING, Protocol, TypeAlias
from uuid import UUID

from odradek.broker.network.server import Server
from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.files import FileSlice
from odradek.log.log import Isolation
from odradek.log.manager import LogManager
from odradek.metadata.availability import endpoint_of
from odradek.metadata.publisher import MetadataPublisher
from odradek.replication.fetch import FetchRead, read_partitions
from odradek.replication.fetch_sessions import (
    INVALID_SESSION_ID,
    FetchContext,
    FetchSession,
    FetchSessions,
    PartitionFetch,
    PartitionKey,
)
from odradek.replication.follower_fetch import FetchingReplica, record_progress
from odradek.replication.manager import ReplicaManager
from odradek.replication.waiters import FetchWatch
from odradek.runtime.api import Runtime
from odradek.runtime.reply import Reply
from odradek.runtime.slices import FEW, STEP, Paced, Slices
from odradek.wire.fetch import FetchRequest, PartitionFetched, encode_fetch_response, fetch_response_in_slices
from odradek.wire.headers import RequestHeader
from odradek.wire.produce import NodeEndpoint

if TYPE_CHECKING:
    from odradek.broker.network.connection import Connection, Place
    from odradek.replication.partition import Partition

_log = logging.getLogger(__name__)

READ_COMMITTED = 1
CONSUMER = -1
TOPIC_IDS_FROM = 13
AT_A_TIME = 16  # partitions per step

Pieces: TypeAlias = list[bytes | FileSlice]


class Needs(Protocol):
    fetch_max_bytes: int
    fetch_sessions: FetchSessions
    logs: LogManager
    metadata: MetadataPublisher
    replicas: ReplicaManager
    runtime: Runtime
    server: Server
    slices: Slices


class PendingFetch:
    """`begin` replies at once, or reserves its place and replies when there is enough data."""

    __slots__ = (
        "_connection",
        "_context",
        "_follower",
        "_header",
        "_is_due",
        "_is_looking",
        "_isolation",
        "_max_bytes",
        "_missed",
        "_place",
        "_poked",
        "_request",
        "_services",
        "_timer",
        "_watch",
        "_watched",
    )

    def __init__(
        self,
        services: Needs,
        connection: "Connection",
        header: RequestHeader,
        request: FetchRequest,
        place: "Place | None" = None,
    ) -> None:
        self._services = services
        self._connection = connection
        self._header = header
        self._request = request
        self._max_bytes = min(request.max_bytes, services.fetch_max_bytes)
        self._follower: FetchingReplica | None = None
        if request.replica_id >= 0:
            self._follower = FetchingReplica(request.replica_id, request.replica_epoch)
        if request.replica_id != CONSUMER:
            self._isolation = Isolation.LOG_END
        elif request.isolation_level == READ_COMMITTED:
            self._isolation = Isolation.TXN_COMMITTED
        else:
            self._isolation = Isolation.HIGH_WATERMARK
        self._context: FetchContext
        self._place = place
        self._timer: asyncio.TimerHandle | None = None
        self._watch: FetchWatch | None = None  # while it waits, or reads for its session
        self._watched: dict[PartitionFetch, Partition] = {}  # without a session
        self._poked = False  # a read is scheduled
        self._is_looking = False  # a read is in progress
        self._missed = False  # a partition changed during the read
        self._is_due = False  # max_wait_ms has passed

    def begin(self, partitions: int = 0) -> None:
        """`partitions`: the number of partitions, if there are many."""
        reply = self._services.slices.run(self._first())
        if reply.is_ready and reply.value is not None and self._place is None:
            if self._watch is not None:
                self._end_watch()
            self._connection.reply(self._header, *reply.value)
            return
        if self._place is None:
            self._place = self._connection.reserve(self._header)
        self._is_looking = True
        if not reply.is_ready:
            self._connection.wait_for(self._place, partitions or self._services.slices.few_entries)
        reply.when_ready(self._looked)

    # --- looking --------------------------------------------------------------------------------------

    def _first(self) -> Paced[Pieces | None]:
        """The reply; None if the fetch must wait. Then it watches its partitions."""
        try:
            self._context = yield from self._session()
        except KafkaError as e:
            return encode_fetch_response(
                self._header.api_version, self._header.correlation_id, [], error_code=e.code
            )
        session, partitions = self._context.session, self._context.partitions
        if session is not None:
            self._watch_session(session)
        if self._follower is not None:
            if session is not None and self._context.incremental:
                partitions = yield from session.to_record(self._services.runtime.clock.now_ms())
            yield from record_progress(self._services.replicas, partitions, self._follower)
        read = yield from self._read()
        if self._is_enough(read) or self._request.max_wait_ms <= 0:
            return (yield from self._encode(read))
        if session is None:
            self._watch = FetchWatch(self._isolation)
            self._watch.fetch = self
            for answer in read.answers:
                if answer.partition is not None:
                    fetch = partitions[answer.key]
                    self._watched[fetch] = answer.partition
                    answer.partition.fetch_waiters.add(self._watch, fetch)
                yield FEW
        return None

    def _again(self) -> Paced[Pieces | None]:
        watch = self._watch
        if self._watched and watch is not None:
            moved, watch.dirty = watch.dirty, {}
            for fetch in moved:
                self._watched[fetch].fetch_waiters.add(watch, fetch)
                yield FEW
        read = yield from self._read()
        if self._is_due or self._is_enough(read):
            return (yield from self._encode(read))
        return None

    def _session(self) -> Paced[FetchContext]:
        request = self._request
        wanted: dict[PartitionKey, PartitionFetch] = {}
        count = 0
        for topic, partitions in request.topics:
            count += 1
            if not count % AT_A_TIME:
                yield AT_A_TIME * FEW
            for p in partitions:
                count += 1
                wanted[PartitionKey(topic, p.partition_index)] = PartitionFetch(
                    p.fetch_offset,
                    p.partition_max_bytes,
                    p.current_leader_epoch,
                    p.last_fetched_epoch,
                    p.log_start_offset,
                )
                if not count % AT_A_TIME:
                    yield AT_A_TIME * FEW
        forgotten = []
        for topic, indexes in request.forgotten:
            count += 1
            if not count % AT_A_TIME:
                yield AT_A_TIME * FEW
            for index in indexes:
                forgotten.append(PartitionKey(topic, index))
                if not len(forgotten) % AT_A_TIME:
                    yield AT_A_TIME * FEW
        request.topics, request.forgotten = [], []  # a fetch may wait long: free this memory
        context: FetchContext = yield from self._services.fetch_sessions.begin(
            request.session_id,
            request.session_epoch,
            wanted,
            forgotten,
            privileged=self._follower is not None,
            uses_topic_ids=self._header.api_version >= TOPIC_IDS_FROM,
            now_ms=self._services.runtime.clock.now_ms(),
            new_id=self._new_session_id,
            isolation=self._isolation,
        )
        removed = self._services.fetch_sessions.removed
        while removed:
            session = removed.pop()
            if session.watch.fetch is not None:
                session.watch.fetch.end_wait()
            self._services.slices.run(session.unwatch(), own=True)
        return context

    def _new_session_id(self) -> int:
        return self._services.runtime.rng.randrange(1, 1 << 31)

    def _read(self) -> Paced[FetchRead]:
        files = self._services.logs.files
        most_files = max(1, files.max_held // 8)
        if files.is_short:
            self._services.server.close_slow_readers()
            most_files = 1
        context = self._context
        session, partitions = context.session, context.partitions
        if session is not None and context.incremental:
            partitions = yield from session.dirty()
        return (
            yield from read_partitions(
                self._services.replicas,
                partitions,
                self._max_bytes,
                self._isolation,
                self._follower,
                most_files,
                None if session is None else session.watch,
            )
        )

    def _is_enough(self, read: FetchRead) -> bool:
        return read.must_answer or read.size >= self._request.min_bytes or not self._context.partitions

    # --- waiting --------------------------------------------------------------------------------------

    def _watch_session(self, session: FetchSession) -> None:
        """Hear of changes from before the first read on. One fetch of a session waits: if it has another one
        already, that one is answered."""
        self._watch = session.watch
        if self._watch.fetch is not None:
            self._watch.fetch.end_wait()
        self._watch.fetch = self

    def _end_watch(self) -> None:
        if self._watch is not None and self._watch.fetch is self:
            self._watch.fetch = None
        self._watch = None

    def _looked(self, reply: Reply[Pieces | None]) -> None:
        """A read has ended: reply, read again if a partition changed during it, or wait."""
        self._is_looking = False
        if reply.error is not None:
            _log.error("Error while handling FETCH", exc_info=reply.error)
            self._forget()
            self._connection.close("internal error")
        elif reply.value is not None:
            place = self._place
            self._forget()
            if place is not None:
                self._connection.fulfil(place, *reply.value)
        elif self._place is None or self._connection.closed:
            self._forget()
        else:
            if self._timer is None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(self._request.max_wait_ms / 1000, self._time_out)
                self._connection.on_close[self] = self._forget
                self._connection.wait_for(self._place, max(1, len(self._watched)))
            if self._missed or self._is_due:
                self.look()

    def poke(self) -> None:
        """A watched partition changed. Read once per turn of the loop, however many appends it had."""
        if not self._poked:
            self._poked = True
            asyncio.get_running_loop().call_soon(self.look)

    def look(self) -> None:
        self._poked = False
        if self._is_looking:
            self._missed = True
        elif self._place is not None:
            self._is_looking, self._missed = True, False
            self._services.slices.run(self._again()).when_ready(self._looked)

    def end_wait(self) -> None:
        """Answer soon with what there is."""
        self._is_due = True
        self.poke()

    def _time_out(self) -> None:
        self._is_due = True
        self.look()

    def _forget(self) -> None:
        """Stop waiting."""
        self._place = None
        if self._timer is not None:
            self._timer.cancel()
        self._connection.on_close.pop(self, None)
        watch, watched, self._watched = self._watch, self._watched, {}
        self._end_watch()
        if watched and watch is not None:
            self._services.slices.run(self._unwatch(watch, watched))

    def _unwatch(self, watch: FetchWatch, watched: "dict[PartitionFetch, Partition]") -> Paced[None]:
        for partition in watched.values():
            partition.fetch_waiters.remove(watch)
            yield FEW

    # --- the reply ------------------------------------------------------------------------------------

    def _encode(self, read: FetchRead) -> Paced[Pieces]:
        context, session = self._context, self._context.session
        topics: dict[str | UUID, list[PartitionFetched]] = {}
        leaders: dict[int, None] = {}
        for count, answer in enumerate(read.answers, 1):
            if not count % AT_A_TIME:
                yield AT_A_TIME * STEP
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
        rows = list(topics.items())
        version, correlation_id = self._header.api_version, self._header.correlation_id
        session_id = INVALID_SESSION_ID if session is None else session.id
        image = self._services.metadata.image
        endpoints = [
            NodeEndpoint(leader, *endpoint)
            for leader in leaders
            if (endpoint := endpoint_of(image, leader, self._connection.listener)) is not None
        ]
        if len(read.answers) < AT_A_TIME:
            return encode_fetch_response(
                version, correlation_id, rows, session_id=session_id, node_endpoints=endpoints
            )
        return (
            yield from fetch_response_in_slices(
                version, correlation_id, rows, session_id=session_id, node_endpoints=endpoints
            )
        )
