"""World: one simulation, with its seed, loop, network and trace. Everything random comes from the seed."""

import gc
import random
from collections.abc import Callable, Coroutine
from contextvars import Context
from typing import Any, TypeVar

from odradek.sim.world.clock import SimClock
from odradek.sim.world.disk import DiskFaults
from odradek.sim.world.loop import SimLoop
from odradek.sim.world.net import SimListener
from odradek.sim.world.network import Network
from odradek.sim.world.process import CURRENT_PROCESS, Process
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.trace import Trace
from odradek.sim.world.volume import Volume

T = TypeVar("T")


class World:
    """The simulated world of one seed."""

    def __init__(self, seed: int, *, keep: int = 0, sink: Callable[[str], None] | None = None) -> None:
        self.seed = seed
        self.loop = SimLoop()
        self.trace = Trace(self.loop.now, keep=keep, sink=sink)
        self.network = Network(self.loop, self.rng_for("network"), self.trace)
        self._listeners: dict[tuple[str, int], SimListener] = {}
        self._processes: list[tuple[str, Process]] = []
        """(host, process) of all processes."""

    def rng_for(self, purpose: str) -> random.Random:
        """A separate random number generator, so that a change in one part does not shift all the others."""
        return random.Random(f"{self.seed}:{purpose}")

    def runtime(
        self,
        host: str,
        name: str | None = None,
        *,
        volume: Volume | None = None,
        faults: DiskFaults | None = None,
        clock: SimClock | None = None,
    ) -> SimRuntime:
        """A new process on a host. `name` must be unique: it seeds the process's random numbers."""
        clock = clock or SimClock(self.loop.now)
        process = Process(name or host, clock.drift)
        self._processes.append((host, process))
        return SimRuntime(
            self.network,
            self._listeners,
            host,
            process,
            volume or Volume(),
            faults or DiskFaults(),
            clock,
            self.rng_for(process.name),
        )

    def hosts(self) -> list[str]:
        """The hosts with live processes."""
        return list(dict.fromkeys(host for host, process in self._processes if process.alive))

    @staticmethod
    def context_of(process: Process) -> Context:
        """The context for code of a process, so that a crash ends it."""
        context = Context()
        context.run(CURRENT_PROCESS.set, process)
        return context

    def run(self, main: Coroutine[Any, Any, T]) -> T:
        """Run until `main` ends, then drop everything that is left.

        The garbage collector is off, because it would free objects at unpredictable times.
        """
        collecting = gc.isenabled()
        gc.disable()
        try:
            return self.loop.run_until_complete(main)
        finally:
            self._close()
            if collecting:
                gc.enable()

    def _close(self) -> None:
        for _, process in self._processes:
            if process.alive:
                self.loop.kill(process)
        self.loop.after_turn = None
        self.loop.call_soon(self.loop.stop)
        self.loop.run_forever()
        self.loop.close()
