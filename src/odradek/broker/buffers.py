"""Receive buffers that connections share: taken while a request is incomplete, given back after it.

An idle connection owns none, so thousands of them cost nothing; a busy one keeps its own.
"""

SMALL_BYTES = 256 * 1024
LARGE_BYTES = 2 * 1024 * 1024
KEEP_SMALL = 64
KEEP_LARGE = 8


class BufferPool:
    """Free lists of two sizes. Larger buffers are made for one request and dropped."""

    __slots__ = ("_large", "_small")

    def __init__(self) -> None:
        self._small: list[bytearray] = []
        self._large: list[bytearray] = []

    def take(self, size: int) -> bytearray:
        if size <= SMALL_BYTES:
            return self._small.pop() if self._small else bytearray(SMALL_BYTES)
        if size <= LARGE_BYTES:
            return self._large.pop() if self._large else bytearray(LARGE_BYTES)
        return bytearray(size)

    def give(self, buffer: bytearray) -> None:
        if len(buffer) == SMALL_BYTES and len(self._small) < KEEP_SMALL:
            self._small.append(buffer)
        elif len(buffer) == LARGE_BYTES and len(self._large) < KEEP_LARGE:
            self._large.append(buffer)
