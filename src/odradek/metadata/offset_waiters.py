"""OffsetWaiters: futures that wait until an offset of the metadata log is committed or applied."""

import asyncio
from bisect import insort
from collections import deque
from operator import itemgetter

from odradek.core.errors import KafkaError

_offset = itemgetter(0)


class OffsetWaiters:
    """Futures in the order of their offsets."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: deque[tuple[int, asyncio.Future[None]]] = deque()

    def wait(self, offset: int) -> "asyncio.Future[None]":
        """Done when `release` reaches the offset."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        insort(self._waiting, (offset, done), key=_offset)  # offsets of long decisions may come out of order
        return done

    def release(self, offset: int) -> None:
        """Resolve all waits for offsets up to this one."""
        while self._waiting and self._waiting[0][0] <= offset:
            _, waiter = self._waiting.popleft()
            if not waiter.done():
                waiter.set_result(None)

    def fail(self, first_offset: int, failure: KafkaError) -> None:
        """Fail all waits for this offset or later ones."""
        while self._waiting and self._waiting[-1][0] >= first_offset:
            _, waiter = self._waiting.pop()
            if not waiter.done():
                waiter.set_exception(failure)
