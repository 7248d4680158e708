"""Producers of a simulated workload: idempotent ones that pipeline and retry, and plain ones that may give
up."""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.checkers.history import Batch, Fate, History
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

MAX_IN_FLIGHT = 5
GRACE_SECONDS = 30
MAX_SEQUENCE = 0x7FFFFFFF
_STATE_LOST = frozenset(
    {
        ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    }
)


class Producer:
    """Sends numbered values until it is stopped, and notes their outcome in the history."""

    def __init__(
        self,
        name: str,
        caller: Caller,
        history: History,
        topic_ids: dict[str, UUID],
        partitions: Sequence[TopicPartition],
        rng: random.Random,
        *,
        idempotent: bool,
        acks: int,
        lives: Callable[[], int],
        now_ms: Callable[[], int],
        pace_seconds: float,
        codecs: int,
    ) -> None:
        """`codecs` is the number of codecs in use, from 0. The last one, zstd, needs Produce v7."""
        assert not idempotent or acks == -1
        self._name = name
        self._identity = name
        self._caller = caller
        self._history = history
        self._topic_ids = topic_ids
        self._partitions = partitions
        self._rng = rng
        self._idempotent = idempotent
        self._acks = acks
        self._lives = lives
        self._now_ms = now_ms
        self._pace_seconds = pace_seconds
        self._codecs = codecs
        self._producer_id = NO_PRODUCER_ID
        self._producer_epoch = NO_PRODUCER_EPOCH
        self._next_number = 0
        self._sequences: dict[TopicPartition, int] = {}
        self._sequence_of: dict[int, int] = {}
        self._last_good: dict[TopicPartition, tuple[int, int]] = {}

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until:
            await asyncio.sleep(self._rng.expovariate(1 / self._pace_seconds))
            if self._idempotent and self._producer_id == NO_PRODUCER_ID and not await self._new_identity():
                continue
            tp = self._rng.choice(self._partitions)
            count = self._rng.randint(1, MAX_IN_FLIGHT) if self._rng.random() < 0.3 else 1
            await self._deliver([self._batch(tp) for _ in range(count)], until)
        self._caller.close()

    def _batch(self, tp: TopicPartition) -> Batch:
        count = self._rng.choice((1, 1, 1, 2, 8))
        first = self._next_number
        self._next_number += count
        padding = b"." * self._rng.choice((0, 10, 100, 100, 1500))
        values = [f"{self._identity}/{number}/".encode() + padding for number in range(first, first + count)]
        batch = Batch(self._identity, self._idempotent, self._acks, tp, first, values)
        if self._idempotent:
            sequence = self._sequences.get(tp, 0)
            self._sequence_of[first] = sequence
            self._sequences[tp] = (sequence + count) & MAX_SEQUENCE
        return batch

    async def _deliver(self, queue: list[Batch], until: float) -> None:
        """Send until all batches have a final answer or are given up."""
        loop = asyncio.get_running_loop()
        while queue:
            several = len(queue) > 1
            try:
                await self._caller.connect()
                life = self._lives()
                answers = []
                for batch in queue:
                    self._history.batch_sent(batch)
                    request = self._request(batch)
                    if self._acks == 0:
                        await self._caller.send_unanswered(ApiKey.PRODUCE, request)
                    else:
                        answers.append(await self._caller.send(ApiKey.PRODUCE, request))
                if self._acks == 0:
                    return
                refused = False
                for batch, answer in zip(list(queue), answers, strict=True):
                    code = self._take_answer(batch, await self._caller.answer(answer), life)
                    if code is ErrorCode.NONE:
                        queue.remove(batch)
                    elif code in _STATE_LOST and not refused:
                        self._sequence_lost(batch, code, several=several)
                        return
                    else:
                        # Batches after one that must be sent again are out of order until then.
                        refused = True
            except NoAnswer:
                pass
            if not queue:
                return
            await asyncio.sleep(self._rng.uniform(0.05, 0.3))
            if loop.time() > until + GRACE_SECONDS or (not self._idempotent and self._rng.random() < 0.3):
                return

    def _take_answer(self, batch: Batch, response: Any, life: int) -> ErrorCode:
        answer = response.responses[0].partition_responses[0]
        code = ErrorCode(answer.error_code)
        if code is ErrorCode.NONE:
            self._history.batch_acknowledged(batch, answer.base_offset)
            self._last_good[batch.tp] = (batch.era, life)
        elif not code.retriable and code not in _STATE_LOST:
            batch.fate = Fate.REFUSED
            self._history.oddities.append(
                f"{batch.tp}: {batch.producer} was refused with {code.name}: {answer.error_message}"
            )
            return ErrorCode.NONE
        return code

    def _sequence_lost(self, batch: Batch, code: ErrorCode, *, several: bool) -> None:
        """The broker has lost the producer's sequence: continue with a new producer id.

        That is correct after a power loss that lost records, or if several batches were in flight: after a
        restart the broker knows only the last batch of a producer.
        """
        era, life = self._last_good.get(batch.tp, (self._history.era, self._lives()))
        lossless = era == self._history.era or batch.tp.topic in self._history.flushed_topics
        if lossless and not (several and life != self._lives()):
            self._history.oddities.append(
                f"{batch.tp}: {batch.producer} got {code.name}, but no record was lost"
            )
        self._producer_id = NO_PRODUCER_ID

    async def _new_identity(self) -> bool:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=None, transaction_timeout=60_000)
        try:
            response = await self._caller.call(ApiKey.INIT_PRODUCER_ID, request)
        except NoAnswer:
            return False
        if response.error_code:
            self._history.check_retriable(ApiKey.INIT_PRODUCER_ID, response.error_code)
            return False
        self._history.producer_id_given(response.producer_id)
        self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
        self._identity = f"{self._name}.{response.producer_id}"
        self._next_number = 0
        self._sequences.clear()
        self._sequence_of.clear()
        self._last_good.clear()
        return True

    def _request(self, batch: Batch) -> Any:
        types = request_types(ApiKey.PRODUCE)
        now_ms = self._now_ms()
        data = build_batch(
            [(now_ms, b"k", value, ()) for value in batch.values],
            codec=batch.first % self._codecs,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            base_sequence=self._sequence_of[batch.first] if self._idempotent else NO_SEQUENCE,
        )
        partition = types.PartitionProduceData(index=batch.tp.partition, records=bytes(data))
        topic = types.TopicProduceData(
            name=batch.tp.topic, topic_id=self._topic_ids[batch.tp.topic], partition_data=[partition]
        )
        return types.ProduceRequest(transactional_id=None, acks=self._acks, timeout=5_000, topic_data=[topic])
