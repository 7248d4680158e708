"""A node that is nothing but logs: appends to them at random, for crashing the storage engine by itself."""

import asyncio
import uuid
from collections import deque
from functools import partial

from odradek.core.config.node import node_defaults
from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.log.log import AppendInfo, Isolation
from odradek.log.manager import LogManager
from odradek.records.batch import build_batch, iter_batches, iter_records
from odradek.records.check import CheckedRecords
from odradek.runtime.scope import Scope
from odradek.sim.checkers.history import Batch, History
from odradek.sim.world.runtime import SimRuntime

FLUSHED, PLAIN = TopicPartition("flushed", 0), TopicPartition("plain", 0)
_IDS = {FLUSHED: uuid.UUID(int=7), PLAIN: uuid.UUID(int=8)}
_CONFIGS = {
    "flushed": {"flush.messages": "1", "internal.segment.bytes": "8192", "index.interval.bytes": "100"},
    "plain": {"flush.ms": "700", "internal.segment.bytes": "8192", "index.interval.bytes": "100"},
}


def topic_config(topic: str) -> TopicConfig:
    return TopicConfig.resolve(NodeConfig(node_defaults("/data")), _CONFIGS[topic])


class LogNode:
    """Each life has its own producer id, whose records the history expects once and in order."""

    def __init__(self, runtime: SimRuntime, data_dir: str, history: History, life: int) -> None:
        self._runtime = runtime
        self._history = history
        self._life = life
        self._scope = Scope()
        self._numbers = dict.fromkeys((FLUSHED, PLAIN), 0)
        self._waiting: dict[TopicPartition, deque[tuple[Batch, AppendInfo]]] = {
            FLUSHED: deque(),
            PLAIN: deque(),
        }
        self.manager = LogManager(runtime, [data_dir])

    async def start(self) -> None:
        manager = self.manager
        manager.open()
        await manager.load_beside(topic_config, 2)
        for tp, topic_id in _IDS.items():
            log = manager.get_or_create(tp, topic_id, topic_config(tp.topic))
            log.advance_high_watermark(log.log_end_offset)
            log.settling.on_settled = partial(self._acknowledge, tp)
        self._scope.spawn(self._write())
        self._scope.spawn(self._tick())

    async def stop(self) -> None:
        await self._scope.close()
        await self.manager.close()

    def read_all(self, tp: TopicPartition) -> dict[int, bytes]:
        log = self.manager.logs[tp]
        found: dict[int, bytes] = {}
        offset = log.log_start_offset
        while offset < log.log_end_offset:
            info = log.read(offset, 4096, Isolation.LOG_END, True)
            assert info.slice is not None, f"{tp} gives nothing at {offset} of {log.log_end_offset}"
            data = info.slice.read()
            for batch in iter_batches(data):
                found.update(
                    (r.offset, r.value or b"") for r in iter_records(data, batch) if r.offset >= offset
                )
            offset = max(found) + 1
        return found

    async def _write(self) -> None:
        rng = self._runtime.rng
        while True:
            await asyncio.sleep(rng.expovariate(30))
            tp = rng.choice((FLUSHED, PLAIN))
            batches = [self._next(tp) for _ in range(rng.choice((1, 1, 3)))]
            for batch in batches:
                self._history.batch_sent(batch)
            sets = []
            for batch in batches:
                data = build_batch(
                    [(self._runtime.clock.now_ms(), None, value, ()) for value in batch.values],
                    producer_id=self._life,
                    producer_epoch=0,
                    base_sequence=batch.first,
                )
                sets.append(CheckedRecords(data, list(iter_batches(data))))
            log = self.manager.logs[tp]
            results = log.append_as_leader(sets, self._life)
            for batch, result in zip(batches, results, strict=True):
                if isinstance(result, KafkaError):
                    raise result
                assert not result.duplicate
                self._waiting[tp].append((batch, result))
            self._acknowledge(tp)

    def _acknowledge(self, tp: TopicPartition) -> None:
        """Whatever need not wait for a flush any more."""
        log, waiting = self.manager.logs[tp], self._waiting[tp]
        while waiting and waiting[0][1].last_offset < log.settled_offset:
            batch, result = waiting.popleft()
            self._history.batch_acknowledged(batch, result.first_offset)
        log.advance_high_watermark(log.settled_offset)

    def _next(self, tp: TopicPartition) -> Batch:
        count = self._runtime.rng.choice((1, 2, 10))
        first = self._numbers[tp]
        self._numbers[tp] += count
        values = [
            f"{tp}/{self._life}/{number}/".encode() + b"." * self._runtime.rng.randrange(300)
            for number in range(first, first + count)
        ]
        return Batch(f"life{self._life}", True, -1, tp, first, values)

    async def _tick(self) -> None:
        while True:
            await asyncio.sleep(0.3)
            self.manager.tick_flush()
            self.manager.checkpoint_recovery_points()
            self.manager.checkpoint_high_watermarks()
            await self.manager.tick_deletes()
