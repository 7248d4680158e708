"""The producer: records in, one batch per partition under way at a time, acknowledged offsets out.

Gathering is batches.py, placing by key partitioner.py. Idempotent where acks=all: a retry is never doubled.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, NamedTuple

from odradek.client.admin import by_topic
from odradek.client.batches import Batch, PartitionQueue, record_size
from odradek.client.client import Client, check, may_pass
from odradek.client.partitioner import partition_of_key
from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.core.types import NO_LEADER, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, ZERO_UUID, TopicPartition
from odradek.records.batch import Headers, build_batch
from odradek.records.compression import CODEC_IDS
from odradek.runtime.scope import Scope
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

_LAST_PRODUCE_BY_NAME = 12
_IN_DOUBT = frozenset({ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND})


class Delivery(NamedTuple):
    """Where a record is. The offset is -1 at acks=0; the time is the broker's where it stamps records."""

    topic: str
    partition: int
    offset: int
    timestamp_ms: int


class Producer:
    """Use with `async with`. `send` queues a record and gives a future of its `Delivery`.

    Idempotence needs acks=-1. If a batch of an idempotent producer expires while nobody knows whether the
    broker has it, the producer stops: a later sequence could hide the gap. Make a new one then.
    """

    def __init__(
        self,
        client: Client,
        *,
        acks: int = -1,
        idempotent: bool | None = None,
        compression: str = "none",
        linger_ms: float = 0,
        batch_bytes: int = 131_072,
        buffer_bytes: int = 33_554_432,
        delivery_timeout_ms: int = 120_000,
        allow_auto_creation: bool = True,
    ) -> None:
        self._client = client
        self._acks = acks
        self._idempotent = acks == -1 if idempotent is None else idempotent
        if self._idempotent and acks != -1:
            raise ValueError("an idempotent producer needs acks=-1 (all)")
        self._codec = CODEC_IDS[compression]
        self._linger_s = linger_ms / 1000
        self._batch_bytes = batch_bytes
        self._buffer_bytes = buffer_bytes
        self._delivery_timeout_s = delivery_timeout_ms / 1000
        self._allow_auto_creation = allow_auto_creation
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._queues: dict[TopicPartition, PartitionQueue] = {}
        self._turns: dict[str, _Turn] = {}
        self._queued_bytes = 0
        self._pending = 0
        self._flushing = 0
        self._busy_nodes: set[int] = set()
        self._work = asyncio.Event()
        self._progress: asyncio.Future[None] | None = None
        self._scope: Scope | None = None
        self._fatal: Exception | None = None

    async def __aenter__(self) -> "Producer":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def send(
        self,
        topic: str,
        value: bytes | None,
        *,
        key: bytes | None = None,
        partition: int | None = None,
        timestamp_ms: int | None = None,
        headers: Headers = (),
    ) -> "asyncio.Future[Delivery]":
        """Queue a record; waits only for the topic's partitions to be known and for room in the buffer."""
        self._check_usable()
        partitions = await self._partitions(topic)
        size = record_size(key, value, headers)
        tp = TopicPartition(topic, self._place(topic, partitions, key, partition, size))
        while self._queued_bytes and self._queued_bytes + size > self._buffer_bytes:
            await self._wait_for_progress()
            self._check_usable()
        if timestamp_ms is None:
            timestamp_ms = self._client.runtime.clock.now_ms()
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[Delivery] = loop.create_future()
        queue = self._queues.get(tp)
        if queue is None:
            queue = self._queues[tp] = PartitionQueue(tp, self._batch_bytes)
        queue.add((timestamp_ms, key, value, headers), size, waiter, loop.time())
        self._queued_bytes += size
        self._pending += 1
        if self._scope is None:
            self._scope = Scope(self._on_failure)
            self._scope.spawn(self._run(), name="producer")
        self._work.set()
        return waiter

    async def flush(self) -> None:
        """Send what is queued without lingering; returns when all of it is acknowledged or has failed."""
        self._flushing += 1
        try:
            while self._pending:
                self._work.set()
                await self._wait_for_progress()
        finally:
            self._flushing -= 1

    async def close(self) -> None:
        """Flush, then stop."""
        await self.flush()
        if self._scope is not None:
            await self._scope.close()
            self._scope = None
        self._fatal = self._fatal or RuntimeError("the producer is closed")

    def _check_usable(self) -> None:
        if self._fatal is not None:
            raise self._fatal

    async def _partitions(self, topic: str) -> list[int]:
        known = self._client.cluster.topics.get(topic)
        if known is not None:
            return list(known.partitions)

        async def attempt() -> list[int]:
            return await self._client.partitions(topic, allow_auto_creation=self._allow_auto_creation)

        return await self._client.retrying(attempt)

    def _place(
        self, topic: str, partitions: Sequence[int], key: bytes | None, partition: int | None, size: int
    ) -> int:
        if partition is not None:
            if partition not in partitions:
                raise KafkaError(
                    ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no partition {topic}-{partition}"
                )
            return partition
        if key is not None:
            return partitions[partition_of_key(key, len(partitions))]
        # Stay with one partition for a batch, then go on to the next. Where it begins is random: many
        # producers of a few records each must not all choose the same partition.
        turn = self._turns.get(topic)
        if turn is None:
            turn = self._turns[topic] = _Turn(self._client.runtime.rng.randrange(len(partitions)))
        if turn.bytes >= self._batch_bytes:
            turn.index, turn.bytes = turn.index + 1, 0
        turn.bytes += size
        return partitions[turn.index % len(partitions)]

    # The sending side

    async def _run(self) -> None:
        """Send whatever is ready, again and again."""
        assert self._scope is not None
        if self._idempotent:
            await self._take_producer_id()
        while True:
            self._work.clear()
            wake_at = self._send_ready(self._scope)
            try:
                async with asyncio.timeout_at(wake_at):
                    await self._work.wait()
            except TimeoutError:
                continue

    async def _take_producer_id(self) -> None:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)

        async def attempt() -> Any:
            response = await self._client.send(ApiKey.INIT_PRODUCER_ID, request)
            check(response.error_code, place="a producer id")
            return response

        response = await self._client.retrying(attempt)
        self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch

    def _send_ready(self, scope: Scope) -> float | None:
        """Start a request to every idle leader of a ready batch; when to look again."""
        now = asyncio.get_running_loop().time()
        linger_s = 0.0 if self._flushing else self._linger_s
        wake_at: float | None = None
        by_node: dict[int, list[PartitionQueue]] = {}
        for queue in self._queues.values():
            ready_at = queue.ready_at(linger_s)
            if ready_at is None:
                continue
            if ready_at > now:
                wake_at = ready_at if wake_at is None else min(wake_at, ready_at)
            elif self._expired(queue.batches[0], now):
                late = TimeoutError(f"records for {queue.tp} were not delivered in time")
                self._give_up(queue, queue.batches[0], queue.batches[0].failure or late)
            else:
                by_node.setdefault(self._client.cluster.leader(queue.tp), []).append(queue)
        for node_id, queues in by_node.items():
            if node_id in self._busy_nodes:
                continue
            self._busy_nodes.add(node_id)
            for queue in queues:
                queue.in_flight = True
            send = self._find_leaders(queues) if node_id == NO_LEADER else self._deliver(node_id, queues)
            scope.spawn(send, name=f"produce to {node_id}")
        return wake_at

    async def _find_leaders(self, queues: list[PartitionQueue]) -> None:
        try:
            await self._client.refresh(queue.tp.topic for queue in queues)
        except (OSError, KafkaError) as e:
            if not may_pass(e):
                raise
        finally:
            self._release(NO_LEADER, queues)
        for queue in queues:
            if self._client.cluster.leader(queue.tp) == NO_LEADER and queue.batches:
                code = self._client.cluster.errors.get(queue.tp.topic, ErrorCode.LEADER_NOT_AVAILABLE)
                self._settle(queue, queue.batches[0], KafkaError(code, place=f"produce to {queue.tp}"))

    async def _deliver(self, node_id: int, queues: list[PartitionQueue]) -> None:
        batches = {queue.tp: queue.batches[0] for queue in queues}
        tries = {tp: batch.tries for tp, batch in batches.items()}
        failure: Exception | None = None
        answers: dict[TopicPartition, Any] = {}
        try:
            answers = await self._produce(node_id, batches)
        except (OSError, KafkaError) as e:
            failure = e
        finally:
            self._release(node_id, queues)
        for queue in queues:
            batch = batches[queue.tp]
            if not queue.batches or queue.batches[0] is not batch:
                continue  # given up meanwhile, with everything else
            answer = answers.get(queue.tp)
            if answer is None:
                self._client.forget_leader(queue.tp)
                error = failure or KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {queue.tp}")
                self._settle(queue, batch, error, in_doubt=batch.tries > tries[queue.tp])
            else:
                self._on_answer(queue, batch, answer)

    def _release(self, node_id: int, queues: list[PartitionQueue]) -> None:
        self._busy_nodes.discard(node_id)
        for queue in queues:
            queue.in_flight = False
        self._work.set()

    async def _produce(self, node_id: int, batches: dict[TopicPartition, Batch]) -> dict[TopicPartition, Any]:
        types = request_types(ApiKey.PRODUCE)
        cluster = self._client.cluster
        for tp, batch in batches.items():
            if batch.data is None:
                self._encode(tp, batch)
        names = by_topic(list(batches))
        request = types.ProduceRequest(
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
        max_version = None if all(cluster.topic_id(n) != ZERO_UUID for n in names) else _LAST_PRODUCE_BY_NAME
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

    def _encode(self, tp: TopicPartition, batch: Batch) -> None:
        batch.sequence = self._queues[tp].next_sequence if self._idempotent else -1
        batch.data = build_batch(
            batch.records,
            codec=self._codec,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=batch.sequence,
        )

    def _on_answer(self, queue: PartitionQueue, batch: Batch, answer: Any) -> None:
        if answer.error_code and answer.error_code != ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            error = _error_of(queue.tp, answer)
            if error.retriable:
                self._client.forget_leader(queue.tp)
            self._settle(queue, batch, error, in_doubt=error.code in _IN_DOUBT)
            return
        queue.delivered(batch)
        self._done(batch)
        stamped = answer.log_append_time
        for i, waiter in enumerate(batch.waiters):
            if not waiter.done():
                offset = answer.base_offset + i if answer.base_offset >= 0 else -1
                timestamp_ms = batch.records[i][0] if stamped < 0 else stamped
                waiter.set_result(Delivery(queue.tp.topic, queue.tp.partition, offset, timestamp_ms))

    def _settle(
        self, queue: PartitionQueue, batch: Batch, error: Exception, *, in_doubt: bool = False
    ) -> None:
        """A batch was not acknowledged: send it again later, or fail it."""
        batch.in_doubt = batch.in_doubt or in_doubt
        batch.failure = error
        now = asyncio.get_running_loop().time()
        if may_pass(error) and not self._expired(batch, now):
            batch.not_before = now + self._client.backoff_ms(batch.tries) / 1000
            self._work.set()
        else:
            self._give_up(queue, batch, error)

    def _expired(self, batch: Batch, now: float) -> bool:
        return now - batch.created_at > self._delivery_timeout_s

    def _give_up(self, queue: PartitionQueue, batch: Batch, error: Exception) -> None:
        queue.dropped(batch)
        self._done(batch)
        _fail(batch, error)
        if self._idempotent and batch.in_doubt:
            self._on_failure(error)

    def _done(self, batch: Batch) -> None:
        self._queued_bytes -= batch.size
        self._pending -= len(batch.waiters)
        if self._progress is not None:
            self._progress.set_result(None)
            self._progress = None

    def _on_failure(self, error: BaseException) -> None:
        """Nothing more can be sent: whoever waits is told why."""
        if self._fatal is None:
            self._fatal = error if isinstance(error, Exception) else RuntimeError(str(error))
        for queue in self._queues.values():
            while queue.batches:
                batch = queue.batches.popleft()
                self._done(batch)
                _fail(batch, self._fatal)

    async def _wait_for_progress(self) -> None:
        """Until some batch has been acknowledged or has failed."""
        if self._progress is None:
            self._progress = asyncio.get_running_loop().create_future()
        await asyncio.shield(self._progress)


class _Turn:
    """Whose turn it is among the partitions of a topic, and how much it has got."""

    __slots__ = ("bytes", "index")

    def __init__(self, index: int) -> None:
        self.index = index
        self.bytes = 0


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
            # A caller that did not keep the future has chosen not to be told.
            waiter.exception()
