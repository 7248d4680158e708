"""The clocks of one host: the wall clock may be wrong and jump, and both clocks may run fast or slow."""

from collections.abc import Callable

EPOCH_MS = 1_750_000_000_000
MIN_RATE, MAX_RATE = 0.5, 2.0


class Drift:
    """How a host's clocks run against the time of the world. Pure; a new rate takes effect at a moment."""

    __slots__ = ("_reading_s", "_since_s", "rate")

    def __init__(self) -> None:
        self.rate = 1.0
        self._since_s = 0.0
        self._reading_s = 0.0

    def reading(self, world_s: float) -> float:
        """What the steady clock shows at a moment of the world."""
        return self._reading_s + (world_s - self._since_s) * self.rate

    def moment(self, reading_s: float) -> float:
        """When, in the time of the world, the steady clock shows this."""
        return self._since_s + (reading_s - self._reading_s) / self.rate

    def change(self, world_s: float, rate: float) -> None:
        """Run at another rate from a moment on. The reading does not jump."""
        assert MIN_RATE <= rate <= MAX_RATE, f"a clock does not run at {rate}"
        assert world_s >= self._since_s
        self._reading_s = self.reading(world_s)
        self._since_s = world_s
        self.rate = rate


class SimClock:
    """What a host's processes read. `skew_ms` is how wrong the wall clock is, apart from its drift."""

    __slots__ = ("_now", "drift", "skew_ms")

    def __init__(self, now: Callable[[], float], skew_ms: int = 0) -> None:
        self._now = now
        self.drift = Drift()
        self.skew_ms = skew_ms

    def now_ms(self) -> int:
        return EPOCH_MS + self.skew_ms + self.steady_ms()

    def steady_ms(self) -> int:
        return int(self.drift.reading(self._now()) * 1000)
