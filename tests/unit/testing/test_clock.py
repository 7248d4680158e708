"""Time that a test moves: timers fire in order, each near its moment, and the wall clock goes along."""

import asyncio

from odradek.testing.clock import Shift, ShiftedClock, ShiftedLoop


class StoppedClock:
    def now_ms(self):
        return 1000


def test_advancing_fires_timers_in_order_and_none_late():
    shift = Shift()
    loop = ShiftedLoop(shift)
    fired = []

    async def run():
        start = loop.time()
        for delay in (3600, 1, 60, 90_000):
            loop.call_later(delay, lambda delay=delay: fired.append((delay, loop.time() - start - delay)))
        await loop.advance(7200)

    loop.run_until_complete(run())
    loop.close()
    assert [delay for delay, _ in fired] == [1, 60, 3600]
    assert all(late < 1.1 for _, late in fired)
    assert 7199 < shift.seconds <= 7200


def test_periodic_work_runs_as_often_as_it_would_have():
    loop = ShiftedLoop(Shift())
    runs = 0

    async def every_second():
        nonlocal runs
        while True:
            await asyncio.sleep(1)
            runs += 1

    async def run():
        task = asyncio.create_task(every_second())
        await asyncio.sleep(0)
        await loop.advance(100)
        task.cancel()

    loop.run_until_complete(run())
    loop.close()
    assert 95 <= runs <= 101


def test_the_wall_clock_follows_the_shift():
    shift = Shift()
    clock = ShiftedClock(StoppedClock(), shift)
    assert clock.now_ms() == 1000
    shift.seconds = 3600
    assert clock.now_ms() == 3_601_000
