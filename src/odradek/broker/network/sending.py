"""Limits how much all connections together send in one turn of the loop.

A socket accepts megabytes at once. A thousand peers that read fast must not make one turn too long. Short
replies are not limited.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

TURN_BYTES: Final = 8 << 20
"""Takes about as long as a slice, 5 ms."""
PIECE_COST_BYTES: Final = 32 << 10
"""The cost of a piece besides its bytes: its read, and the calls around it."""


class SendingTurns:
    """`charge` the sent bytes. If nothing is `left`, call `wait`."""

    __slots__ = ("_call_soon", "_is_scheduled", "_waiting", "left")

    def __init__(self, call_soon: Callable[[Callable[[], None]], object]) -> None:
        self._call_soon = call_soon
        self._waiting: deque[Callable[[], None]] = deque()
        self._is_scheduled = False
        self.left = TURN_BYTES

    def charge(self, size: int, pieces: int) -> None:
        self.left -= size + PIECE_COST_BYTES * pieces
        self._schedule()

    def wait(self, go_on: Callable[[], None]) -> None:
        """Call this in a turn that has bytes left, after those that already wait."""
        self._waiting.append(go_on)
        self._schedule()

    def _schedule(self) -> None:
        if not self._is_scheduled:
            self._is_scheduled = True
            self._call_soon(self._turn)

    def _turn(self) -> None:
        self._is_scheduled = False
        self.left = TURN_BYTES
        for _ in range(len(self._waiting)):
            if self.left <= 0:
                break
            self._waiting.popleft()()
        if self._waiting:
            self._schedule()
