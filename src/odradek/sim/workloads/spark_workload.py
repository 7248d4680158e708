"""Simulates Spark for the sink's protocol: a checkpoint, drivers that read it, and workers that run tasks.

Only Spark is simulated. The protocol itself is the real code of odradek.spark.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Generic, NamedTuple, TypeVar

from odradek.client.client import Client
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.records import kernel
from odradek.records.compression import NONE
from odradek.records.header import HEADER_BYTES
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.world import World
from odradek.spark.ledger.deciding import Decider, WrittenBatch
from odradek.spark.ledger.ledger import LedgerError, Participant, Range, Stream
from odradek.spark.ledger.ledger_log import LedgerLog, ensure_topics
from odradek.spark.sink.participating import Attempt, Slots
from odradek.spark.sink.tasks import Task
from odradek.wire.api_keys import ApiKey

STREAM = Stream("query", "sink")
PREFIX = "odradek"
GROUP = "spark"
SOURCE, TARGET = "in", "out"
TARGET_PARTITIONS = 3
MAX_FAILURES = 4
REQUEST_TIMEOUT_MS = 2_000
API_TIMEOUT_MS = 20_000

T = TypeVar("T")


class QueryFailed(Exception):
    """A failure of a driver that the sink has not caused."""


class Killed(Exception):
    """The process died before it got an answer."""


@dataclass(slots=True)
class Checkpoint:
    """A checkpoint on durable storage, shared by all drivers of the query. Entries are added, never changed:
    Spark fails a query that finds an entry where it wants to add one."""

    available: int
    """How many numbers the input has."""
    ranges: dict[int, tuple[int, int]] = field(default_factory=dict)
    commits: dict[int, str] = field(default_factory=dict)

    def last(self) -> int:
        return max(self.ranges, default=-1)

    def plan(self, batch: int, first: int, end: int) -> None:
        if batch in self.ranges:
            raise QueryFailed(f"another driver has planned batch {batch}")
        self.ranges[batch] = first, end

    def commit(self, batch: int, run: str) -> None:
        if batch in self.commits:
            raise QueryFailed(f"another driver has committed batch {batch}")
        self.commits[batch] = run


@dataclass(frozen=True, slots=True)
class Temper:
    """The probabilities of failures, per attempt of a task or per batch."""

    kill_worker: float = 0.0
    kill_driver: float = 0.0
    hold: float = 0.0
    speculate: float = 0.0
    give_up: float = 0.0
    fail: float = 0.0
    new_decider: float = 0.0
    slow_storage: float = 0.0
    cores: int = 4


class End(NamedTuple, Generic[T]):
    """The result or error of a piece of work."""

    result: T | None
    error: BaseException | None


class Moment(NamedTuple):
    """Before the n-th next request of a kind, or after its answer."""

    api_key: ApiKey
    is_after: bool
    left: int


STEPS = (
    ApiKey.INIT_PRODUCER_ID,
    ApiKey.FETCH,
    ApiKey.LIST_TRANSACTIONS,
    ApiKey.DESCRIBE_TRANSACTIONS,
    ApiKey.END_TXN,
)
"""The requests of the protocol, besides Produce."""


def draw_moment(rng: random.Random) -> Moment:
    return Moment(rng.choice(STEPS), rng.random() < 0.5, rng.choice((0, 0, 0, 1, 2)))


class HeldClient(Client):
    """The client of a process that may be paused, as by a signal, or killed at a step of the protocol."""

    def __init__(self, bootstrap: str, **options: Any) -> None:
        super().__init__(bootstrap, **options)
        self._fate: Moment | None = None
        self._stillness: float | None = None
        self._still_until = 0.0
        self.kill: Callable[[], None] | None = None

    def hold_at(self, moment: Moment, seconds: float) -> None:
        self._fate, self._stillness = moment, seconds

    def kill_at(self, moment: Moment) -> None:
        self._fate, self._stillness = moment, None

    async def send(self, api_key: int, request: Any, **options: Any) -> Any:
        await self._moved_on(api_key, is_after=False)
        response = await super().send(api_key, request, **options)
        await self._moved_on(api_key, is_after=True)
        return response

    async def _moved_on(self, api_key: int, *, is_after: bool) -> None:
        now = asyncio.get_running_loop().time()
        moment = self._fate
        if moment is not None and moment[:2] == (api_key, is_after):
            self._fate = moment._replace(left=moment.left - 1)
            if moment.left == 0:
                self._fate = None
                if self._stillness is None:
                    assert self.kill is not None
                    self.kill()
                    raise ProcessCrashed(self.client_id)
                self._still_until = now + self._stillness
        if self._still_until > now:
            await asyncio.sleep(self._still_until - now)


class Unit:
    """A Spark process with its own client. It can be killed at any system call, and paused."""

    def __init__(self, world: World, name: str, bootstrap: str) -> None:
        self.world = world
        self.name = name
        self.bootstrap = bootstrap
        self.rng = world.rng_for(f"{name}:doings")
        self.runtime = world.runtime(name)
        self.client = HeldClient(
            bootstrap,
            runtime=self.runtime,
            client_id=name,
            request_timeout_ms=REQUEST_TIMEOUT_MS,
            api_timeout_ms=API_TIMEOUT_MS,
        )
        self.client.kill = self.kill
        self._death: asyncio.Future[None] = world.loop.create_future()

    @property
    def alive(self) -> bool:
        return self.runtime.process.alive

    def kill(self) -> None:
        """Kill the process. May be called from within it."""
        if self.alive:
            self.world.trace.event(self.name, "killed")
            self.world.loop.kill(self.runtime.process)
            self.runtime.sim_net.crash(silently=False)
            self._death.set_result(None)

    def kill_somewhere(self) -> None:
        """Kill the process at a random step of the protocol, or at a random system call."""
        if self.rng.random() < 0.5:
            self.client.kill_at(draw_moment(self.rng))
        else:
            self.runtime.process.on_burnt = self.kill
            self.runtime.process.fuse = self.rng.randrange(40)

    def spawn(self, work: Coroutine[Any, Any, T]) -> "asyncio.Future[End[T]]":
        """Run work in this process. The future also ends when the process dies."""
        loop = self.world.loop
        ended: asyncio.Future[End[T]] = loop.create_future()
        context = self.world.context_of(self.runtime.process)
        task = loop.create_task(work, name=self.name, context=context)

        def end_wait(_: object) -> None:
            if ended.done():
                return
            if not self.alive or not task.done() or task.cancelled():
                ended.set_result(End(None, Killed(self.name)))
            elif task.exception() is not None:
                ended.set_result(End(None, task.exception()))
            else:
                ended.set_result(End(task.result(), None))

        task.add_done_callback(end_wait, context=Context())
        self._death.add_done_callback(end_wait, context=Context())
        return ended


class Worker(Unit):
    """A Python worker process: it runs one attempt of a task at a time, and keeps its slots and its copy of
    the ledger between attempts."""

    def __init__(self, world: World, name: str, bootstrap: str) -> None:
        super().__init__(world, name, bootstrap)
        self._slots = Slots(PREFIX, name)
        self._ledger: LedgerLog | None = None
        self.is_busy = False

    async def write(self, task: Task, rows: Sequence[int], temper: Temper) -> Participant | None:
        """The same as `write` in sink/writers.py, with numbers as rows."""
        if not rows:
            return None
        if self._ledger is None:
            await ensure_topics(self.client)
            self._ledger = LedgerLog(self.client)
        attempt = await Attempt.begin(self.client, self._ledger, self._slots, task, NONE)
        if attempt is None:
            return None
        try:
            await self._put(attempt, rows)
            if self.rng.random() < temper.fail:
                raise QueryFailed("the user's code raised")
            return await attempt.finish()
        except Exception:
            await attempt.abort()
            raise

    async def _put(self, attempt: Attempt, rows: Sequence[int]) -> None:
        await self.client.retrying(lambda: self.client.partitions(TARGET))
        for row in rows:
            batch = kernel.encode([(0, None, str(row).encode(), ())], 0, HEADER_BYTES)
            tp = TopicPartition(TARGET, row % TARGET_PARTITIONS)
            await attempt.outbox.put(tp, batch, 1, self.runtime.clock.now_ms())
            if self.rng.random() < 0.2:
                await asyncio.sleep(self.rng.uniform(0, 0.05))


class Driver(Unit):
    """A run of the query: plans batches in the checkpoint, runs tasks, decides, and notes that a batch is
    done."""

    def __init__(
        self, world: World, name: str, bootstrap: str, checkpoint: Checkpoint, temper: Temper
    ) -> None:
        super().__init__(world, name, bootstrap)
        self._checkpoint = checkpoint
        self._temper = temper
        self._cores = asyncio.Semaphore(temper.cores)
        self._decider: Decider | None = None
        self.workers: list[Worker] = []

    async def query(self) -> None:
        await ensure_topics(self.client)
        while (batch := await self._next_batch()) is not None:
            rows = list(range(*self._checkpoint.ranges[batch]))
            try:
                participants = await self._job(Task(STREAM, self.name, batch), rows)
                await self._commit(batch, participants)
            except (QueryFailed, KafkaError, LedgerError, OSError):
                await self._abandon()
                raise
            await self._store()
            self._checkpoint.commit(batch, self.name)
            await self._store()

    async def _next_batch(self) -> int | None:
        """The last planned batch, or a new one if that is done."""
        checkpoint = self._checkpoint
        last = checkpoint.last()
        if last >= 0 and last not in checkpoint.commits:
            return last
        first = checkpoint.ranges[last][1] if last >= 0 else 0
        if first >= checkpoint.available:
            return None
        end = min(checkpoint.available, first + self.rng.randint(1, 8))
        await self._store()
        checkpoint.plan(last + 1, first, end)
        await self._store()
        return last + 1

    async def _store(self) -> None:
        """The time of a write to the checkpoint. A driver may die there too."""
        slow = self.rng.random() < self._temper.slow_storage
        await asyncio.sleep(self.rng.uniform(0, 1.5 if slow else 0.01))
        if self.rng.random() < self._temper.kill_driver / 4:
            self.kill()
            raise ProcessCrashed(self.name)

    # --- tasks

    async def _job(self, task: Task, rows: Sequence[int]) -> list[Participant | None]:
        count = self.rng.randint(1, 4)
        return await asyncio.gather(*(self._task(task, rows[index::count]) for index in range(count)))

    async def _task(self, task: Task, rows: Sequence[int]) -> Participant | None:
        """The result of the first successful attempt."""
        failure: BaseException | None = None
        for _ in range(MAX_FAILURES):
            async with self._cores:
                end = await self._attempts(task, rows)
            if end.error is None:
                return end.result
            failure = end.error
        raise QueryFailed(f"a task of batch {task.batch} failed: {failure!r}")

    async def _attempts(self, task: Task, rows: Sequence[int]) -> "End[Participant | None]":
        """Run one or two attempts at the same time. The others are killed, or continue without effect."""
        rng, temper = self.rng, self._temper
        ends: asyncio.Queue[End[Participant | None]] = asyncio.Queue()
        count = 2 if rng.random() < temper.speculate else 1
        attempts = [self._launch(task, rows, ends) for _ in range(count)]
        patience = rng.uniform(0, 0.5) if rng.random() < temper.give_up else None
        end: End[Participant | None] = End(None, QueryFailed("an executor does not answer"))
        for _ in attempts:
            try:
                end = await asyncio.wait_for(ends.get(), patience)
            except TimeoutError:
                break
            if end.error is None:
                break
        for worker in attempts:
            if worker.is_busy and rng.random() < 0.3:
                worker.kill()
        return end

    def _launch(
        self, task: Task, rows: Sequence[int], ends: "asyncio.Queue[End[Participant | None]]"
    ) -> Worker:
        rng, temper = self.rng, self._temper
        worker = self._free_worker()
        if rng.random() < temper.kill_worker:
            worker.kill_somewhere()
        if rng.random() < temper.hold:
            worker.client.hold_at(draw_moment(rng), rng.uniform(0, 3))
        worker.is_busy = True

        def done(ended: "asyncio.Future[End[Participant | None]]") -> None:
            worker.is_busy = False
            ends.put_nowait(ended.result())

        # Also if this driver is dead.
        ended = worker.spawn(worker.write(task, rows, temper))
        ended.add_done_callback(done, context=Context())
        return worker

    def _free_worker(self) -> Worker:
        free = [worker for worker in self.workers if worker.alive and not worker.is_busy]
        if free:
            return self.rng.choice(free)
        worker = Worker(self.world, f"{self.name}-w{len(self.workers)}", self.bootstrap)
        self.workers.append(worker)
        return worker

    # --- the sink's part

    async def _commit(self, batch: int, participants: Sequence[Participant | None]) -> None:
        rng, temper = self.rng, self._temper
        if rng.random() < temper.kill_driver:
            self.kill_somewhere()
        if rng.random() < temper.hold:
            self.client.hold_at(draw_moment(rng), rng.uniform(0, 6))
        if rng.random() < temper.new_decider:
            # Spark may use a new process for each call. The previous one just ends.
            self._decider = None
        if self._decider is None:
            self._decider = self._new_decider()
        first, end = self._checkpoint.ranges[batch]
        range_ = Range((str(first),), (str(end),))
        written = tuple(p for p in participants if p is not None)
        offsets = {TopicPartition(SOURCE, 0): end}
        await self._decider.commit(WrittenBatch(batch, self.name, "", range_, written, offsets))

    async def _abandon(self) -> None:
        """The same as `abort` in sink/writers.py, which Spark calls when a batch has failed."""
        if self._decider is not None:
            await self._decider.close()
        decider = self._new_decider()
        try:
            await decider.abandon(self.name)
        except (LedgerError, OSError, KafkaError):
            pass
        finally:
            await decider.close()

    def _new_decider(self) -> Decider:
        return Decider(self.client, STREAM, prefix=PREFIX, group=GROUP)
