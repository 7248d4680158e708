"""Runs long work in slices, so that work that grows with a request or with the cluster does not block the
loop.

Work is a generator. After each step it yields about how many Python calls the step made. Other code may run
between two steps, so the work must check again what may have changed. Short work ends at once. All other work
shares one slice per turn of the loop, round robin: a thousand long requests delay a short one no more than
one long request does.
"""

import asyncio
from collections import deque
from collections.abc import Generator
from typing import Any, Final, TypeAlias, TypeVar

from odradek.runtime.reply import Reply

T = TypeVar("T")

Paced: TypeAlias = Generator[int, None, T]
"""Yields what each step cost, in Python calls; returns the result."""

SLICE_CALLS: Final = 10_000
"""The share of long work in one turn of the loop: about 5 ms. Work of a tenth of it is short and ends at
once."""

FEW: Final = 3
"""The cost of a step that only looks at an entry."""
STEP: Final = 20
"""The cost of a step that makes one or two rows of an answer."""


GATHERED: Final = 100
"""`gathered` yields after this many calls: resuming a generator after every small step has a cost too."""


def gathered(work: Paced[T]) -> Paced[T]:
    """The same work in larger steps, for generators that are nested deeply."""
    calls = 0
    while True:
        try:
            calls += 1 + work.send(None)
        except StopIteration as done:
            yield calls
            result: T = done.value
            return result
        if calls > GATHERED:
            yield calls
            calls = 0


def at_once(work: Paced[T]) -> T:
    """Run the work to its end, however long it takes."""
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result


class Slices:
    """Runs work. The node's own work and the work of its clients alternate."""

    __slots__ = (
        "_is_scheduled",
        "_of_clients",
        "_of_node",
        "_turn_of_node",
        "few_entries",
        "short_bytes",
        "short_calls",
        "slice_calls",
    )

    def __init__(self, slice_calls: int = SLICE_CALLS, short_calls: int | None = None) -> None:
        self.resize(slice_calls, short_calls)
        self._of_clients: deque[tuple[Paced[Any], asyncio.Future[Any]]] = deque()
        self._of_node: deque[tuple[Paced[Any], asyncio.Future[Any]]] = deque()
        self._turn_of_node = False
        self._is_scheduled = False

    def resize(self, slice_calls: int, short_calls: int | None = None) -> None:
        """Change the size of a slice, and with it what counts as short."""
        self.slice_calls = slice_calls
        self.short_calls = slice_calls // 10 if short_calls is None else short_calls
        self.short_bytes = slice_calls // 4  # decoded at once: an entry takes a few bytes
        self.few_entries = slice_calls // 100  # partitions that are read or written at once

    def run(self, work: Paced[T], *, own: bool = False) -> Reply[T]:
        """Begin work, and finish it now if it is short. `own` work is the node's, not a client's."""
        left = self.short_calls
        try:
            while left > 0:
                left -= work.send(None)
        except StopIteration as done:
            return Reply(done.value)
        except Exception as e:
            return Reply.failed(e)
        loop = asyncio.get_running_loop()
        future: asyncio.Future[T] = loop.create_future()
        (self._of_node if own else self._of_clients).append((work, future))
        if not self._is_scheduled:
            self._is_scheduled = True
            loop.call_soon(self._turn)
        return Reply.later(future)

    def pacer(self) -> "Pacer":
        """A Pacer for a coroutine whose work may be long."""
        return Pacer(self)

    def _turn(self) -> None:
        """Run one slice of the next work in turn."""
        self._turn_of_node = not self._turn_of_node
        queue = self._of_node if self._turn_of_node else self._of_clients
        if not queue:
            queue = self._of_clients if self._turn_of_node else self._of_node
        work, future = queue.popleft()
        if future.cancelled():
            work.close()
        elif not self._advance(work, future):
            queue.append((work, future))
        if self._of_clients or self._of_node:
            asyncio.get_running_loop().call_soon(self._turn)
        else:
            self._is_scheduled = False

    def _advance(self, work: Paced[T], future: "asyncio.Future[T]") -> bool:
        """Run one slice of the work. Returns whether the work has ended."""
        left = self.slice_calls
        try:
            while left > 0:
                left -= work.send(None)
        except StopIteration as done:
            future.set_result(done.value)
        except Exception as e:
            future.set_exception(e)
        else:
            return False
        return True


class Pacer:
    """`await pace(calls)` after each step of a coroutine returns at once, or when it is its turn again."""

    __slots__ = ("_left", "_slices")

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self._left = slices.short_calls

    async def __call__(self, calls: int) -> None:
        self._left -= calls
        if self._left < 0:
            await self._slices.run(self._next_turn())
            self._left = self._slices.slice_calls

    def _next_turn(self) -> Paced[None]:
        yield self._slices.short_calls
