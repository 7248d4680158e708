"""The clients of a simulated cluster with replicated topics: producers, consumers, committers of offsets.

Each asks the leader that the metadata names, one thing at a time, and tells the checker what it was answered.
Callers hide nothing: there are no retries but those here.
"""

import asyncio
import random
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import (
    NO_LEADER,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    ZERO_UUID,
    TopicPartition,
)
from odradek.records.batch import build_batch, iter_batches
from odradek.sim.replication import rules
from odradek.sim.replication.checker import Checker
from odradek.sim.replication.truth import Mark, PartitionTruth
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.workloads.consuming import earliest_offset, fetch_committed, fetch_request
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

FIRST_VERSIONS: Final = {
    ApiKey.CREATE_TOPICS: 7,
    ApiKey.DELETE_TOPICS: 6,
    ApiKey.METADATA: 12,
    ApiKey.OFFSET_FETCH: 8,
    ApiKey.FIND_COORDINATOR: 4,
}
TIMEOUT_MS: Final = 3_000
ACKS_ALL: Final = -1
_PAUSE_SECONDS: Final = 0.25
_FORGET: Final = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
        ErrorCode.INVALID_PRODUCER_EPOCH,
    }
)


class Stop:
    """Clients go on until `is_set`."""

    def __init__(self) -> None:
        self.is_set = False


class Led(NamedTuple):
    """Who leads a partition, as far as a client knows."""

    topic_id: UUID
    leader: int


class Router:
    """Brings requests to leaders and coordinators: it has a connection to each broker, and the metadata."""

    def __init__(self, world: World, name: str, brokers: Mapping[int, tuple[str, int]]) -> None:
        runtime = world.runtime(name)
        self.now_ms = runtime.clock.now_ms
        self._rng = world.rng_for(f"{name}:routes")
        self._callers = {
            node_id: Caller(
                runtime, [address], name, world.rng_for(f"{name}:{node_id}"), min_versions=FIRST_VERSIONS
            )
            for node_id, address in brokers.items()
        }
        self._led: dict[TopicPartition, Led] = {}

    def close(self) -> None:
        for caller in self._callers.values():
            caller.close()

    def any(self) -> Caller:
        return self._rng.choice(list(self._callers.values()))

    def of(self, node_id: int) -> Caller:
        """Raises NoAnswer for a broker that is not one of this cluster."""
        if node_id not in self._callers:
            raise NoAnswer(f"broker {node_id}")
        return self._callers[node_id]

    def forget(self, tp: TopicPartition) -> None:
        self._led.pop(tp, None)

    async def leader(self, tp: TopicPartition) -> Led:
        """Raises NoAnswer if nobody leads it."""
        led = self._led.get(tp)
        if led is None:
            led = await self._find(tp)
            self._led[tp] = led
        return led

    async def _find(self, tp: TopicPartition) -> Led:
        types = request_types(ApiKey.METADATA)
        topic = types.MetadataRequestTopic(topic_id=ZERO_UUID, name=tp.topic)
        response = await self.any().call(
            ApiKey.METADATA, types.MetadataRequest(topics=[topic], allow_auto_topic_creation=False)
        )
        found = response.topics[0]
        for partition in found.partitions:
            if partition.partition_index == tp.partition and partition.leader_id != NO_LEADER:
                return Led(found.topic_id, partition.leader_id)
        raise NoAnswer(f"nobody leads {tp}")


class Client:
    """Does one thing after another until it is stopped. `successes` counts what was answered well."""

    def __init__(self, name: str, router: Router, checker: Checker, rng: random.Random, stop: Stop) -> None:
        self.name = name
        self.successes = 0
        self._router = router
        self._checker = checker
        self._rng = rng
        self._stop = stop

    async def run(self) -> None:
        while not self._stop.is_set:
            await asyncio.sleep(self._rng.expovariate(1 / _PAUSE_SECONDS))
            try:
                await self.act()
            except NoAnswer:
                continue
        self._router.close()

    async def act(self) -> None:
        raise NotImplementedError

    def truth(self, led: Led, tp: TopicPartition) -> PartitionTruth | None:
        return self._checker.truths.get((led.topic_id, tp.partition))


class Producing(Client):
    """Sends batches to some partitions. An idempotent one repeats a batch until its fate is known."""

    def __init__(
        self, *args: Any, partitions: Sequence[TopicPartition], acks: int, is_idempotent: bool = False
    ) -> None:
        super().__init__(*args)
        self._partitions = partitions
        self._acks = acks
        self._is_idempotent = is_idempotent
        self._producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
        self._sequences: dict[TopicPartition, int] = {}
        self._number = 0

    async def act(self) -> None:
        if self._is_idempotent and self._producer[0] == NO_PRODUCER_ID:
            await self._new_identity()
        tp = self._rng.choice(self._partitions)
        count = self._rng.choice((1, 1, 2, 5))
        batch = self._batch(tp, count)
        losses = self._losses(tp)
        while not self._stop.is_set:
            code = await self._try(tp, batch)
            if code in _FORGET:
                if losses is not None and losses == self._losses(tp):
                    self._checker.fail(
                        rules.SEQUENCES, f"{self.name} got {code} for {tp}, and nothing was lost"
                    )
                self._producer = NO_PRODUCER_ID, NO_PRODUCER_EPOCH
                return
            if code is ErrorCode.NONE:
                self._sequences[tp] = self._sequences.get(tp, 0) + count
                self.successes += 1
                return
            self._router.forget(tp)
            if not self._is_idempotent:
                return
            await asyncio.sleep(self._rng.uniform(0.05, 0.3))

    def _losses(self, tp: TopicPartition) -> int | None:
        """How often records of the partition were lost lawfully; None where that cannot be told."""
        found = [
            truth for truth in self._checker.truths.values() if truth.name == f"{tp.topic}-{tp.partition}"
        ]
        return found[0].losses if len(found) == 1 and not found[0].is_lossy else None

    async def _new_identity(self) -> None:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
        response = await self._router.any().call(ApiKey.INIT_PRODUCER_ID, request)
        if response.error_code:
            raise NoAnswer(str(response.error_code))
        self._producer = response.producer_id, response.producer_epoch
        self._sequences.clear()

    def _batch(self, tp: TopicPartition, count: int) -> bytes:
        self._number += 1
        now_ms = self._router.now_ms()
        rows = [(now_ms, None, f"{self.name}/{self._number}/{i}".encode(), ()) for i in range(count)]
        producer_id, producer_epoch = self._producer
        sequence = self._sequences.get(tp, 0) if self._is_idempotent else NO_SEQUENCE
        return bytes(
            build_batch(rows, producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=sequence)
        )

    async def _try(self, tp: TopicPartition, batch: bytes) -> ErrorCode:
        """NETWORK_EXCEPTION: no answer."""
        try:
            led = await self._router.leader(tp)
            return await self._send(tp, led, batch)
        except NoAnswer:
            return ErrorCode.NETWORK_EXCEPTION

    async def _send(self, tp: TopicPartition, led: Led, batch: bytes) -> ErrorCode:
        types = request_types(ApiKey.PRODUCE)
        data = types.PartitionProduceData(index=tp.partition, records=batch)
        topic = types.TopicProduceData(name=tp.topic, topic_id=led.topic_id, partition_data=[data])
        request = types.ProduceRequest(
            transactional_id=None, acks=self._acks, timeout=TIMEOUT_MS, topic_data=[topic]
        )
        caller, truth = self._router.of(led.leader), self.truth(led, tp)
        mark = None if truth is None else truth.mark(led.leader)
        if self._acks == 0:
            await caller.send_unanswered(ApiKey.PRODUCE, request)
            return ErrorCode.NONE
        response = await caller.call(ApiKey.PRODUCE, request)
        answer = response.responses[0].partition_responses[0]
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE and self._acks == ACKS_ALL and truth is not None and mark is not None:
            (meta,) = iter_batches(batch)
            truth.acknowledged(led.leader, answer.base_offset, meta.crc, mark)
        return code


class Consuming(Client):
    """Reads some partitions from their start, one fetch at a time."""

    def __init__(self, *args: Any, partitions: Sequence[TopicPartition]) -> None:
        super().__init__(*args)
        self._partitions = partitions
        self._positions: dict[TopicPartition, int] = {}

    async def act(self) -> None:
        tp = self._rng.choice(self._partitions)
        led = await self._router.leader(tp)
        caller, truth = self._router.of(led.leader), self.truth(led, tp)
        mark = None if truth is None else truth.mark(led.leader)
        position = self._positions.get(tp, 0)
        request = fetch_request({tp: position}, {tp.topic: led.topic_id}, max_wait_ms=200, max_bytes=20_000)
        try:
            response = await caller.call(ApiKey.FETCH, request)
        except NoAnswer:
            self._router.forget(tp)
            raise
        if response.error_code or not response.responses:
            return
        data = response.responses[0].partitions[0]
        if data.error_code == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._positions[tp] = await earliest_offset(caller, tp)
        elif data.error_code:
            self._router.forget(tp)
        else:
            self.successes += 1
            self._take(tp, led, truth, mark, data.records)

    def _take(
        self, tp: TopicPartition, led: Led, truth: PartitionTruth | None, mark: Mark | None, records: Any
    ) -> None:
        for batch in iter_batches(records or b""):
            self._positions[tp] = batch.last_offset + 1
            if truth is not None and mark is not None:
                truth.read(led.leader, batch.base_offset, batch.crc, mark)


class Committing(Client):
    """Commits rising offsets of a group without members. `acknowledged` is the last one that was answered."""

    def __init__(self, *args: Any, tp: TopicPartition) -> None:
        super().__init__(*args)
        self.tp = tp
        self.sent = 0
        self.acknowledged = -1
        self.losses = 0
        self._coordinator: int | None = None

    @property
    def group(self) -> str:
        return self.name

    async def act(self) -> None:
        try:
            caller = await self._find()
            led = await self._router.leader(self.tp)
            types = request_types(ApiKey.OFFSET_COMMIT)
            self.sent += 1
            offset = self.sent
            partition = types.OffsetCommitRequestPartition(
                partition_index=self.tp.partition, committed_offset=offset, committed_metadata=""
            )
            topic = types.OffsetCommitRequestTopic(
                name=self.tp.topic, topic_id=led.topic_id, partitions=[partition]
            )
            request = types.OffsetCommitRequest(
                group_id=self.group, generation_id_or_member_epoch=-1, member_id="", topics=[topic]
            )
            response = await caller.call(ApiKey.OFFSET_COMMIT, request)
        except NoAnswer:
            self._coordinator = None
            raise
        code = ErrorCode(response.topics[0].partitions[0].error_code)
        if code is ErrorCode.NONE:
            self.successes += 1
            self.acknowledged = offset
        else:
            self._coordinator = None

    async def _find(self) -> Caller:
        if self._coordinator is None:
            types = request_types(ApiKey.FIND_COORDINATOR)
            request = types.FindCoordinatorRequest(key_type=0, coordinator_keys=[self.group])
            found = (await self._router.any().call(ApiKey.FIND_COORDINATOR, request)).coordinators[0]
            if found.error_code:
                raise NoAnswer(str(found.error_code))
            self._coordinator = found.node_id
        return self._router.of(self._coordinator)

    async def committed(self, topic_ids: dict[str, UUID]) -> int:
        """The committed offset, by the coordinator. Raises NoAnswer."""
        self._coordinator = None
        return (await fetch_committed(await self._find(), self.group, [self.tp], topic_ids))[self.tp]
