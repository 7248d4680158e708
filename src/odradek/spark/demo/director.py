"""The run of a demo: a broker, a stream of orders, a Spark driver; who is killed when; and the proof."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from odradek.client.admin import Admin
from odradek.client.client import Client
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.runtime.ports import free_port
from odradek.spark.demo.killing import describe_driver, describe_query, moment, plan_kills
from odradek.spark.demo.orders import ENRICHED, ORDERS, REVENUE, generate, sum_windows
from odradek.spark.demo.processes import Broker, Child, Driver, ProcessError
from odradek.spark.demo.producing import produce
from odradek.spark.demo.proof import Proof, prove
from odradek.spark.demo.stage import PARTITIONS, SINKS, read_query_id, write_pipeline
from odradek.spark.demo.story import BROKER, DRIVER, Batch, Counts, Kill, Story
from odradek.spark.demo.watching import follow, read_contents, read_decisions

_LOOK_S = 0.05
_SAMPLE_S = 0.2
_DOWN_S = 1.0
"""How long a broker stays away."""
_STALLED_S = 90.0
_MOST_FAILURES = 3
_PROVE_S = 120.0
_BATCH_S = 2.5
"""A batch has at most what comes in so many seconds: after a kill, several have to catch up."""


class Plan(NamedTuple):
    orders: int
    per_second: float
    seed: int
    driver_kills: int
    broker_kills: int


class Place(NamedTuple):
    """How a demo runs, and where: `odradek` is the command, `environment` has the Java for Spark."""

    odradek: Sequence[str]
    folder: Path
    environment: Mapping[str, str]


class Audience(NamedTuple):
    """Who is told: what happens, when it happens, and several times a second how things are."""

    tell: Callable[[float, str], None]
    show: Callable[[Story], None]


class Outcome(NamedTuple):
    story: Story
    proof: Proof
    eos: Mapping[str, Any]
    """What `odradek prove eos` has found."""
    elapsed_s: float

    @property
    def findings(self) -> list[str]:
        found = list(self.proof.findings)
        if not self.eos["proven"]:
            found.append(f"odradek prove eos: {self.eos['first_violation']}")
        return found


class Director:
    def __init__(self, plan: Plan, place: Place, audience: Audience) -> None:
        self._plan = plan
        self._place = place
        self._audience = audience
        self._orders = list(generate(plan.orders, plan.seed))
        self._port = free_port()
        self._bootstrap = f"127.0.0.1:{self._port}"
        self.story = Story(plan.orders, len(sum_windows(self._orders)[0]))
        self._counts = Counts()
        self._broker: Broker | None = None
        self._driver: Driver | None = None
        self._children: list[Child] = []
        self._failures = 0
        self._started_s = 0.0

    async def run(self) -> Outcome:
        """Whatever happens, no process is left when this ends."""
        self._started_s = asyncio.get_running_loop().time()
        try:
            await self._start_broker()
            async with Client(self._bootstrap, client_id="demo") as client:
                return await self._play(client)
        finally:
            for child in self._children:
                child.kill()

    async def _play(self, client: Client) -> Outcome:
        await Admin(client).create_topics(PARTITIONS)
        write_pipeline(self._place.folder, self._bootstrap, round(self._plan.per_second * _BATCH_S))
        async with self._in_background(self._background(client)):
            self._start_driver()
            for kill in plan_kills(self._plan.orders, self._plan.driver_kills, self._plan.broker_kills):
                await self._until(partial(self._has_committed, kill.due))
                await moment(client, self._place.folder, kill.moment)
                await (self._kill_driver(client) if kill.target == DRIVER else self._kill_broker())
            await self._until(self._is_done)
            assert self._driver is not None
            await self._driver.stop()
            self._tell("all orders are processed, the driver was stopped; checking the result")
            return await self._prove(client)

    # Watching

    def _background(self, client: Client) -> list[Coroutine[Any, Any, None]]:
        def acknowledged(count: int) -> None:
            self._add(produced=count)

        return [
            produce(client, self._orders, self._plan.per_second, acknowledged),
            self._count(client, ENRICHED, READ_UNCOMMITTED, "written"),
            self._count(client, ENRICHED, READ_COMMITTED, "committed"),
            self._count(client, REVENUE, READ_COMMITTED, "windows"),
            self._sample(),
        ]

    @asynccontextmanager
    async def _in_background(self, work: list[Coroutine[Any, Any, None]]) -> AsyncIterator[None]:
        """While a block runs; what fails in there ends the block."""
        try:
            async with asyncio.TaskGroup() as group:
                tasks = [group.create_task(each) for each in work]
                yield
                for task in tasks:
                    task.cancel()
        except BaseExceptionGroup as e:
            raise e.exceptions[0] from e

    async def _count(self, client: Client, topic: str, isolation_level: int, name: str) -> None:
        async with follow(client, topic, isolation_level) as consumer:
            while True:
                self._add(**{name: len(await consumer.poll(max_records=100_000))})

    def _add(self, **counts: int) -> None:
        self._counts = self._counts._replace(
            **{name: getattr(self._counts, name) + count for name, count in counts.items()}
        )

    async def _sample(self) -> None:
        while True:
            self.story.counts.append(self._counts._replace(at_s=self._now()))
            self._audience.show(self.story)
            await asyncio.sleep(_SAMPLE_S)

    def _now(self) -> float:
        return asyncio.get_running_loop().time() - self._started_s

    def _tell(self, text: str) -> None:
        self._audience.tell(self._now(), text)

    async def _until(self, is_so: Callable[[], bool]) -> None:
        """Wait, as long as anything moves. What does not come in the end is for the proof to find."""
        seen, seen_s = self._counts, self._now()
        while not is_so():
            self._look_after_processes()
            if self._counts != seen:
                seen, seen_s = self._counts, self._now()
            elif self._now() - seen_s > _STALLED_S:
                self._tell(f"no progress for {_STALLED_S:.0f} s")
                return
            await asyncio.sleep(_LOOK_S)

    def _has_committed(self, orders: int) -> bool:
        return self._counts.committed >= orders

    def _is_done(self) -> bool:
        return self._counts.committed >= self.story.orders and self._counts.windows >= self.story.windows

    # Processes

    async def _start_broker(self) -> None:
        self._broker = Broker(*self._place, self._port)
        self._children.append(self._broker)
        await self._broker.ready()
        self._tell(f"the broker is ready at {self._bootstrap} (pid {self._broker.pid})")

    def _start_driver(self) -> None:
        self._driver = Driver(*self._place)
        self._children.append(self._driver)
        self._tell(f"the driver starts (pid {self._driver.pid})")

    def _look_after_processes(self) -> None:
        assert self._broker is not None and self._driver is not None
        if self._broker.code is not None:
            raise ProcessError(f"the broker ended by itself, exit code {self._broker.code}", self._broker.log)
        if self._driver.code is not None:
            self._failures += 1
            told = f"the driver ended by itself, exit code {self._driver.code}"
            if self._failures > _MOST_FAILURES or not self._counts.written:
                raise ProcessError(told, self._driver.log)
            self._tell(told)
            self._start_driver()

    async def _kill_driver(self, client: Client) -> None:
        assert self._driver is not None
        self._driver.kill()
        at_s = self._now()
        told = await describe_driver(client, self._place.folder)
        self._struck(DRIVER, self._driver.pid, at_s, told)
        due = self._counts.committed + 1
        self._start_driver()
        await self._until(partial(self._has_committed, due))
        self._came_back()

    async def _kill_broker(self) -> None:
        assert self._broker is not None
        self._broker.kill()
        told = describe_query(self._place.folder)
        self._struck(BROKER, self._broker.pid, self._now(), told)
        await asyncio.sleep(_DOWN_S)
        await self._start_broker()
        self._came_back()

    def _struck(self, target: str, pid: int, at_s: float, told: str) -> None:
        self.story.kills.append(Kill(at_s, target, pid, told))
        self._audience.tell(at_s, f"killed the {target} (pid {pid}) {told}")

    def _came_back(self) -> None:
        self.story.kills[-1] = self.story.kills[-1]._replace(back_s=self._now())

    # The end

    async def _prove(self, client: Client) -> Outcome:
        """What is in the topics, by a client; beside it, what the decisions of the sink say, by Spark."""
        asked = Child(
            [
                *(*self._place.odradek, "prove", "eos", "-b", self._bootstrap, "--master", "local[2]"),
                *("--from", ORDERS, "--to", ENRICHED, "-q", "-f", "json"),
            ],
            self._place.folder / "prove.log",
            self._place.environment,
        )
        self._children.append(asked)
        proof = prove(self._orders, await read_contents(client))
        await self._add_batches(client)
        await asked.ended(_PROVE_S)
        return Outcome(self.story, proof, _document(asked), self._now())

    async def _add_batches(self, client: Client) -> None:
        sinks = {read_query_id(self._place.folder, sink): sink for sink in SINKS}
        began_ms = client.runtime.clock.now_ms() - self._now() * 1000
        for stream, decision in await read_decisions(client):
            if (sink := sinks.get(stream.query)) is not None:
                rows = sum(participant.rows for participant in decision.participants)
                at_s = max(0.0, (decision.decided_ms - began_ms) / 1000)
                self.story.batches.append(Batch(at_s, sink, decision.batch, rows))


def _document(asked: Child) -> Mapping[str, Any]:
    output = asked.output()
    try:
        document: dict[str, Any] = json.JSONDecoder().raw_decode(output, output.index("{"))[0]
    except ValueError:
        raise ProcessError("odradek prove eos did not give a proof", asked.log) from None
    return document
