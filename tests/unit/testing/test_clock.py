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
    assert all(late < 0.05 for _, late in fired)
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


def test_ticks_rest_on_a_long_way_and_other_timers_are_met_at_their_moment():
    loop = ShiftedLoop(Shift())
    ticks = []
    late_s = []

    async def tick(period_s):
        while True:
            await asyncio.sleep(period_s)
            ticks.append(loop.time())

    async def later(delay_s):
        due = loop.time() + delay_s
        await asyncio.sleep(delay_s)
        late_s.append(loop.time() - due)

    async def chain():
        for delay_s in (5_400, 37, 37.5, 20_000.25, 0.75):
            await later(delay_s)

    async def run():
        tasks = [asyncio.create_task(tick(period_s)) for period_s in (0.1, 0.5, 1, 1, 2)]
        tasks += [asyncio.create_task(chain()), asyncio.create_task(later(80_000))]
        await asyncio.sleep(0)
        start = loop.time()
        await loop.advance(86_400)
        for task in tasks:
            task.cancel()
        return start

    start = loop.run_until_complete(run())
    loop.close()
    assert len(late_s) == 6
    assert all(late < 0.05 for late in late_s)
    assert len(ticks) < 5_000  # not the 285,000 of a day
    pauses = [b - a for a, b in zip([start, *ticks], [*ticks, start + 86_400], strict=True)]
    assert max(pauses) < 86_400 / 100


def test_too_many_timers_of_a_kind_are_met_late_rather_than_each():
    loop = ShiftedLoop(Shift())
    fired = 0

    def again(n):
        nonlocal fired
        fired += 1
        loop.call_later(0.2 + n % 7 / 10, lambda: again(n + 1))

    async def run():
        again(0)
        await loop.advance(86_400)

    loop.run_until_complete(run())
    loop.close()
    assert 100 < fired < 5_000


def test_the_wall_clock_follows_the_shift():
    shift = Shift()
    clock = ShiftedClock(StoppedClock(), shift)
    assert clock.now_ms() == 1000
    shift.seconds = 3600
    assert clock.now_ms() == 3_601_000
