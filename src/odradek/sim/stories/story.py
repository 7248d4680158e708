"""Story: runs one seed over any number of hosts. It starts them, injects faults, restarts and stops them.

Subclasses define the clients and the final checks.
"""

import asyncio
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Iterable, Mapping
from typing import Any, TypeAlias

from odradek.sim.stories.node_log import NodeLog
from odradek.sim.stories.outcome import Outcome, Over, error_text
from odradek.sim.stories.plan import Plan, draw_disk_faults, draw_episode, draw_net_faults
from odradek.sim.stories.striking import strike
from odradek.sim.workloads.caller import Caller
from odradek.sim.world.cluster import CrashKind, NodeCrashed, NodeFactory, SimHost
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey

PORT = 9092

Tasks: TypeAlias = "list[asyncio.Task[None]]"


class Story(ABC):
    """A subclass adds its hosts and the plan of the faults (`plan`; None for no faults)."""

    ends_at_violation = False
    """Whether the story ends at the first violation. Otherwise all checks run at the end."""

    def __init__(self, seed: int, *, seconds: float, sink: Callable[[str], None] | None = None) -> None:
        self.world = World(seed, keep=200, sink=sink)
        self.seconds = seconds
        self.rng = self.world.rng_for("plan")
        self.plan: Plan | None = None
        self.hosts: dict[str, SimHost] = {}
        self.oddities: list[str] = []
        """Answers that no client should get."""
        self.log = NodeLog(self.world.trace)
        self.outcome = Outcome(seed)

    def add_host(self, name: str, factory: NodeFactory) -> SimHost:
        assert name not in self.hosts, f"{name} is a host already"
        host = self.hosts[name] = SimHost(self.world, name, factory)
        return host

    @property
    def bootstrap(self) -> list[tuple[str, int]]:
        """The bootstrap servers of clients."""
        return [(name, PORT) for name in self.hosts]

    def caller(self, name: str, min_versions: Mapping[ApiKey, int] | None = None) -> Caller:
        """A connection for a new client. Its name must be unique in the story."""
        world = self.world
        rng = world.rng_for(f"{name}:versions")
        return Caller(world.runtime(name), self.bootstrap, name, rng, min_versions=min_versions)

    def note(self, fault: str) -> None:
        """Add a fault to the report."""
        self.world.trace.event("plan", fault)
        self.outcome.faults.append(f"{self.world.loop.time():8.3f} s  {fault}")

    # -- what a story is made of

    @abstractmethod
    async def prepare(self) -> None:
        """Create what the clients need. Network and disks have no faults yet."""

    @abstractmethod
    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        """(name, coroutine) of the clients, which run until the time is up."""

    @abstractmethod
    async def conclude(self, clients: Tasks) -> None:
        """Wait for the clients, then run the checks. All nodes run at its end."""

    @abstractmethod
    def count(self, outcome: Outcome) -> None:
        """Count acknowledged and read records."""

    # -- how it is played

    def play(self) -> Outcome:
        outcome = self.outcome
        with self.log.attached():
            try:
                self.world.run(self._play_out())
            except Over as e:
                outcome.violations += e.args
            except Exception as e:
                outcome.violations.append(error_text(e))
        self.collect()
        self.count(outcome)
        outcome.complete(self.world, self.hosts.values())
        return outcome

    def collect(self) -> None:
        """Turn collected problems into violations."""
        for source in (self.oddities, self.world.loop.unhandled, self.log.errors):
            self.outcome.violations += source
            source.clear()

    async def _play_out(self) -> None:
        assert self.hosts, "a story has hosts"
        world = self.world
        # All at once: a node of a quorum may not start before a majority has.
        await asyncio.gather(*(host.start() for host in self.hosts.values()))
        await self.prepare()
        draw_net_faults(self.rng, world.network.faults)
        for host in self.hosts.values():
            draw_disk_faults(self.rng, host.faults)
        clients = [world.loop.create_task(work, name=name) for name, work in self.clients()]
        await self.trouble(clients)
        await self.conclude(clients)
        await self.stop()
        for host in self.hosts.values():
            self.outcome.violations += host.leaks

    async def trouble(self, clients: Tasks) -> None:
        """Strike one host after another until the time is up."""
        while self.plan is not None and self.world.loop.time() < self.seconds:
            await self._strike(self.plan)
            self.stop_at_violations(clients)

    async def stop(self) -> None:
        """Stop all nodes, one after another."""
        for host in self.hosts.values():
            await host.stop()

    async def _strike(self, plan: Plan) -> None:
        """One fault of one host, until the recovery."""
        episode = draw_episode(self.rng, plan, list(self.hosts))
        await asyncio.sleep(episode.wait_seconds)
        self.note(episode.describe())
        host = self.hosts[episode.host]
        await strike(self.world, host, episode, self.log)
        if host.node is None:
            await asyncio.sleep(episode.down_seconds)
            fuse = episode.crash_in_recovery
            await self.restart(host, None if fuse is None else (fuse, episode.kind))

    async def restart(self, host: SimHost, crash_after: tuple[int, CrashKind] | None = None) -> None:
        """Start a node again. If it crashes during the start (`crash_after` system calls), start it once
        more."""
        while True:
            try:
                await host.start(crash_after)
            except NodeCrashed:
                crash_after = None
                continue
            except Exception as e:
                raise Over(f"{host.name} does not start: {e!r}") from e
            host.call_off_crash()
            return

    def stop_at_violations(self, clients: Tasks) -> None:
        for task in clients:
            if task.done() and not task.cancelled() and task.exception() is not None:
                raise Over(f"{task.get_name()} failed: {task.exception()!r}")
        if self.ends_at_violation:
            self.collect()
            if self.outcome.violations:
                raise Over
