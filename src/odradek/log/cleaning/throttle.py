"""Holding all cleaning together to a rate of bytes. Pure: time is given."""


class Throttle:
    """Whoever has moved bytes waits until they are paid for."""

    __slots__ = ("_free_at", "bytes_per_second")

    def __init__(self, bytes_per_second: float) -> None:
        self.bytes_per_second = bytes_per_second
        self._free_at = 0.0

    def wait_s(self, moved_bytes: int, now: float) -> float:
        """How long to wait after having moved bytes, read or written."""
        self._free_at = max(self._free_at, now) + moved_bytes / self.bytes_per_second
        return self._free_at - now

    def budget_bytes(self, most: int, seconds: float) -> int:
        """How much to move at once, so that waits stay short."""
        return max(1, int(min(float(most), self.bytes_per_second * seconds)))
