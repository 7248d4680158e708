"""Batches of records on their way to the leaders: in order for every partition, each exactly once.

A partition has one batch in flight. If it must be sent again, the broker recognises it by its sequence.
Which records go into a batch is rows.py's.
"""

import asyncio
from collections import deque
from typing import Any

from odradek.client.admin import TOPIC, Admin, by_topic
from odradek.client.client import Client, check, may_pass
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, ZERO_UUID, ProducerIdAndEpoch, TopicPartition
from odradek.records.compression import NONE, compress
from odradek.records.header import HEADER_BYTES, TRANSACTIONAL_FLAG, iter_batches, pack_header
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

DELIVERY_TIMEOUT_S = 120.0
"""How long a cluster that does not answer is waited for, unless kafka.delivery.timeout.ms says otherwise."""

_LAST_PRODUCE_BY_NAME = 12
_REQUEST_BYTES = 4 << 20
_QUEUED_BYTES = 32 << 20
_SEQUENCE_MASK = 0x7FFFFFFF
_CONCURRENT_PAUSE_S = 0.005


class _Lane:
    """What waits for one partition."""

    __slots__ = ("batches", "is_sending", "rows", "sequence", "tp")

    def __init__(self, tp: TopicPartition) -> None:
        self.tp = tp
        self.batches: deque[bytearray] = deque()
        self.is_sending = False
        self.sequence = 0
        self.rows = 0


class Outbox:
    """`put` takes the records of a batch behind room for its header, and waits while too much is queued."""

    def __init__(
        self,
        client: Client,
        identity: ProducerIdAndEpoch,
        transactional_id: str | None,
        *,
        codec: int = NONE,
        delivery_timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> None:
        self._client = client
        self._identity = identity
        self._transactional_id = transactional_id
        self._codec = codec
        self._timeout_s = delivery_timeout_s
        self._channel = client.new_channel("produce")
        self._lanes: dict[TopicPartition, _Lane] = {}
        self._queued = 0
        self._tasks: dict[asyncio.Task[None], None] = {}
        self._moved = asyncio.Event()
        self._failure: BaseException | None = None

    @property
    def rows(self) -> int:
        return sum(lane.rows for lane in self._lanes.values())

    @property
    def partitions(self) -> list[TopicPartition]:
        return sorted(self._lanes)

    async def put(self, tp: TopicPartition, batch: bytearray, count: int, timestamp_ms: int) -> None:
        lane = self._lanes.get(tp)
        if lane is None:
            lane = self._lanes[tp] = _Lane(tp)
        await self._until(lambda: self._queued < _QUEUED_BYTES)
        sealed = self._sealed(lane, batch, count, timestamp_ms)
        lane.batches.append(sealed)
        lane.sequence = (lane.sequence + count) & _SEQUENCE_MASK
        lane.rows += count
        self._queued += len(sealed)
        self._send_ready()

    async def flush(self) -> None:
        """Until everything is acknowledged by all in-sync replicas."""
        await self._until(lambda: self._queued == 0)

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        self._client.close_channel(self._channel)

    def _sealed(self, lane: _Lane, batch: bytearray, count: int, timestamp_ms: int) -> bytearray:
        if self._codec:
            packed = compress(self._codec, memoryview(batch)[HEADER_BYTES:])
            batch = bytearray(HEADER_BYTES)
            batch += packed
        pack_header(
            batch,
            base_offset=0,
            leader_epoch=-1,
            attributes=self._codec | (TRANSACTIONAL_FLAG if self._transactional_id is not None else 0),
            last_offset_delta=count - 1,
            base_timestamp=timestamp_ms,
            max_timestamp=timestamp_ms,
            producer_id=self._identity.producer_id,
            producer_epoch=self._identity.producer_epoch,
            base_sequence=lane.sequence,
            record_count=count,
        )
        return batch

    async def _until(self, condition: Any) -> None:
        while not condition():
            self._raise()
            self._moved.clear()
            await self._moved.wait()
        self._raise()

    def _raise(self) -> None:
        if self._failure is not None:
            raise self._failure

    def _send_ready(self) -> None:
        """Batches of idle partitions, together where they go to the same broker."""
        by_node: dict[int, list[_Lane]] = {}
        for lane in self._lanes.values():
            if lane.batches and not lane.is_sending:
                by_node.setdefault(self._client.cluster.leader(lane.tp), []).append(lane)
        for lanes in by_node.values():
            chosen: list[_Lane] = []
            size = 0
            for lane in lanes:
                if chosen and size + len(lane.batches[0]) > _REQUEST_BYTES:
                    self._start(chosen)
                    chosen, size = [], 0
                chosen.append(lane)
                size += len(lane.batches[0])
            self._start(chosen)

    def _start(self, lanes: list[_Lane]) -> None:
        for lane in lanes:
            lane.is_sending = True
        task = asyncio.ensure_future(self._deliver(lanes))
        self._tasks[task] = None
        task.add_done_callback(self._on_done)

    def _on_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.pop(task, None)
        if not task.cancelled() and task.exception() is not None and self._failure is None:
            self._failure = task.exception()
        self._moved.set()

    async def _deliver(self, lanes: list[_Lane]) -> None:
        deadline = asyncio.get_running_loop().time() + self._timeout_s
        waiting = lanes
        tries = 0
        while waiting:
            failure: Exception | None = None
            going = waiting
            left: list[_Lane] = []
            try:
                going, left = await self._together(waiting)
                answers = await self._produce(going)
            except (OSError, KafkaError) as e:
                if not may_pass(e):
                    raise
                failure, answers = e, {}
                for lane in going:
                    self._client.forget_leader(lane.tp)
            for lane in going:
                try:
                    if lane.tp not in answers:
                        raise failure or KafkaError(
                            ErrorCode.UNKNOWN_SERVER_ERROR, f"no answer for {lane.tp}"
                        )
                    await self._check(lane, answers[lane.tp])
                except (OSError, KafkaError) as e:
                    if not may_pass(e):
                        raise
                    failure = e
                    left.append(lane)
                else:
                    self._delivered(lane)
            if failure is not None:
                concurrent = getattr(failure, "code", None) is ErrorCode.CONCURRENT_TRANSACTIONS
                pause_s = _CONCURRENT_PAUSE_S if concurrent else self._client.backoff_ms(tries) / 1000
                if asyncio.get_running_loop().time() + pause_s >= deadline:
                    raise failure
                await asyncio.sleep(pause_s)
            waiting, tries = left, tries + 1
        self._send_ready()

    def _delivered(self, lane: _Lane) -> None:
        self._queued -= len(lane.batches.popleft())
        lane.is_sending = False
        self._moved.set()

    async def _check(self, lane: _Lane, answer: Any) -> None:
        if answer.error_code == ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            return
        if answer.error_code == ErrorCode.MESSAGE_TOO_LARGE:
            raise KafkaError(ErrorCode.MESSAGE_TOO_LARGE, await self._too_large(lane))
        if answer.error_code:
            self._client.forget_leader(lane.tp)
            check(answer.error_code, answer.error_message, place=f"produce to {lane.tp}")

    async def _too_large(self, lane: _Lane) -> str:
        """Which batch, and which of two settings has to change: one record alone cannot be made smaller."""
        batch, topic = lane.batches[0], lane.tp.topic
        count = next(iter_batches(batch)).record_count
        what = "a record" if count == 1 else f"a batch of {count} records"
        helps = "" if count == 1 else ", or lower kafka.batch.size"
        try:
            configs = await Admin(self._client).describe_configs(TOPIC, topic)
            limit = next((config.value for config in configs if config.name == "max.message.bytes"), "?")
        except (OSError, KafkaError):
            limit = "?"
        return (
            f"{what} for {lane.tp} has {len(batch)} bytes, and the topic takes {limit}: "
            f"raise max.message.bytes of {topic}{helps}"
        )

    async def _together(self, lanes: list[_Lane]) -> tuple[list[_Lane], list[_Lane]]:
        """Those that have the leader of the first, and the others. Leaders move."""
        node_id = await self._client.leader(lanes[0].tp)
        left = [lane for lane in lanes if self._client.cluster.leader(lane.tp) not in (node_id, NO_LEADER)]
        return [lane for lane in lanes if lane not in left], left

    async def _produce(self, lanes: list[_Lane]) -> dict[TopicPartition, Any]:
        """One request to the leader of the first."""
        client = self._client
        types = request_types(ApiKey.PRODUCE)
        node_id = await client.leader(lanes[0].tp)
        going = {lane.tp: lane for lane in lanes}
        names = by_topic(list(going))
        request = types.ProduceRequest(
            transactional_id=self._transactional_id,
            acks=-1,
            timeout=client.request_timeout_ms,
            topic_data=[
                types.TopicProduceData(
                    name=name,
                    topic_id=client.cluster.topic_id(name),
                    partition_data=[
                        types.PartitionProduceData(index=tp.partition, records=going[tp].batches[0])
                        for tp in partitions
                    ],
                )
                for name, partitions in names.items()
            ],
        )
        by_id = all(client.cluster.topic_id(name) != ZERO_UUID for name in names)
        work = client.send(
            ApiKey.PRODUCE,
            request,
            node_id=node_id,
            channel=self._channel,
            max_version=None if by_id else _LAST_PRODUCE_BY_NAME,
        )
        response = await client.while_leading(work, node_id, going)
        return {
            TopicPartition(topic.name or client.cluster.names.get(topic.topic_id, ""), answer.index): answer
            for topic in response.responses
            for answer in topic.partition_responses
        }
