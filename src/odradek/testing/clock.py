"""Time that a test can move: an event loop and a wall clock that share one shift ahead of the machine's."""

import asyncio
from collections.abc import Callable, Hashable, Iterable
from contextvars import Context
from typing import TypeVarTuple
from weakref import WeakKeyDictionary

from odradek.runtime.api import Clock

Ts = TypeVarTuple("Ts")

LULLS = 200
"""A timer that only comes again and again is met about so often on the way, however far that is."""
MOST_STEPS = 2_000
SPARE_STEPS = 200
SMALLEST_STEP_S = 0.001
SAME_PERIOD_S = 0.01
MOST_TURNS = 20


class Shift:
    """How far ahead of the machine this broker lives. Never goes back."""

    __slots__ = ("seconds",)

    def __init__(self) -> None:
        self.seconds = 0.0


class ShiftedClock:
    """The wall clock, ahead by the shift."""

    __slots__ = ("_clock", "_shift")

    def __init__(self, clock: Clock, shift: Shift) -> None:
        self._clock = clock
        self._shift = shift

    def now_ms(self) -> int:
        return self._clock.now_ms() + int(self._shift.seconds * 1000)

    def steady_ms(self) -> int:
        return self._clock.steady_ms() + int(self._shift.seconds * 1000)


class _Ahead:
    """The way to a later moment, from timer to timer. Timers that come again and again may be met late."""

    def __init__(self, start: float, seconds: float) -> None:
        self._start = start
        self._seconds = seconds
        self._lull = seconds / LULLS
        self._steps = 0
        self._delays: dict[Hashable, float] = {}
        self._recurring: WeakKeyDictionary[asyncio.TimerHandle, None] = WeakKeyDictionary()

    def armed(self, timer: asyncio.TimerHandle, delay: float, owner: Hashable) -> None:
        """Somebody set a timer. Who sets one for as long as the last time does so again and again."""
        if abs(self._delays.get(owner, -1.0) - delay) < SAME_PERIOD_S:
            self._recurring[timer] = None
        self._delays[owner] = delay

    def step(self, timers: Iterable[asyncio.TimerHandle], now: float) -> float:
        """How far to go in one step: to the next timer, or a little further where there were too many."""
        self._steps += 1
        rested = now + self._lull
        moments = (
            max(timer.when(), rested) if timer in self._recurring else timer.when()
            for timer in timers
            if not timer.cancelled()
        )
        end = self._start + self._seconds
        next_s = min(moments, default=end) - now
        on_pace = SPARE_STEPS + MOST_STEPS * (now - self._start) / self._seconds
        smallest = SMALLEST_STEP_S if self._steps < on_pace else self._seconds / MOST_STEPS
        return min(end - now, max(next_s, smallest))


class ShiftedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the shift."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        self._ahead: _Ahead | None = None
        super().__init__()

    def time(self) -> float:
        return super().time() + self._shift.seconds

    def call_at(
        self, when: float, callback: Callable[[*Ts], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.TimerHandle:
        timer = super().call_at(when, callback, *args, context=context)
        if self._ahead is not None:
            owner: Hashable = asyncio.current_task(self) or callback
            self._ahead.armed(timer, when - self.time(), owner)
        return timer

    async def advance(self, seconds: float) -> None:
        """Let time pass, from timer to timer: each fires at the moment it was set for.

        A jump over all of them at once would look like a loop that stood still. Ticks, which fire again
        and again at the same distance, rest on a long way: a test should not wait for every one of them.
        """
        if seconds <= 0:
            return
        self._ahead = ahead = _Ahead(self.time(), seconds)
        target = self.time() + seconds
        try:
            while target > (now := self.time()):
                timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
                self._shift.seconds += ahead.step(timers, now)
                await self._run_ready()
        finally:
            self._ahead = None

    async def _run_ready(self) -> None:
        """Let what a timer set off run until it rests, or for a while where it never does."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if not self._ready:  # type: ignore[attr-defined]
                return
