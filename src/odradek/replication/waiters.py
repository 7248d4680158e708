"""Requests that wait for a partition: produces for the high watermark, fetches for data."""

import asyncio
import heapq
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol, TypeAlias

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.parts.bounds import Bounds, Isolation
from odradek.runtime.slices import FEW, Paced, Slices

if TYPE_CHECKING:
    from odradek.replication.fetch_sessions import PartitionFetch

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

    def end_wait(self) -> None:
        """Answer soon with what there is."""
        ...


class FetchWatch:
    """The partitions of a fetch session that changed since they were read, and the fetch that waits for them.

    A fetch without a session has a watch of its own while it waits.
    """

    __slots__ = ("dirty", "fetch", "isolation")

    def __init__(self, isolation: Isolation = Isolation.HIGH_WATERMARK) -> None:
        self.isolation = isolation
        self.dirty: dict[PartitionFetch, None] = {}
        self.fetch: FetchWaiter | None = None


Watches: TypeAlias = "dict[FetchWatch, PartitionFetch]"


class FetchWaiters:
    """Who watches one partition since it was read: followers its log end, consumers its high watermark, those
    that read committed transactions its last stable offset.

    A change marks the partition as dirty in each watch, and ends the watch: it begins again with the next
    read. So a change costs nothing for sessions that nobody uses any more. A few waiting fetches are poked at
    once, many in slices.
    """

    __slots__ = ("_again", "_slices", "_stable", "_waking", "committed", "consumers", "followers")

    def __init__(self, slices: Slices) -> None:
        self._slices = slices
        self.followers: Watches = {}
        self.consumers: Watches = {}
        self.committed: Watches = {}
        self._stable = -1  # the last stable offset that was told
        self._waking = False
        self._again: Watches = {}  # changes while fetches are being woken

    @property
    def waiting(self) -> list[FetchWatch]:
        """The watches with a fetch that waits."""
        watches = [*self.followers, *self.consumers, *self.committed]
        return [watch for watch in watches if watch.fetch is not None]

    def add(self, watch: FetchWatch, fetch: "PartitionFetch") -> None:
        """The next change marks `fetch`, which is the partition in this watch."""
        if watch.isolation is Isolation.LOG_END:
            self.followers[watch] = fetch
        elif watch.isolation is Isolation.HIGH_WATERMARK:
            self.consumers[watch] = fetch
        else:
            self.committed[watch] = fetch

    def remove(self, watch: FetchWatch) -> None:
        for watches in (self.followers, self.consumers, self.committed):
            watches.pop(watch, None)

    # --- changes --------------------------------------------------------------------------------------

    def wake(self) -> None:
        """Anything may have changed: role, log start, configuration."""
        watches = {**self.followers, **self.consumers, **self.committed}
        self.followers, self.consumers, self.committed = {}, {}, {}
        self._stable = -1
        if watches:
            self._tell(watches)

    def log_end_moved(self) -> None:
        watches, self.followers = self.followers, {}
        self._tell(watches)

    def high_watermark_moved(self, bounds: Bounds) -> None:
        """Followers hear of it with the next answer, as in Apache. They need not be answered for it."""
        for watch, fetch in self.followers.items():
            watch.dirty[fetch] = None
        if self.consumers:
            watches, self.consumers = self.consumers, {}
            self._tell(watches)
        if self.committed:
            stable, told = bounds.last_stable_offset, self._stable
            self._stable = stable
            if stable != told:
                watches, self.committed = self.committed, {}
                self._tell(watches)
            else:
                for watch, fetch in self.committed.items():
                    watch.dirty[fetch] = None

    def _tell(self, watches: Watches) -> None:
        for watch, fetch in watches.items():
            watch.dirty[fetch] = None
        if self._waking:
            self._again.update(watches)
        elif len(watches) <= WOKEN_TOGETHER:
            for watch in watches:
                if watch.fetch is not None:
                    watch.fetch.poke()
        else:
            self._waking = True
            self._again = watches
            self._slices.run(self._wake_all(), own=True)

    def _wake_all(self) -> Paced[None]:
        yield self._slices.short_calls  # nothing of it runs in the call that changed the partition
        while self._again:
            watches, self._again = self._again, {}
            for watch in watches:
                if watch.fetch is not None:
                    watch.fetch.look()
                    yield LOOK_CALLS
                else:
                    yield FEW
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
