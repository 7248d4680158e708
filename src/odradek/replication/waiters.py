"""Requests that wait for a partition: produces for the high watermark, fetches for data."""

import asyncio
import heapq
from collections.abc import Callable
from typing import Protocol

from odradek.core.errors import ErrorCode, KafkaError
from odradek.runtime.slices import Paced, Slices

Done = Callable[[KafkaError | None], None]

WOKEN_TOGETHER = 16
LOOK_CALLS = 120


class CommitWaiters:
    """Callbacks, ordered by the high watermark that they wait for."""

    __slots__ = ("_heap", "_sequence")

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Done]] = []
        self._sequence = 0

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, offset: int, done: Done) -> None:
        """Call `done` when the high watermark is at least `offset`, or with the error that ended the wait."""
        assert offset >= 0
        self._sequence += 1
        heapq.heappush(self._heap, (offset, self._sequence, done))

    def release(self, high_watermark: int) -> None:
        heap = self._heap
        while heap and heap[0][0] <= high_watermark:
            heapq.heappop(heap)[2](None)

    def fail(self, code: ErrorCode) -> None:
        waiting, self._heap = self._heap, []
        for _, _, done in sorted(waiting, key=lambda entry: entry[:2]):
            done(KafkaError(code))


class FetchWaiter(Protocol):
    """A fetch that does not have enough data to answer yet."""

    def poke(self) -> None:
        """The partition changed: read again soon."""
        ...

    def look(self) -> None:
        """Read again now."""
        ...


class FetchWaiters:
    """Fetches that wait for one partition. A few are woken at once, many in slices."""

    __slots__ = ("_again", "_slices", "_waking", "waiting")

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self.waiting: dict[FetchWaiter, None] = {}
        self._waking = False
        self._again = False  # the partition moved while they were being woken

    def add(self, waiter: FetchWaiter) -> None:
        self.waiting[waiter] = None

    def remove(self, waiter: FetchWaiter) -> None:
        self.waiting.pop(waiter, None)

    def wake(self) -> None:
        if self._waking:
            self._again = True
        elif len(self.waiting) <= WOKEN_TOGETHER:
            for waiter in self.waiting:
                waiter.poke()
        else:
            self._waking = True
            self._slices.run(self._wake_all(), own=True)

    def _wake_all(self) -> Paced[None]:
        yield self._slices.short_calls  # nothing of it runs in the call that changed the partition
        while True:
            self._again = False
            for waiter in list(self.waiting):
                if waiter in self.waiting:
                    waiter.look()
                    yield LOOK_CALLS
            if not self._again:
                break
        assert self._waking
        self._waking = False


def future_of(waiters: CommitWaiters, offset: int, timeout_ms: int | None) -> "asyncio.Future[None]":
    """A wait as a future. It fails with REQUEST_TIMED_OUT after the timeout."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[None] = loop.create_future()

    def done(error: KafkaError | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(None)
        else:
            future.set_exception(error)

    waiters.add(offset, done)
    if timeout_ms is not None:
        timer = loop.call_later(timeout_ms / 1000, done, KafkaError(ErrorCode.REQUEST_TIMED_OUT))
        future.add_done_callback(lambda _: timer.cancel())
    return future
