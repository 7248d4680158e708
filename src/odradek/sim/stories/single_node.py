"""One node, several producers and groups, and whatever the seed has in store: the first simulation.

Clients work all the time. The node is struck again and again, restarted, and everything is read back and held
against what the clients were told. The story ends with an orderly stop and one more restart.
"""

import asyncio
import logging
import os
import random
import traceback
from collections.abc import Callable, Coroutine, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NoReturn
from uuid import UUID

from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.sim.checkers import logs as checkers
from odradek.sim.checkers.audit import Auditor, Flushed
from odradek.sim.checkers.history import History
from odradek.sim.checkers.platter import flushed_commits, flushed_records
from odradek.sim.stories.plan import (
    Blow,
    Episode,
    Protocol,
    Settings,
    draw_disk_faults,
    draw_episode,
    draw_net_faults,
    draw_settings,
)
from odradek.sim.workloads.administering import Administrator
from odradek.sim.workloads.caller import Caller
from odradek.sim.workloads.classic_member import ClassicMember
from odradek.sim.workloads.modern_member import FIRST_VERSIONS, ModernMember
from odradek.sim.workloads.producing import Producer
from odradek.sim.world.cluster import CrashKind, NodeCrashed, NodeFactory, NodeLike, SimHost
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.trace import Trace
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

HOST, PORT = "node", 9092
FLUSHED_TOPIC, PLAIN_TOPIC = "flushed", "plain"
PARTITIONS_PER_TOPIC = 2
PRODUCERS = (
    ("idempotent0", True, -1),
    ("idempotent1", True, -1),
    ("plain-all", False, -1),
    ("plain-one", False, 1),
    ("plain-none", False, 0),
)
GROUPS = {"readers": ("readers0", "readers1"), "others": ("others0", "others1")}
"""Groups and their members."""
ADMINISTRATOR = "administrator"
TURNS_BETWEEN_CHECKS = 8
SUFFERING_SECONDS = 2.0

LogsOf = Callable[[NodeLike], Iterable[checkers.LogView]]


@dataclass(slots=True)
class Outcome:
    """What became of a seed."""

    seed: int
    violations: list[str] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    recent: list[str] = field(default_factory=list)
    digest: str = ""
    events: int = 0
    virtual_seconds: float = 0.0
    lives: int = 0
    acknowledged_records: int = 0
    acknowledged_commits: int = 0
    read_records: int = 0

    def told_by(self, world: World, host: SimHost) -> "Outcome":
        """With what the world knows, when the story is over."""
        self.digest, self.events = world.trace.digest(), world.trace.count
        self.virtual_seconds, self.lives = world.loop.time(), host.lives
        if self.violations:
            self.recent = world.trace.recent()
        return self


class NodeLog(logging.Handler):
    """Traces what the node logs, and collects the errors: in a simulation each of them must be explained."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self._trace = trace
        self.errors: list[str] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Hear the node, and nobody else of it, for a while."""
        logger = logging.getLogger("odradek")
        before = logger.propagate, logger.level
        logger.propagate = False
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.propagate = before[0]
            logger.setLevel(before[1])

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{record.name}: {record.getMessage()}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line += f": {error!r}"
        self._trace.event("log", record.levelname, line)
        if record.levelno >= logging.ERROR and not isinstance(error, ProcessCrashed):
            where = ""
            if error is not None:
                frames = traceback.extract_tb(error.__traceback__)[-3:]
                where = " at " + ", ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames)
            self.errors.append(f"the node logged: {line}{where}")


def told(error: Exception) -> str:
    """What a client or the auditor could not make sense of: that is the node's doing."""
    frames = traceback.extract_tb(error.__traceback__)[-2:]
    return f"{type(error).__name__}: {error}, in {' < '.join(f.name for f in reversed(frames))}"


class Scenario:
    """The story of one seed."""

    def __init__(
        self,
        seed: int,
        factory: "Callable[[Settings], NodeFactory]",
        logs_of: LogsOf,
        *,
        seconds: float = 60.0,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        self._world = World(seed, keep=200, sink=sink)
        self._seconds = seconds
        self._rng = self._world.rng_for("plan")
        self._logs_of = logs_of
        self._settings = draw_settings(self._rng)
        self._host = SimHost(self._world, HOST, factory(self._settings))
        flushed = {FLUSHED_TOPIC}
        if self._settings.flush_everything:
            flushed |= {PLAIN_TOPIC, GROUP_METADATA_TOPIC}
        self._history = History(frozenset(flushed))
        self._partitions = [
            TopicPartition(topic, index)
            for topic in (FLUSHED_TOPIC, PLAIN_TOPIC)
            for index in range(PARTITIONS_PER_TOPIC)
        ]
        self._topic_ids: dict[str, UUID] = {}
        self._flushed: Flushed | None = None
        self._born = 0
        """The place in the history at which this life of the node began."""
        self._invariants = checkers.LogInvariants()
        self._log = NodeLog(self._world.trace)
        self._outcome = Outcome(seed)

    def play(self) -> Outcome:
        outcome, world = self._outcome, self._world
        world.loop.after_turn = self._after_turn
        self._host.before_crash.append(self._before_crash)
        with self._log.attached():
            try:
                world.run(self._story())
            except _Over:
                pass
            except Exception as e:
                self._violation(told(e))
        history = self._history
        self._collect()
        outcome.acknowledged_records = history.acknowledged_records
        outcome.acknowledged_commits = history.acknowledged_commits
        outcome.read_records = history.read_records
        return outcome.told_by(world, self._host)

    # -- the story

    async def _story(self) -> None:
        world, host = self._world, self._host
        await host.start()
        admin = Caller(world.runtime("admin"), (HOST, PORT), "admin", world.rng_for("admin:versions"))
        await self._create_topics(admin)
        draw_net_faults(self._rng, world.network.faults)
        draw_disk_faults(self._rng, host.faults)
        tasks = [world.loop.create_task(work, name=name) for name, work in self._clients()]
        while world.loop.time() < self._seconds:
            episode = draw_episode(self._rng)
            await asyncio.sleep(episode.wait_seconds)
            await self._strike(episode)
            self._stop_at_violations(tasks)
        for task in tasks:
            await task
        await self._audit()
        await host.stop()
        await self._restart(None)
        await host.stop()
        self._outcome.violations += host.leaks

    def _clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        for name, idempotent, acks in PRODUCERS:
            caller, rng = self._caller(name, {ApiKey.PRODUCE: 7} if idempotent else None)
            producer = Producer(
                name,
                caller,
                self._history,
                self._topic_ids,
                self._partitions,
                rng,
                idempotent=idempotent,
                acks=acks,
                lives=lambda: self._host.lives,
                now_ms=self._host.clock.now_ms,
                pace_seconds=0.25,
                codecs=5 if idempotent else 4,
            )
            yield name, producer.run(self._seconds)
        caller, rng = self._caller(ADMINISTRATOR)
        administrator = Administrator(caller, self._history, self._partitions, rng, pace_seconds=1.0)
        yield ADMINISTRATOR, administrator.run(self._seconds)
        protocols = self._world.rng_for("protocols")
        for group, names in GROUPS.items():
            protocol = protocols.choice(list(Protocol))
            self._note(f"group {group}: {protocol.value}")
            for index, name in enumerate(names):
                modern = protocol.is_modern(index)
                caller, rng = self._caller(name, FIRST_VERSIONS if modern else None)
                kind = ModernMember if modern else ClassicMember
                member = kind(name, group, caller, self._history, self._topic_ids, self._partitions, rng)
                member.moves = protocol is Protocol.MIXED
                yield name, member.run(self._seconds)

    def _caller(
        self, name: str, min_versions: dict[ApiKey, int] | None = None
    ) -> tuple[Caller, random.Random]:
        runtime = self._world.runtime(name)
        rng = self._world.rng_for(f"{name}:versions")
        return Caller(runtime, (HOST, PORT), name, rng, min_versions=min_versions), runtime.rng

    async def _create_topics(self, admin: Caller) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        flush = types.CreatableTopicConfig(name="flush.messages", value="1")
        topics = [
            types.CreatableTopic(
                name=topic,
                num_partitions=PARTITIONS_PER_TOPIC,
                replication_factor=1,
                configs=[flush] if topic == FLUSHED_TOPIC else [],
            )
            for topic in (FLUSHED_TOPIC, PLAIN_TOPIC)
        ]
        response = await admin.call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics, timeout=30_000), version=7
        )
        for topic in response.topics:
            if topic.error_code:
                self._end(f"cannot create {topic.name}: {topic.error_code} {topic.error_message}")
            self._topic_ids[topic.name] = topic.topic_id
        admin.close()

    # -- blows

    async def _strike(self, episode: Episode) -> None:
        self._note(episode.describe())
        host, network = self._host, self._world.network
        match episode.blow:
            case Blow.CRASH:
                host.crash(episode.kind)
            case Blow.CRASH_IN_A_CALL:
                host.crash_after(episode.calls, episode.kind)
                await self._until_dead(episode.kind)
            case Blow.RESTART:
                await host.stop()
            case Blow.PARTITION:
                members = (name for names in GROUPS.values() for name in names)
                for name in (*(p[0] for p in PRODUCERS), *members, ADMINISTRATOR):
                    network.partition(HOST, name)
                await asyncio.sleep(episode.seconds)
                network.heal()
                return
            case Blow.RESET:
                network.reset_connections(HOST)
                return
            case Blow.CLOCK_JUMP:
                host.clock.skew_ms += int((episode.seconds - 7) * 1000)
                return
            case Blow.DISK_ERROR:
                host.faults.rules = [DiskFault(episode.errno, [episode.operation], "*", 0.5, times=3)]
                await self._suffer(episode.kind)
                host.faults.rules = []
            case Blow.DISK_FULL:
                host.volume.capacity_bytes = host.volume.used_bytes() + episode.calls
                await self._suffer(episode.kind)
                host.volume.capacity_bytes = None
        await asyncio.sleep(episode.seconds / 10)
        await self._restart(episode)

    async def _until_dead(self, kind: CrashKind) -> None:
        try:
            await asyncio.wait_for(self._host.dead(), 5)
        except TimeoutError:
            self._host.crash(kind)

    async def _suffer(self, kind: CrashKind) -> None:
        """Live with a failing disk, which the node may complain about but must survive; then crash."""
        self._collect()
        await asyncio.sleep(SUFFERING_SECONDS)
        if not self._host.alive:
            self._end("a failing disk ended the process")
        self._log.errors.clear()
        self._host.crash(kind)

    async def _restart(self, episode: Episode | None) -> None:
        """Start the node, crashing it in its recovery where the episode says so, and audit it."""
        fuse: tuple[int, CrashKind] | None = None
        if episode is not None and episode.crash_in_recovery is not None:
            fuse = (episode.crash_in_recovery, episode.kind)
        self._invariants.new_life()
        while True:
            self._born = self._history.next_place()
            try:
                await self._host.start(fuse)
            except NodeCrashed:
                fuse = None
                continue
            except Exception as e:
                self._end(f"the node does not start: {e!r}")
            self._host.call_off_crash()
            break
        await self._audit()

    async def _audit(self) -> None:
        world = self._world
        name = f"auditor{self._history.next_place()}"
        auditor = Auditor(
            world.runtime(name),
            (HOST, PORT),
            self._history,
            self._partitions,
            tuple(GROUPS),
            self._topic_ids,
            world.rng_for(f"{name}:versions"),
        )
        self._outcome.violations += await auditor.audit(self._born, self._flushed)
        self._flushed = None

    # -- evidence

    def _before_crash(self, kind: CrashKind) -> None:
        if kind is not CrashKind.POWER:
            return
        records = flushed_records(self._host.volume, self._host.data_dir)
        flushed = Flushed(records, flushed_commits(records))
        if self._flushed is not None:
            # Crashed before anyone could look: what was safe at the first crash still is.
            for tp, found in self._flushed.records.items():
                flushed.records.setdefault(tp, {}).update(found)
            flushed.commits = {**self._flushed.commits, **flushed.commits}
        self._flushed = flushed
        self._history.power_lost(flushed.records)

    def _after_turn(self) -> None:
        if self._world.loop.turns % TURNS_BETWEEN_CHECKS == 0 and self._host.node is not None:
            found = self._invariants.check(self._logs_of(self._host.node))
            if found:
                for violation in found:
                    self._violation(violation)
                raise _Over

    def _stop_at_violations(self, tasks: "list[asyncio.Task[None]]") -> None:
        for task in tasks:
            if task.done() and not task.cancelled() and task.exception() is not None:
                self._violation(f"{task.get_name()} failed: {task.exception()!r}")
        self._collect()
        if self._outcome.violations:
            raise _Over

    def _collect(self) -> None:
        """Turn what was noted on the way into violations."""
        for source in (self._history.oddities, self._world.loop.unhandled, self._log.errors):
            for line in source:
                self._violation(line)
            source.clear()

    def _note(self, fault: str) -> None:
        self._world.trace.event("plan", fault)
        self._outcome.faults.append(f"{self._world.loop.time():8.3f} s  {fault}")

    def _violation(self, text: str) -> None:
        self._outcome.violations.append(text)

    def _end(self, violation: str) -> NoReturn:
        self._violation(violation)
        raise _Over


class _Over(Exception):
    """A violation was noted: nothing after it proves anything."""
