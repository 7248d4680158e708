"""Throttle: limits the bytes per second of all cleaning together. Pure: the caller passes the time."""


class Throttle:
    """A job that moved bytes waits until the rate allows more."""

    __slots__ = ("_free_at", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._free_at = 0.0

    def wait_s(self, moved_bytes: int, now: float) -> float:
        """How long to wait after reading or writing bytes."""
        self._free_at = max(self._free_at, now) + moved_bytes / self.bytes_per_second
        return self._free_at - now

    def budget_bytes(self, most: int, seconds: float) -> int:
        """How many bytes to process at once, so that waits stay short."""
        return max(1, int(min(float(most), self.bytes_per_second * seconds)))
