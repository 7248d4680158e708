"""SimRuntime: the Runtime of one simulated process."""

import asyncio
import random
from collections.abc import Callable
from typing import TypeVar

from odradek.runtime.api import Clock, Disk, Net
from odradek.sim.world.clock import SimClock
from odradek.sim.world.disk import DiskFaults, SimDisk
from odradek.sim.world.net import SimListener, SimNet
from odradek.sim.world.network import Network
from odradek.sim.world.process import Process, ProcessCrashed
from odradek.sim.world.volume import Volume

T = TypeVar("T")

OFFLOAD_MAX_SECONDS = 0.002
DESCRIPTOR_LIMIT = 1 << 20


class SimRuntime:
    """Clock, disk, network and random numbers of one process."""

    def __init__(
        self,
        network: Network,
        listeners: dict[tuple[str, int], SimListener],
        host: str,
        process: Process,
        volume: Volume,
        faults: DiskFaults,
        clock: SimClock,
        rng: random.Random,
    ) -> None:
        self._loop = network.loop
        self._delays = random.Random(rng.random())
        self.host = host
        self.process = process
        self.sim_disk = SimDisk(
            volume, process, faults, self._delays, network.trace, clock.now_ms, self._stall
        )
        self.sim_net = SimNet(network, listeners, host, process, self.sim_disk)
        self.clock: Clock = clock
        self.disk: Disk = self.sim_disk
        self.net: Net = self.sim_net
        self.rng = rng
        self.descriptors = DESCRIPTOR_LIMIT

    def descriptor_limit(self) -> int:
        return self.descriptors

    def for_quorum(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self.offload(work)

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return self.offload(work)

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run the work on the loop a moment later, and report its result another moment later.

        Between the two moments synced data is durable, but the process does not know it yet.
        """
        self.process.check()
        future: asyncio.Future[T] = self._loop.create_future()
        self._loop.call_later(self._delay(), self._work, work, future)
        return future

    def _work(self, work: Callable[[], T], future: "asyncio.Future[T]") -> None:
        if future.cancelled():
            return
        try:
            result = work()
        except ProcessCrashed:
            raise
        except BaseException as e:
            self._loop.call_later(self._delay(), _tell_error, future, e)
        else:
            self._loop.call_later(self._delay(), _tell, future, result)

    def _stall(self, seconds: float) -> None:
        self._loop.stall(self.process, seconds)

    def _delay(self) -> float:
        return self._delays.random() * OFFLOAD_MAX_SECONDS


def _tell(future: "asyncio.Future[T]", result: T) -> None:
    if not future.done():
        future.set_result(result)


def _tell_error(future: "asyncio.Future[T]", error: BaseException) -> None:
    if not future.done():
        future.set_exception(error)
