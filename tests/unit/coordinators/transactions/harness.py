"""A transaction coordinator over a log in memory, on virtual time; partitions, leaders and producer ids are
a test's to decide. The coordinator, its host, its shards and its sender of markers are real."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.coordinators.transactions import commands as c
from odradek.coordinators.transactions.config import TransactionConfig
from odradek.coordinators.transactions.coordinator import TransactionCoordinator
from odradek.coordinators.transactions.markers import Outcomes
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.coordinators.transactions.shard import TransactionShard
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.runtime.reply import Reply
from odradek.sim.world.loop import SimLoop
from tests.unit.coordinators.fake_log import FakeLog

START_MS = 1_700_000_000_000
TID = "id"
A, B = TopicPartition("a", 0), TopicPartition("b", 1)
HERE = 1
COMMIT, ABORT = True, False


class Clock:
    """Wall time that goes on with the loop, and may be made to jump."""

    def __init__(self, loop: SimLoop) -> None:
        self._loop = loop
        self.skew_ms = 0

    def now_ms(self) -> int:
        return START_MS + int(self._loop.time() * 1000) + self.skew_ms


class Written:
    """Markers as the partitions got them."""

    def __init__(self, markers: c.WriteMarkers, partitions: list[TopicPartition]) -> None:
        self.producer = markers.producer
        self.commit = markers.commit
        self.version = markers.transaction_version
        self.coordinator_epoch = markers.coordinator_epoch
        self.partitions = partitions


class Harness:
    def __init__(
        self, *, server_version: int = 2, held: bool = False, log: FakeLog | None = None, **config: Any
    ) -> None:
        self.loop = SimLoop()
        self.clock = Clock(self.loop)
        self.log = log or FakeLog(held=held)
        self.server_version = server_version
        self.next_id = 1000
        self.ids_are_dry = False
        self.partition_count = 1
        self.gone: set[TopicPartition] = set()
        self.leaderless: set[TopicPartition] = set()
        self.refusals: dict[TopicPartition, ErrorCode] = {}
        self.written: list[Written] = []
        self.slow_markers = False
        """Whether partitions let the coordinator wait until `let_markers_through`."""
        self._slow: list[tuple[Written, asyncio.Future[Outcomes]]] = []
        self.connections = 0
        self.config = TransactionConfig(**config)
        self.coordinator = self._new_coordinator()
        self.elect()

    def _new_coordinator(self) -> TransactionCoordinator:
        return TransactionCoordinator(
            self.config,
            self.clock,
            partition_count=lambda: self.partition_count,
            new_producer_id=self._new_id,
            server_version=lambda: self.server_version,
            leader_of=self._leader_of,
            marker_channel=self,
        )

    def _new_id(self) -> int:
        if self.ids_are_dry:
            raise KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        self.next_id += 1
        return self.next_id

    def _leader_of(self, tp: TopicPartition) -> int | None:
        if tp in self.gone:
            return None
        return -1 if tp in self.leaderless else HERE

    def deliver(
        self, broker_id: int, markers: c.WriteMarkers, partitions: list[TopicPartition]
    ) -> Reply[Outcomes]:
        assert broker_id == HERE
        written = Written(markers, partitions)
        if self.slow_markers:
            future = self.loop.create_future()
            self._slow.append((written, future))
            return Reply.later(future)
        return Reply(self._arrive(written))

    def _arrive(self, written: Written) -> Outcomes:
        outcomes = {tp: self.refusals.get(tp, ErrorCode.NONE) for tp in written.partitions}
        written.partitions = [tp for tp in written.partitions if outcomes[tp] is ErrorCode.NONE]
        if written.partitions:
            self.written.append(written)
        return outcomes

    # --- the world ------------------------------------------------------------------------------------

    def run(self, step: Callable[[], Any]) -> Any:
        """Call a function on the loop, and wait for what it gives."""

        async def main() -> Any:
            result = step()
            return await result if isinstance(result, Awaitable) else result

        return self.loop.run_until_complete(main())

    def start(self, step: Callable[[], Any]) -> "asyncio.Task[Any]":
        """Begin something that has to wait, and let it come as far as it gets."""

        async def main() -> Any:
            result = step()
            return await result if isinstance(result, Awaitable) else result

        task = self.loop.create_task(main())
        task.add_done_callback(lambda done: done.exception())  # seen: a test may not ask
        self.turn_a_while()
        return task

    def turn_a_while(self) -> None:
        async def turns() -> None:
            for _ in range(20):
                await asyncio.sleep(0)

        self.loop.run_until_complete(turns())

    def advance(self, ms: int) -> None:
        self.loop.run_until_complete(asyncio.sleep(ms / 1000))

    def commit_log(self) -> None:
        """The high watermark reaches the log end."""
        self.run(self.log.commit)
        self.turn_a_while()

    def let_markers_through(self) -> None:
        def arrive() -> None:
            slow, self._slow = self._slow, []
            for written, future in slow:
                if not future.done():
                    future.set_result(self._arrive(written))

        self.slow_markers = False
        self.run(arrive)
        self.turn_a_while()

    def elect(self) -> None:
        self.run(lambda: self.coordinator.on_elected(0, self.log))
        self.turn_a_while()

    def reload(self) -> None:
        """The leadership moves away and back: nothing but the log survives."""
        self.run(lambda: self.coordinator.on_resigned(0))
        self.run(self.log.lose_leadership)
        self._slow = []
        self.log.leader_epoch += 1
        self.elect()

    # --- requests -------------------------------------------------------------------------------------

    def connect(self) -> int:
        self.connections += 1
        return self.connections

    def init(
        self,
        tid: str = TID,
        expected: ProducerIdAndEpoch | None = None,
        timeout_ms: int = 60_000,
        *,
        two_phase: bool = False,
        keep: bool = False,
        connection: int = 1,
    ) -> Any:
        return self.run(
            lambda: self.coordinator.init_producer_id(
                tid, timeout_ms, expected, connection, enable_2pc=two_phase, keep_prepared=keep
            )
        )

    def producer(self, tid: str = TID, **fields: Any) -> ProducerIdAndEpoch:
        """A new producer's identity."""
        given = self.init(tid, **fields)
        return ProducerIdAndEpoch(given.producer_id, given.producer_epoch)

    def add(
        self,
        producer: ProducerIdAndEpoch,
        *tps: TopicPartition,
        tid: str = TID,
        version: int = 2,
        connection: int = 1,
    ) -> ErrorCode:
        return self.code(
            lambda: self.coordinator.add_partitions(tid, producer, list(tps or (A,)), version, connection)
        )

    def verify(self, producer: ProducerIdAndEpoch, *tps: TopicPartition, tid: str = TID) -> Any:
        return self.run(lambda: self.coordinator.verify_partitions(tid, producer, list(tps or (A,))))

    def end_step(
        self,
        producer: ProducerIdAndEpoch,
        commit: bool,
        tid: str = TID,
        version: int = 2,
        connection: int = 1,
        is_acknowledged: bool = False,
    ) -> Callable[[], Any]:
        return lambda: self.coordinator.end(
            tid,
            producer,
            commit=commit,
            client_version=version,
            connection=connection,
            is_acknowledged=is_acknowledged,
        )

    def end(self, producer: ProducerIdAndEpoch, commit: bool = COMMIT, **fields: Any) -> Any:
        return self.run(self.end_step(producer, commit, **fields))

    def end_code(self, producer: ProducerIdAndEpoch, commit: bool = COMMIT, **fields: Any) -> ErrorCode:
        return self.code(self.end_step(producer, commit, **fields))

    def code(self, step: Callable[[], Any]) -> ErrorCode:
        try:
            answer = self.run(step)
        except KafkaError as e:
            return e.code
        return answer if isinstance(answer, ErrorCode) else ErrorCode.NONE

    # --- looks ----------------------------------------------------------------------------------------

    @property
    def shard(self) -> TransactionShard:
        (shard,) = self.coordinator.shards()
        return shard

    def txn(self, tid: str = TID) -> TransactionMetadata:
        return self.shard.transactions[tid]

    def put(self, txn: TransactionMetadata) -> None:
        """Have the log say what a long history would have led to."""
        record_format = self.coordinator.host._format
        self.run(lambda: self.log.append([record_format.encode((txn.transactional_id, txn))], START_MS))
        self.reload()

    def close(self) -> None:
        self.run(self.coordinator.close)
        assert self.loop.unhandled == []
        self.loop.close()
