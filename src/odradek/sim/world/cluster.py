"""SimHost: starts, stops and crashes nodes on a simulated host. A factory makes the nodes."""

import asyncio
import gc
from collections.abc import Callable
from contextvars import copy_context
from enum import Enum
from typing import Any, Protocol, TypeAlias

from odradek.sim.world.clock import SimClock
from odradek.sim.world.disk import DiskFaults
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import CrashModel, Volume
from odradek.sim.world.world import World

DATA_DIR = "/data"
PATIENCE_SECONDS = 300.0


class NodeLike(Protocol):
    async def start(self) -> object: ...
    async def stop(self) -> object: ...


NodeFactory: TypeAlias = Callable[[SimRuntime, str], NodeLike]


class CrashKind(Enum):
    """How a node crashes."""

    KILL = "kill"
    """Only the process dies, as with kill -9: the kernel keeps its writes and closes its connections."""
    POWER = "power"
    """The machine loses power: unsynced writes survive partly, and peers are not notified."""


class NodeCrashed(Exception):
    """The node crashed during its start or stop."""


class NodeHangs(Exception):
    """The start or stop of the node takes too long."""


class SimHost:
    """A host with a disk, on which nodes run one after another."""

    def __init__(self, world: World, name: str, factory: NodeFactory, data_dir: str = DATA_DIR) -> None:
        self.world = world
        self.name = name
        self.data_dir = data_dir
        self.volume = Volume()
        self.faults = DiskFaults()
        self.crash_model = CrashModel()
        self.clock = SimClock(world.loop.now)
        self.node: NodeLike | None = None
        self.runtime: SimRuntime | None = None
        self.lives = 0
        self.is_stopping = False
        self.before_start: list[Callable[[], None]] = []
        self.before_crash: list[Callable[[CrashKind], None]] = []
        self.leaks: list[str] = []
        self._factory = factory
        self._rng = world.rng_for(f"{name}:crashes")
        self._death: asyncio.Future[None] | None = None

    @property
    def alive(self) -> bool:
        return self.runtime is not None and self.runtime.process.alive

    async def start(self, crash_after: tuple[int, CrashKind] | None = None) -> None:
        """Start a node on the content of the disk. Raises the errors of the node's start, or NodeCrashed.

        `crash_after` calls the method `crash_after` before the first system call.
        """
        assert not self.alive, f"{self.name} is already running"
        for hook in self.before_start:
            hook()
        self.lives += 1
        self.is_stopping = False
        world = self.world
        world.trace.event(self.name, "start", self.lives)
        world.network.host_up(self.name)
        self.runtime = world.runtime(
            self.name, f"{self.name}.{self.lives}", volume=self.volume, faults=self.faults, clock=self.clock
        )
        self._death = world.loop.create_future()
        if crash_after is not None:
            self.crash_after(*crash_after)
        await self._within(self._boot(self.runtime))

    async def stop(self) -> None:
        """Stop the node cleanly, then note what it left open."""
        assert self.node is not None
        assert self.runtime is not None
        self.world.trace.event(self.name, "stop", self.lives)
        self.is_stopping = True
        await self._within(self.node.stop())
        self.node = None
        runtime = self.runtime
        runtime.process.tasks = runtime.process.living_tasks()
        if runtime.sim_disk.open_paths():
            # Descriptors may close with their objects.
            gc.collect()
        tasks = [task.get_name() for task in runtime.process.tasks]
        for what, left in (
            ("file", runtime.sim_disk.open_paths()),
            ("connection", runtime.sim_net.open_sockets()),
            ("task", tasks),
        ):
            self.leaks += [f"{self.name} left a {what} behind: {entry}" for entry in left]
        self.world.loop.kill(runtime.process)
        runtime.sim_net.crash(silently=False)

    def crash(self, kind: CrashKind) -> None:
        """End the process at once, without its cleanup. May be called from within the node's own calls."""
        assert self.runtime is not None
        assert self._death is not None
        self.world.trace.event(self.name, "crash", kind.value)
        for hook in self.before_crash:
            hook(kind)
        self.runtime.process.has_crashed = True
        self.world.loop.kill(self.runtime.process)
        self.runtime.sim_net.crash(silently=kind is CrashKind.POWER)
        if kind is CrashKind.POWER:
            self.world.network.host_down(self.name)
            self.volume.crash(self._rng, self.crash_model)
        self.node = None
        if not self._death.done():
            self._death.set_result(None)

    def crash_after(self, calls: int, kind: CrashKind) -> None:
        """Crash at the n-th next system call that has an effect."""
        assert self.runtime is not None
        process = self.runtime.process
        process.on_burnt = lambda: self.crash(kind)
        process.fuse = calls

    def call_off_crash(self) -> None:
        assert self.runtime is not None
        self.runtime.process.fuse = None

    def pause(self) -> None:
        """Stop the process as SIGSTOP does: its connections stay open, and the kernel's buffers fill up."""
        assert self.runtime is not None
        self.world.trace.event(self.name, "pause")
        self.world.loop.pause(self.runtime.process)

    def resume(self) -> None:
        """Continue a paused process. Its timers are late."""
        assert self.runtime is not None
        self.world.trace.event(self.name, "resume")
        self.world.loop.resume(self.runtime.process)

    def stall(self, seconds: float) -> None:
        """Block the loop of the process for a while, as a slow system call does."""
        assert self.runtime is not None
        self.world.trace.event(self.name, "stall", seconds)
        self.world.loop.stall(self.runtime.process, seconds)

    def run_clock_at(self, rate: float) -> None:
        """Run this host's clocks faster or slower, also after restarts."""
        self.world.trace.event(self.name, "clock rate", rate)
        self.world.loop.change_rate(self.clock.drift, rate)

    async def dead(self) -> None:
        """Wait for a crash of the current process."""
        assert self._death is not None
        await asyncio.shield(self._death)

    async def _boot(self, runtime: SimRuntime) -> None:
        node = self._factory(runtime, self.data_dir)
        self.node = node
        await node.start()

    async def _within(self, coroutine: Any) -> None:
        """Run a coroutine as code of the node, and wait for its end or for the node's."""
        assert self.runtime is not None
        assert self._death is not None
        loop = self.world.loop
        outcome: asyncio.Future[None] = loop.create_future()

        def end_wait(_: object) -> None:
            if not outcome.done():
                outcome.set_result(None)

        context = self.world.context_of(self.runtime.process)
        task = loop.create_task(coroutine, name=f"{self.name}.{self.lives}", context=context)
        task.add_done_callback(end_wait, context=copy_context())
        self._death.add_done_callback(end_wait, context=copy_context())
        try:
            await asyncio.wait_for(outcome, PATIENCE_SECONDS)
        except TimeoutError:
            where = [f"{f.f_code.co_qualname}:{f.f_lineno}" for f in task.get_stack()]
            raise NodeHangs(f"{self.name} does not finish {coroutine.__qualname__}, at {where}") from None
        if not self.alive:
            raise NodeCrashed(self.name)
        task.result()
