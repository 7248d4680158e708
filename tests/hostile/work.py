"""Counts the work of every callback of an event loop in this thread, in events of the profiler.

cProfile calls its timer once for each call and once for each return. A timer that only counts turns its times
into numbers of events. It costs little more than a profile function in Python, and shows where the events
happened.
"""

import asyncio
import cProfile
import itertools
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple, TypeVar

T = TypeVar("T")


class Callback(NamedTuple):
    """One callback that ran: what it was, its events, and its time on the processor under the profiler."""

    name: str
    events: int
    ms: float


NOTHING = Callback("nothing", 0, 0.0)


class Work:
    """What was done since `begin`. Work that a node gives to its pool is not the loop's: see `away`."""

    def __init__(self) -> None:
        self.ticks = itertools.count()
        self.away_events = 0
        self._profile: cProfile.Profile | None = None
        self.counts = False
        self.begin()

    def begin(self) -> None:
        """Forget what was counted."""
        self.total = 0
        self.worst = NOTHING
        self.longest = NOTHING
        self.busiest_turn = 0
        self._turn_began = 0
        if self._profile is not None:
            self._profile.clear()

    @property
    def now(self) -> int:
        """Events so far, of the loop and of nothing else."""
        return next(self.ticks) // 2 - self.away_events

    def away(self, work: Callable[[], T]) -> T:
        """Do work that a real node does in another thread: it costs the loop nothing."""
        before = self.now
        try:
            return work()
        finally:
            self.away_events += self.now - before

    def run(self, handle: asyncio.Handle, original: Callable[[asyncio.Handle], None]) -> None:
        """One callback of the loop."""
        if not self.counts:
            original(handle)
            return
        callback = handle._callback  # type: ignore[attr-defined]  # gone where it cancels itself
        began_s, before = time.thread_time(), self.now
        original(handle)
        events, ms = self.now - before, (time.thread_time() - began_s) * 1e3
        self.total += events
        if events > self.worst.events:
            self.worst = Callback(name_of(callback), events, ms)
        if ms > self.longest.ms:
            self.longest = Callback(name_of(callback), events, ms)

    def turned(self) -> None:
        """A turn of the loop is over."""
        self.busiest_turn = max(self.busiest_turn, self.total - self._turn_began)
        self._turn_began = self.total

    @contextmanager
    def counting(self) -> Iterator[None]:
        """Profile this thread."""
        profile = self._profile = cProfile.Profile(self.ticks.__next__, 1.0, subcalls=False)
        self.begin()
        self.counts = True
        profile.enable()
        try:
            yield
        finally:
            profile.disable()
            self.counts = False

    def busiest(self, count: int = 5) -> str:
        """The functions that most events were spent in, one a line."""
        assert self._profile is not None
        rows = sorted(self._profile.getstats(), key=lambda row: -row.inlinetime)[:count]
        return "\n".join(f"  {int(row.inlinetime) // 2:>9,} {_function(row.code)}" for row in rows)


@contextmanager
def every_callback(work: Work) -> Iterator[None]:
    """Let `work` run every callback of the loops of this process, for as long as the block takes."""
    original = asyncio.events.Handle._run  # type: ignore[attr-defined]

    def run(handle: asyncio.Handle) -> None:
        work.run(handle, original)

    asyncio.events.Handle._run = run  # type: ignore[attr-defined]
    try:
        yield
    finally:
        asyncio.events.Handle._run = original  # type: ignore[attr-defined]


def name_of(callback: Any) -> str:
    """The callback's function; of a task's step, the task's name and its coroutine."""
    while hasattr(callback, "func"):
        callback = callback.func
    owner = getattr(callback, "__self__", None)
    if isinstance(owner, asyncio.Task):
        coroutine: Any = owner.get_coro()
        return f"task {owner.get_name()!r} ({getattr(coroutine, '__qualname__', coroutine)})"
    return str(getattr(callback, "__qualname__", callback))


def _function(code: Any) -> str:
    if isinstance(code, str):
        return code
    return f"{code.co_filename.rpartition('/odradek/')[2]}:{code.co_firstlineno} {code.co_name}"
