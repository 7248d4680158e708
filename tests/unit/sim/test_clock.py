"""Each process has its own clock, and others do not see its rate."""

import asyncio

import pytest

from odradek.sim.world.clock import Drift
from odradek.sim.world.cluster import SimHost
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World


class Ticker:
    """Notes, in the world's time and in its own, when its timer of a second fires."""

    def __init__(self, runtime: SimRuntime, data_dir: str) -> None:
        self.runtime = runtime
        self.own: list[float] = []
        self.world: list[float] = []

    async def start(self) -> None:
        self._task = asyncio.get_running_loop().create_task(self._tick())

    async def stop(self) -> None:
        self._task.cancel()

    async def _tick(self) -> None:
        loop = self.runtime._loop
        while True:
            await asyncio.sleep(1)
            self.own.append(loop.time())
            self.world.append(loop.now())


def _ticker(host: SimHost) -> Ticker:
    assert isinstance(host.node, Ticker)
    return host.node


@pytest.mark.parametrize("rate", [0.5, 1.0, 2.0])
def test_timers_go_by_the_clock_of_their_process(rate: float) -> None:
    world = World(1)
    fast, sound = SimHost(world, "fast", Ticker), SimHost(world, "sound", Ticker)

    async def main() -> None:
        fast.run_clock_at(rate)
        await fast.start()
        await sound.start()
        await asyncio.sleep(8.7)
        assert len(_ticker(sound).own) == 8
        assert len(_ticker(fast).own) == int(8.7 * rate)
        assert _ticker(fast).own[2] == pytest.approx(3, abs=0.01)
        assert _ticker(fast).world[2] == pytest.approx(3 / rate, abs=0.01)

    world.run(main())


def test_a_new_rate_counts_for_timers_that_are_set() -> None:
    world = World(1)
    host = SimHost(world, "node", Ticker)

    async def main() -> None:
        await host.start()
        await asyncio.sleep(0.5)
        host.run_clock_at(0.5)
        await asyncio.sleep(2)
        assert _ticker(host).world == [pytest.approx(1.5, abs=0.01)]
        assert _ticker(host).own == [pytest.approx(1, abs=0.01)]

    world.run(main())


def test_both_clocks_of_a_host_drift_and_do_not_jump() -> None:
    world = World(1)
    host = SimHost(world, "node", Ticker)

    async def main() -> None:
        await asyncio.sleep(10)
        before = host.clock.now_ms(), host.clock.steady_ms()
        host.run_clock_at(2)
        assert (host.clock.now_ms(), host.clock.steady_ms()) == before
        await asyncio.sleep(3)
        assert host.clock.now_ms() - before[0] == pytest.approx(6000, abs=10)
        assert host.clock.steady_ms() - before[1] == pytest.approx(6000, abs=10)

    world.run(main())


def test_a_timer_says_when_it_is_due_by_the_clock_that_set_it() -> None:
    world = World(1)
    runtime = world.runtime("node")
    runtime._loop.change_rate(runtime.process.drift, 2)

    async def node() -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(4)
        timer = loop.call_later(3, print)
        assert timer.when() == pytest.approx(loop.time() + 3)
        timer.cancel()

    async def main() -> None:
        await world.loop.create_task(node(), context=world.context_of(runtime.process))

    world.run(main())


def test_a_reading_is_the_reverse_of_its_moment() -> None:
    drift = Drift()
    for moment, rate in ((3.0, 2.0), (5.0, 0.5), (5.0, 1.25)):
        drift.change(moment, rate)
        assert drift.moment(drift.reading(moment + 7)) == pytest.approx(moment + 7)


def test_a_clock_neither_stands_nor_races() -> None:
    with pytest.raises(AssertionError, match="does not run at"):
        Drift().change(0, 0.0)
