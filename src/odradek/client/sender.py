"""The sending side of a producer: takes batches from the queues to the leaders and reports their outcome.

batches.py chooses the next batch. `Terms` decide the producer's identity, and what a failure means.
"""

import asyncio
from collections.abc import Iterable
from typing import Any, NamedTuple, Protocol

from odradek.client.admin import by_topic
from odradek.client.batches import MAX_IN_FLIGHT, NOBODY, Batch, PartitionQueue, Stage
from odradek.client.client import Client, check, may_pass
from odradek.client.watching import MovedError
from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.core.types import NO_LEADER, NO_SEQUENCE, ZERO_UUID, ProducerIdAndEpoch, TopicPartition
from odradek.records.batch import RecordTuple, build_batch
from odradek.runtime.scope import Scope
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_LAST_PRODUCE_BY_NAME = 12
_IN_DOUBT = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})
_STATE_LOST = frozenset({ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER, ErrorCode.UNKNOWN_PRODUCER_ID})
_CONCURRENT_PAUSE_S = 0.02


class Delivery(NamedTuple):
    """Where a record is. The offset is -1 at acks=0; the time is the broker's where it stamps records."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Terms(Protocol):
    """As whom a producer writes. `identity` is None while there is none to write as; one that `recovers`
    takes another and goes on when a partition's sequences have come apart."""

    identity: ProducerIdAndEpoch | None
    transactional_id: str | None
    recovers: bool

    @property
    def max_produce_version(self) -> int | None: ...

    async def prepare(self) -> None:
        """Awaited before anything is sent."""

    def on_queued(self, tp: TopicPartition) -> None:
        """A record is about to be queued; raises where that is not allowed now."""

    def admits(self, tp: TopicPartition) -> bool:
        """May new batches go to this partition now?"""

    async def renew(self) -> None:
        """Take the next producer id and epoch: sequences start at 0 again."""

    def on_failure(self, error: Exception) -> Exception | None:
        """A batch failed finally. A returned error ends the producer."""


class Sender:
    """`add` queues a record and returns the future of its delivery. `pending` counts records without a
    result."""

    def __init__(
        self,
        client: Client,
        terms: Terms,
        *,
        acks: int,
        codec: int,
        linger_s: float,
        batch_bytes: int,
        delivery_timeout_s: float,
        max_in_flight: int,
    ) -> None:
        self.pending = 0
        self.queued_bytes = 0
        self.failure: Exception | None = None
        self._client = client
        self._terms = terms
        self._acks = acks
        self._codec = codec
        self._linger_s = linger_s
        self._batch_bytes = batch_bytes
        self._delivery_timeout_s = delivery_timeout_s
        self._max_in_flight = max_in_flight
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._flushing = 0
        self._requests: dict[int, int] = {}
        self._discarding: Exception | None = None
        self._work = asyncio.Event()
        self._progress: asyncio.Future[None] | None = None
        self._scope: Scope | None = None

    def add(self, tp: TopicPartition, record: RecordTuple, size: int) -> "asyncio.Future[Delivery]":
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Delivery] = loop.create_future()
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = PartitionQueue(tp, self._batch_bytes, self._max_in_flight)
        queue.add(record, size, waiter, loop.time())
        self.queued_bytes += size
        self.pending += 1
        if self._scope is None:
            self._scope = Scope(self.stop)
            self._scope.spawn(self._run(), name="producer")
        self._work.set()
        return waiter

    async def flush(self) -> None:
        """Send what is queued without lingering; returns when all of it is acknowledged or has failed."""
        with self.hurrying():
            while self.pending:
                await self.progress()

    def hurrying(self) -> "_Hurry":
        """Nothing lingers inside this block."""
        return _Hurry(self)

    async def discard(self, reason: Exception) -> bool:
        """Drop queued batches, and wait for those in flight. Returns whether there is a gap in the sequences
        now."""
        self._discarding = reason
        try:
            for queue in self._queues.values():
                for batch in reversed(list(queue.batches)):
                    if batch.stage in (Stage.FRESH, Stage.RETRY):
                        self._give_up(queue, batch, reason)
            while any(queue.in_flight for queue in self._queues.values()):
                await self.progress()
        finally:
            self._discarding = None
        broken = [queue for queue in self._queues.values() if queue.has_gap]
        for queue in broken:
            queue.restart()
        return bool(broken)

    def wake(self) -> None:
        """Something that batches waited for has changed."""
        self._work.set()
        self._tell_progress()

    async def progress(self) -> None:
        """Until some batch has been acknowledged or has failed."""
        if self._progress is None:
            self._progress = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._progress)

    def stop(self, error: BaseException) -> None:
        """Nothing more can be sent: fail all waiting records with the reason."""
        if self.failure is None:
            self.failure = error if isinstance(error, Exception) else RuntimeError(str(error))
        for queue in self._queues.values():
            while queue.batches:
                batch = queue.batches.popleft()
                if batch.stage not in (Stage.LOST, Stage.REFUSED):
                    self._done(batch)
                    _fail(batch, self.failure)
        self.wake()

    async def close(self) -> None:
        if self._scope is not None:
            await self._scope.close()
            self._scope = None

    async def _run(self) -> None:
        """Send whatever is ready, again and again."""
        assert self._scope is not None
        await self._terms.prepare()
        while True:
            self._work.clear()
            await self._mend()
            wake_at = self._send_ready(self._scope)
            try:
                async with asyncio.timeout_at(wake_at):
                    await self._work.wait()
            except TimeoutError:
                continue

    async def _mend(self) -> None:
        """New sequences where old ones have come apart, all at once: the identity is everybody's."""
        if not self._terms.recovers:
            return
        broken = [queue for queue in self._queues.values() if queue.restart_due]
        if broken:
            await self._terms.renew()
            for queue in broken:
                queue.restart()

    def _send_ready(self, scope: Scope) -> float | None:
        """Send ready batches to their leaders, up to the limit in flight. Returns when to check again."""
        while True:
            wake_at, by_node = self._ready_by_leader()
            started = False
            for node_id, queues in by_node.items():
                limit = 1 if node_id == NO_LEADER else MAX_IN_FLIGHT
                if self._requests.get(node_id, 0) >= limit:
                    continue
                self._requests[node_id] = self._requests.get(node_id, 0) + 1
                started = started or node_id != NO_LEADER
                work = self._find_leaders(queues) if node_id == NO_LEADER else self._start(node_id, queues)
                scope.spawn(work, name=f"produce to {node_id}")
            if not started:
                return wake_at

    def _ready_by_leader(self) -> tuple[float | None, dict[int, list[PartitionQueue]]]:
        now = asyncio.get_running_loop().time()
        linger_s = 0.0 if self._flushing else self._linger_s
        identity = self._terms.identity
        wake_at: float | None = None
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in self._queues.values():
            batch = queue.candidate() if queue.batches else None
            if batch is None:
                continue
            if self._expired(batch, now):
                late = TimeoutError(f"records for {queue.tp} were not delivered in time")
                self._give_up(queue, batch, batch.failure or late)
                self._work.set()
                continue
            if batch.stage is Stage.FRESH and (
                identity is None or not queue.wants(identity) or not self._terms.admits(queue.tp)
            ):
                continue
            ready_at = queue.ready_at(linger_s)
            assert ready_at is not None
            if ready_at > now:
                wake_at = ready_at if wake_at is None else min(wake_at, ready_at)
            else:
                by_node.setdefault(self._client.cluster.leader(queue.tp), []).append(queue)
        return wake_at, by_node

    async def _find_leaders(self, queues: list[PartitionQueue]) -> None:
        try:
            await self._client.refresh(queue.tp.topic for queue in queues)
        except (OSError, KafkaError) as e:
            if not may_pass(e):
                raise
        finally:
            self._release(NO_LEADER)
        for queue in queues:
            batch = queue.candidate()
            if batch is not None and self._client.cluster.leader(queue.tp) == NO_LEADER:
                code = self._client.cluster.errors.get(queue.tp.topic, ErrorCode.LEADER_NOT_AVAILABLE)
                self._retry_or_fail(queue, batch, KafkaError(code, place=f"produce to {queue.tp}"))

    def _start(self, node_id: int, queues: list[PartitionQueue]) -> Any:
        """Give the batches their sequences now, in order; the request itself may have to wait its turn."""
        batches: list[tuple[PartitionQueue, Batch]] = []
        for queue in queues:
            batch = queue.candidate()
            assert batch is not None
            queue.take(batch, self._terms.identity or NOBODY)
            batches.append((queue, batch))
        return self._deliver(node_id, batches)

    async def _deliver(self, node_id: int, sent: list[tuple[PartitionQueue, Batch]]) -> None:
        tries = [batch.tries for _, batch in sent]
        failure: Exception | None = None
        answers: dict[TopicPartition, Any] = {}
        try:
            batches = {queue.tp: batch for queue, batch in sent}
            work = self._produce(node_id, batches)
            if all(batch.sequence != NO_SEQUENCE for batch in batches.values()):
                # The new leader recognizes what the old one has replicated: it may be sent twice.
                work = self._client.while_leading(work, node_id, batches)
            answers = await work
        except (OSError, KafkaError) as e:
            failure = e
        finally:
            self._release(node_id)
        for (queue, batch), tries_before in zip(sent, tries, strict=True):
            if batch not in queue.batches:
                continue  # given up meanwhile, with everything else
            answer = answers.get(queue.tp)
            if answer is None:
                if not isinstance(failure, MovedError):
                    self._client.forget_leader(queue.tp)
                error = failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {queue.tp}")
                self._retry_or_fail(queue, batch, error, in_doubt=batch.tries > tries_before)
            else:
                self._on_answer(queue, batch, answer)

    def _release(self, node_id: int) -> None:
        self._requests[node_id] -= 1
        self._work.set()

    async def _produce(self, node_id: int, batches: dict[TopicPartition, Batch]) -> dict[TopicPartition, Any]:
        types = request_types(ApiKey.PRODUCE)
        cluster = self._client.cluster
        for batch in batches.values():
            if batch.data is None:
                batch.data = self._encode(batch)
        names = by_topic(list(batches))
        request = types.ProduceRequest(
            transactional_id=self._terms.transactional_id,
            acks=self._acks,
            timeout=self._client.request_timeout_ms,
            topic_data=[
                types.TopicProduceData(
                    name=name,
                    topic_id=cluster.topic_id(name),
                    partition_data=[
                        types.PartitionProduceData(index=tp.partition, records=batches[tp].data)
                        for tp in partitions
                    ],
                )
                for name, partitions in names.items()
            ],
        )
        max_version = self._max_version(names)
        connection = await self._client.connection(node_id)
        for batch in batches.values():
            batch.tries += 1
        if self._acks == 0:
            connection.send_unanswered(ApiKey.PRODUCE, request, max_version=max_version)
            return dict.fromkeys(batches, _UNACKNOWLEDGED)
        response = await connection.send(ApiKey.PRODUCE, request, max_version=max_version)
        return {
            TopicPartition(topic.name or cluster.names.get(topic.topic_id, ""), answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }

    def _max_version(self, names: Iterable[str]) -> int | None:
        if self._terms.max_produce_version is not None:
            return self._terms.max_produce_version
        by_id = all(self._client.cluster.topic_id(name) != ZERO_UUID for name in names)
        return None if by_id else _LAST_PRODUCE_BY_NAME

    def _encode(self, batch: Batch) -> bytearray:
        return build_batch(
            batch.records,
            codec=self._codec,
            producer_id=batch.identity.producer_id,
            producer_epoch=batch.identity.producer_epoch,
            base_sequence=batch.sequence,
            transactional=self._terms.transactional_id is not None,
        )

    def _on_answer(self, queue: PartitionQueue, batch: Batch, answer: Any) -> None:
        if answer.error_code and answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            error = _error_of(queue.tp, answer)
            if error.retriable:
                self._client.forget_leader(queue.tp)
            if error.code in _STATE_LOST and self._discarding is None and self._comes_again(queue, batch):
                queue.put_back(batch, asyncio.get_running_loop().time())
            else:
                self._retry_or_fail(queue, batch, error, in_doubt=error.code in _IN_DOUBT)
            return
        queue.delivered(batch)
        self._done(batch)
        stamped = answer.log_append_time
        for i, waiter in enumerate(batch.waiters):
            if not waiter.done():
                offset = answer.base_offset + i if answer.base_offset >= 0 else -1
                timestamp_ms = batch.records[i][0] if stamped < 0 else stamped
                waiter.set_result(Delivery(queue.tp.topic, queue.tp.partition, offset, timestamp_ms))

    def _comes_again(self, queue: PartitionQueue, batch: Batch) -> bool:
        """After an unexpected sequence: behind a batch that has to come again itself, it just waits for it.
        At the front the sequences have come apart, which a recovering producer mends."""
        before = [other.stage for other in queue.before(batch)]
        if Stage.RETRY in before or Stage.IN_FLIGHT in before:
            return True
        if self._terms.recovers:
            queue.break_off()
        return self._terms.recovers

    def _retry_or_fail(
        self, queue: PartitionQueue, batch: Batch, error: Exception, *, in_doubt: bool = False
    ) -> None:
        """A batch was not acknowledged: send it again later, or fail it."""
        batch.in_doubt = batch.in_doubt or in_doubt
        batch.failure = error
        now = asyncio.get_running_loop().time()
        if may_pass(error) and not self._expired(batch, now) and self._discarding is None:
            pause_s = self._client.backoff_ms(batch.tries) / 1000
            if isinstance(error, KafkaError) and error.code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pause_s = _CONCURRENT_PAUSE_S
            elif isinstance(error, MovedError):
                pause_s = 0  # the new leader is known
            queue.put_back(batch, now + pause_s)
            self._work.set()
        else:
            self._give_up(queue, batch, error)

    def _expired(self, batch: Batch, now: float) -> bool:
        return now - batch.created_at > self._delivery_timeout_s

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        queue.give_up(batch)
        fatal = None if error is self._discarding else self._terms.on_failure(error)
        self._done(batch)
        _fail(batch, error)
        if fatal is not None:
            self.stop(fatal)

    def _done(self, batch: Batch) -> None:
        self.queued_bytes -= batch.size
        self.pending -= len(batch.waiters)
        self._tell_progress()

    def _tell_progress(self) -> None:
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None

    def hurry(self, change: int) -> None:
        self._flushing += change
        self._work.set()


class _Hurry:
    __slots__ = ("_sender",)

    def __init__(self, sender: Sender) -> None:
        self._sender = sender

    def __enter__(self) -> None:
        self._sender.hurry(1)

    def __exit__(self, *_: object) -> None:
        self._sender.hurry(-1)


class _Unacknowledged(NamedTuple):
    """Stands for the answer that acks=0 does not get."""

    error_code: int = 0
    base_offset: int = -1
    log_append_time: int = -1


_UNACKNOWLEDGED = _Unacknowledged()


def _error_of(tp: TopicPartition, answer: Any) -> KafkaError:
    try:
        check(answer.error_code, answer.error_message, place=f"produce to {tp}")
    except KafkaError as e:
        if not answer.record_errors:
            return e
        reasons = [(r.batch_index, r.batch_index_error_message or "") for r in answer.record_errors]
        return RecordError(e.code, e.message, reasons, place=e.place)
    raise AssertionError("an answer without an error")


def _fail(batch: Batch, error: Exception) -> None:
    for waiter in batch.waiters:
        if not waiter.done():
            waiter.set_exception(error)
            # The caller did not keep the future: ignore the error.
            waiter.exception()
