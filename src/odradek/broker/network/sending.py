"""Bounds what all connections together send in one turn of the loop. The rest is sent in the next turn.

A socket takes megabytes at once. A thousand peers that read as fast as they can must not make one turn of it.
Short replies do not ask. What is sent, and to whom, is not known here.
"""

from collections import deque
from collections.abc import Callable
from typing import Final

TURN_BYTES: Final = 8 << 20
"""About as long as a slice, 5 ms."""
PIECE_COST_BYTES: Final = 32 << 10
"""What a piece costs beside its bytes: a read of its own, and the calls around it."""


class SendingTurns:
    """`charge` what was sent; where nothing is `left`, `wait`."""

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
        """Have this called in a turn that has something left, behind those that wait already."""
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
