"""A story with one node and one Spark query, and the faults of the seed.

Drivers die, pause and are restarted, sometimes while another one is alive. Their workers fail, run twice
(speculation), and continue to write after their driver has gone. Faults hit the node as in single_node.py. A
last run without faults must clean up everything. Then the output is compared with the input.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from typing import Any

from odradek.broker.node import Node
from odradek.client.client import Client
from odradek.client.fetching import READ_COMMITTED, PartitionFetcher
from odradek.client.visibility import visible_records
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.sim.checkers import spark as checkers
from odradek.sim.checkers.transactions import stuck
from odradek.sim.stories.outcome import Outcome, error_text
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.single_node import HOST
from odradek.sim.stories.story import PORT, Story, Tasks
from odradek.sim.stories.transactions import draw_txn_settings, short_plan
from odradek.sim.workloads.spark_workload import (
    SOURCE,
    TARGET,
    TARGET_PARTITIONS,
    Checkpoint,
    Driver,
    End,
    Killed,
    QueryFailed,
    Temper,
)
from odradek.sim.world.cluster import NodeFactory
from odradek.sim.world.network import NetFaults
from odradek.spark.ledger.finishing import LostBatchError
from odradek.spark.ledger.ledger import HISTORY_TOPIC, LEDGER_TOPIC, LedgerError, decode_decision
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

SECONDS = 6.0
BOOTSTRAP = f"{HOST}:{PORT}"
INPUTS, LAST_INPUTS = 45, 5
PATIENCE_SECONDS = 200.0
LAST = Temper(hold=0.3, speculate=0.5, cores=2)
"""The last run: no task fails, but some run twice."""
_EXPECTED = (LedgerError, KafkaError, OSError, QueryFailed, Killed)
"""Errors that may end a driver: Spark would fail the query, and an operator would restart it."""


def draw_temper(rng: random.Random) -> Temper:
    """Draw the behaviour of processes. Some seeds have only one kind of failure, so that runs get further."""

    def chance(*values: float) -> float:
        return rng.choice(values)

    return Temper(
        kill_worker=chance(0, 0.05, 0.2),
        kill_driver=chance(0, 0.1, 0.4),
        hold=chance(0, 0.1, 0.4),
        speculate=chance(0, 0.2, 0.6),
        give_up=chance(0, 0.1),
        fail=chance(0, 0.05),
        new_decider=chance(0, 0.3, 1),
        slow_storage=chance(0, 0.1, 0.4),
        cores=rng.randint(1, 4),
    )


class SparkStory(Story):
    """Drivers and workers of one query."""

    def __init__(
        self,
        seed: int,
        factory: Callable[[Settings], NodeFactory],
        *,
        seconds: float = SECONDS,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(seed, seconds=seconds, sink=sink)
        settings = draw_txn_settings(self.rng)
        self._host = self.add_host(HOST, factory(settings))
        self._checkpoint = Checkpoint(INPUTS)
        self._temper = draw_temper(self.rng)
        self._rivals = self.rng.choice((0.0, 0.05, 0.25))
        if self.rng.random() < 0.7:
            self.plan = short_plan(settings)
        self._drivers: list[Driver] = []

    def count(self, outcome: Outcome) -> None:
        outcome.acknowledged_commits = len(self._checkpoint.commits)

    # -- the story

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        yield "runs", self._runs()

    async def conclude(self, clients: Tasks) -> None:
        for task in clients:
            await task
        await self._last_run()
        await asyncio.sleep(2 / self._host.clock.drift.rate)
        await self._judge()

    async def prepare(self) -> None:
        admin = self.caller("admin")
        types = request_types(ApiKey.CREATE_TOPICS)
        counts = {SOURCE: 1, TARGET: TARGET_PARTITIONS}
        topics = [
            types.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in counts.items()
        ]
        if self.rng.random() < 0.5:
            # Cleaned all the time, so that readers see compacted segments.
            settings = {"cleanup.policy": "compact", "segment.ms": "500", "min.cleanable.dirty.ratio": "0.01"}
            configs = [types.CreatableTopicConfig(name=name, value=value) for name, value in settings.items()]
            topics.append(
                types.CreatableTopic(
                    name=LEDGER_TOPIC, num_partitions=1, replication_factor=1, configs=configs
                )
            )
        request = types.CreateTopicsRequest(topics=topics, timeout=30_000)
        response = await admin.call(ApiKey.CREATE_TOPICS, request, version=7)
        assert all(topic.error_code == ErrorCode.NONE for topic in response.topics)
        admin.close()

    async def _runs(self) -> None:
        """Run a driver until the time is up; sometimes two."""
        rng, loop = self.world.rng_for("runs"), self.world.loop
        going: list[asyncio.Task[None]] = []
        while loop.time() < self.seconds:
            if not going or rng.random() < self._rivals:
                driver = self._driver(self._temper)
                going.append(loop.create_task(self._run(driver, rng.uniform(0.5, 6)), name=driver.name))
            await asyncio.sleep(rng.uniform(0.05, 0.2))
            going = [task for task in going if not task.done()]
        for task in going:
            await task

    def _driver(self, temper: Temper) -> Driver:
        driver = Driver(self.world, f"run{len(self._drivers)}", BOOTSTRAP, self._checkpoint, temper)
        self._drivers.append(driver)
        return driver

    async def _run(self, driver: Driver, seconds: float) -> None:
        """Run until the driver ends or is killed. Then its workers die with it, or some time later."""
        rng = driver.rng
        ended = driver.spawn(driver.query())
        try:
            end = await asyncio.wait_for(asyncio.shield(ended), seconds if self._temper.kill_driver else None)
        except TimeoutError:
            driver.kill()
            end = await ended
        self._ended(driver, end)
        driver.kill()
        for worker in driver.workers:
            if rng.random() < 0.5:
                worker.kill()

    def _ended(self, driver: Driver, end: "End[None]") -> None:
        error = end.error
        self.world.trace.event(driver.name, "ends", repr(error))
        if isinstance(error, LostBatchError) or not isinstance(error, (*_EXPECTED, type(None))):
            assert isinstance(error, Exception)
            self.outcome.violations.append(f"{driver.name}: {error_text(error)}")

    async def _last_run(self) -> None:
        """A run without faults, which has something to do. It must clean up everything, whatever old workers
        still do."""
        self.world.network.faults.__dict__.update(NetFaults().__dict__)
        self._checkpoint.available = INPUTS + LAST_INPUTS
        driver = self._driver(LAST)
        ended = driver.spawn(driver.query())
        try:
            end = await asyncio.wait_for(asyncio.shield(ended), PATIENCE_SECONDS)
        except TimeoutError:
            self.outcome.violations.append("stuck: the last run does not finish")
            return
        if end.error is not None:
            assert isinstance(end.error, Exception)
            self.outcome.violations.append(f"the last run failed: {error_text(end.error)}")
        while any(worker.is_busy for driver in self._drivers for worker in driver.workers):
            await asyncio.sleep(1)

    # -- evidence

    async def _judge(self) -> None:
        node, found = self._host.node, self.outcome.violations
        assert isinstance(node, Node)
        async with Client(BOOTSTRAP, runtime=self.world.runtime("auditor")) as client:
            targets = [TopicPartition(TARGET, index) for index in range(TARGET_PARTITIONS)]
            visible = [record for tp in targets for record in await read_committed(client, tp)]
            history = [
                decode_decision(r.value)[1]
                for r in await read_committed(client, TopicPartition(HISTORY_TOPIC, 0))
            ]
        self.outcome.read_records = self.outcome.acknowledged_records = len(visible)
        found += checkers.not_exactly_once(INPUTS + LAST_INPUTS, visible)
        found += checkers.wrong_decisions(history, self._checkpoint.ranges)
        found += checkers.undecided_commits(history, visible)
        logs = node.replicas.partitions
        ends = {tp: (p.log.last_stable_offset, p.log.high_watermark) for tp, p in logs.items()}
        live = [txn for shard in node.transactions.shards() for txn in shard.transactions.values()]
        found += stuck(ends, live)


async def read_committed(client: Client, tp: TopicPartition) -> list[checkers.Visible]:
    """Everything that a new read_committed consumer gets."""
    fetcher = PartitionFetcher(client, tp, isolation_level=READ_COMMITTED, max_wait_ms=0)
    found: list[checkers.Visible] = []
    position = 0
    while True:
        fetched = await fetcher.fetch(position)
        before = position
        for batch, record in visible_records(fetched.records, position, fetched.aborted):
            position = batch.last_offset + 1
            if record is not None:
                found.append(
                    checkers.Visible(
                        tp, record.offset, record.value or b"", batch.producer_id, batch.producer_epoch
                    )
                )
        if position == before:
            return found
