"""Time that a test can move: an event loop and a wall clock that share one shift ahead of the machine's."""

import asyncio

from odradek.runtime.api import Clock

SMALLEST_STEP_S = 0.05
USUAL_STEPS = 2_000
MOST_STEPS = 20_000
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


class ShiftedLoop(asyncio.SelectorEventLoop):
    """An event loop whose timers follow the shift."""

    def __init__(self, shift: Shift) -> None:
        self._shift = shift
        super().__init__()

    def time(self) -> float:
        return super().time() + self._shift.seconds

    async def advance(self, seconds: float) -> None:
        """Let time pass, from timer to timer, so that each fires at about the moment it was set for.

        A jump over all of them at once would look like a loop that stood still. Hours pass in steps of up
        to a second, weeks in larger ones: a test should not wait for every tick of a probe.
        """
        target = self.time() + seconds
        smallest = max(SMALLEST_STEP_S, min(1.0, seconds / USUAL_STEPS), seconds / MOST_STEPS)
        while (left := target - self.time()) > 0:
            timers: list[asyncio.TimerHandle] = self._scheduled  # type: ignore[attr-defined]
            next_s = timers[0].when() - self.time() if timers else left
            self._shift.seconds += min(left, max(next_s, smallest))
            await self._settle()

    async def _settle(self) -> None:
        """Let what a timer set off run until it rests, or for a while where it never does."""
        for _ in range(MOST_TURNS):
            await asyncio.sleep(0)
            if not self._ready:  # type: ignore[attr-defined]
                return
