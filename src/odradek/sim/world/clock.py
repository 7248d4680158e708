"""The clocks of one host. The wall clock may be wrong and jump, and both clocks may run fast or slow."""

from collections.abc import Callable

EPOCH_MS = 1_750_000_000_000
MIN_RATE, MAX_RATE = 0.5, 2.0


class Drift:
    """The rate of a host's clocks relative to the time of the world. Pure."""

    __slots__ = ("_reading_s", "_since_s", "rate")

    def __init__(self) -> None:
        self.rate = 1.0
        self._since_s = 0.0
        self._reading_s = 0.0

    def reading(self, world_s: float) -> float:
        """The steady clock at a time of the world."""
        return self._reading_s + (world_s - self._since_s) * self.rate

    def moment(self, reading_s: float) -> float:
        """The time of the world at which the steady clock has this reading."""
        return self._since_s + (reading_s - self._reading_s) / self.rate

    def change(self, world_s: float, rate: float) -> None:
        """Change the rate at a time of the world. The reading does not jump."""
        assert MIN_RATE <= rate <= MAX_RATE, f"a clock does not run at {rate}"
        assert world_s >= self._since_s
        self._reading_s = self.reading(world_s)
        self._since_s = world_s
        self.rate = rate


class SimClock:
    """The clock of a host's processes. `skew_ms` is the error of the wall clock, besides its drift."""

    __slots__ = ("_now", "drift", "skew_ms")

    def __init__(self, now: Callable[[], float], skew_ms: int = 0) -> None:
        self._now = now
        self.drift = Drift()
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return EPOCH_MS + self.skew_ms + self.steady_ms()

    def steady_ms(self) -> int:
        return int(self.drift.reading(self._now()) * 1000)
