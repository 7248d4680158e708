"""Receive buffers that connections share. A connection has one while a request is incomplete.

An idle connection has none, so thousands of them cost nothing. queued.max.request.bytes limits all buffers
together: above it a connection waits for its turn and is not read from. As in Apache Kafka, the last one
admitted may exceed the limit.
"""

import asyncio
from collections.abc import Callable

SMALL_BYTES = 256 * 1024
LARGE_BYTES = 2 * 1024 * 1024
KEEP_SMALL = 64
KEEP_LARGE = 8
NO_BOUND = -1


class BufferPool:
    """Free lists of two sizes. Larger buffers are made for one request and dropped.

    While `is_full`, no connection starts a request. Of the requests that outgrow their buffers only one
    continues: otherwise all of them could wait for each other.
    """

    __slots__ = (
        "_beginning",
        "_grower",
        "_growing",
        "_is_waking",
        "_large",
        "_most",
        "_small",
        "in_use",
        "is_full",
    )

    def __init__(self, most_bytes: int = NO_BOUND) -> None:
        self._small: list[bytearray] = []
        self._large: list[bytearray] = []
        self._most = most_bytes if most_bytes > 0 else NO_BOUND
        self._grower: object = None
        self._growing: dict[Callable[[], None], None] = {}
        self._beginning: dict[Callable[[], None], None] = {}
        self._is_waking = False
        self.in_use = 0
        self.is_full = False

    def take(self, size: int) -> bytearray:
        buffer: bytearray
        if size <= SMALL_BYTES:
            buffer = self._small.pop() if self._small else bytearray(SMALL_BYTES)
        elif size <= LARGE_BYTES:
            buffer = self._large.pop() if self._large else bytearray(LARGE_BYTES)
        else:
            buffer = bytearray(size)
        self.in_use += len(buffer)
        self.is_full = 0 <= self._most <= self.in_use
        return buffer

    def give(self, buffer: bytearray) -> None:
        if len(buffer) == SMALL_BYTES and len(self._small) < KEEP_SMALL:
            self._small.append(buffer)
        elif len(buffer) == LARGE_BYTES and len(self._large) < KEEP_LARGE:
            self._large.append(buffer)
        self.in_use -= len(buffer)
        if self._most >= 0:
            self._look()

    def drop(self, size: int) -> None:
        """A buffer of `size` bytes that a request took from the pool was freed."""
        self.in_use -= size
        if self._most >= 0:
            self._look()

    # --- waiting for room -----------------------------------------------------------------------------

    def may_grow(self, owner: object) -> bool:
        """Whether a request that outgrows its buffer may get a larger one. `grown` ends this."""
        if self.is_full and self._grower is not owner:
            if self._grower is not None:
                return False
            self._grower = owner
        return True

    def grown(self, owner: object) -> None:
        if self._grower is owner:
            self._grower = None
            self._look()

    def wait(self, on_room: Callable[[], None], *, to_grow: bool) -> None:
        """Call this from the loop when there may be room, in the order of waiting."""
        (self._growing if to_grow else self._beginning)[on_room] = None

    def forget(self, on_room: Callable[[], None]) -> None:
        self._growing.pop(on_room, None)
        self._beginning.pop(on_room, None)

    def _look(self) -> None:
        self.is_full = 0 <= self._most <= self.in_use
        if not self._is_waking and self._next_in_line():
            self._is_waking = True
            asyncio.get_running_loop().call_soon(self._wake)

    def _next_in_line(self) -> dict[Callable[[], None], None]:
        """The callbacks of which one may continue now. Started requests come before new ones."""
        if self._growing and (self._grower is None or not self.is_full):
            return self._growing
        return self._beginning if not self.is_full else {}

    def _wake(self) -> None:
        """Call one in each turn, while there is room."""
        self._is_waking = False
        line = self._next_in_line()
        if line:
            on_room = next(iter(line))
            del line[on_room]
            on_room()
            self._look()
