"""Long work in slices: what grows with a request, or with the cluster, does not hold up the loop.

Work is a generator. After each step it yields about how many Python calls the step made; between two steps
others may run, so whoever writes it says there what is looked at again. Short work ends where it begins. All
work that does not shares one slice for each turn of the loop, in turns: a thousand requests that take long
delay a short one no more than one does.
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
"""What one turn of the loop gives to long work: about 5 ms. A tenth of it is short: done where it begins."""

FEW: Final = 3
"""What a step costs that looks at an entry and no more."""
STEP: Final = 20
"""What a step costs that makes a row of an answer, or two."""


GATHERED: Final = 100
"""Calls that are told of together: to be asked again after each step of a few is work in itself."""


def gathered(work: Paced[T]) -> Paced[T]:
    """The same work in larger steps, for whoever is far from those that run it."""
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
    """The result, however long it takes."""
    while True:
        try:
            work.send(None)
        except StopIteration as done:
            result: T = done.value
            return result


class Slices:
    """Runs work. The node's own work and that of its clients take turns."""

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
        """Make slices of another size, and what counts as short with them."""
        self.slice_calls = slice_calls
        self.short_calls = slice_calls // 10 if short_calls is None else short_calls
        self.short_bytes = slice_calls // 4  # what is decoded in one go: an entry takes a few bytes
        self.few_entries = slice_calls // 100  # partitions that are read or written in one go

    def run(self, work: Paced[T], *, own: bool = False) -> Reply[T]:
        """Begin work, and end it now if it is short. `own` work is the node's, not one client's."""
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
        """For a coroutine whose work may be long."""
        return Pacer(self)

    def _turn(self) -> None:
        """One slice, of whoever's turn it is."""
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
        """Whether the work is over."""
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
    """`await pace(calls)` after each step of a coroutine: it goes on at once, or when its turn comes."""

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
