"""SimLoop: an event loop with a virtual clock. It jumps to the next timer instead of waiting for it.

It has no sockets, no threads and no real time. Code runs in the order in which it was scheduled, so that one
seed gives one history. Callbacks and tasks of a dead process are dropped. Those of a paused process are held
back. Each process has its own clock for `time` and timers.
"""

import asyncio
import heapq
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, copy_context
from types import CoroutineType
from typing import Any, TypeVar, TypeVarTuple, Unpack

from odradek.sim.world.clock import Drift
from odradek.sim.world.process import CURRENT_PROCESS, Process, ProcessCrashed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TURN_SECONDS = 1e-5
"""The virtual time of a turn of the loop: code that spins makes time pass, as on a real machine."""
_MOST_WAITS = 100
"""How many times code that cleans up may wait."""


class SimulationStuck(Exception):
    """Nothing is ready, no timer is set, and the simulation is not over: something waits forever."""


class SimulationSpinning(Exception):
    """Too many turns: something loops forever."""


class _Handle(asyncio.Handle):
    """A callback that waits while its process is paused."""

    __slots__ = ()
    _loop: "SimLoop"

    def _run(self) -> None:
        if not self._loop.hold_back(self):
            super()._run()


class _Readiness(asyncio.Handle):
    """The callback of a ready socket. It is not held back: a socket that stays ready is reported again."""

    __slots__ = ()
    _loop: "SimLoop"

    def _run(self) -> None:
        if not self._loop.stands_still(self):
            super()._run()


class _Timer(asyncio.TimerHandle):
    """A timer on the clock of its process. The loop orders timers by `_when`, the time of the world."""

    __slots__ = ("due_s",)
    _loop: "SimLoop"
    _scheduled: bool
    _when: float
    due_s: float

    def when(self) -> float:
        return self.due_s

    def _run(self) -> None:
        if not self._loop.hold_back(self):
            super()._run()


class _Future(asyncio.Future[Any]):
    """Knows its process: nobody looks at what becomes of a future whose process crashed."""

    process: Process | None = None


class _Task(asyncio.Task[T]):
    """As above."""

    process: Process | None = None


class SimLoop(base_events.BaseEventLoop):
    _ready: "deque[asyncio.Handle]"
    _scheduled: list[asyncio.TimerHandle]
    _check_closed: Callable[[], None]

    def __init__(self, max_turns: int = 50_000_000) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self._hot: dict[int, asyncio.Handle] = {}
        self._still = 0
        """How many processes are paused."""
        self._clock_resolution = 1e-9
        self.turns = 0
        self.max_turns = max_turns
        self.after_turn: Callable[[], None] | None = None
        self.unhandled: list[str] = []
        self.set_exception_handler(_note_unhandled)

    def now(self) -> float:
        """The time of the world for the running code: after the stall of its process."""
        process = CURRENT_PROCESS.get()
        return self._now if process is None else max(self._now, process.busy_until_s)

    def time(self) -> float:
        """The steady clock of the running process; outside of processes, the time of the world."""
        process = CURRENT_PROCESS.get()
        if process is None:
            return self._now
        return process.drift.reading(max(self._now, process.busy_until_s))

    def change_rate(self, drift: Drift, rate: float) -> None:
        """Change the rate of a host's clocks. It applies to existing timers too."""
        drift.change(self._now, rate)
        for timer in self._scheduled:
            process = _process_of(timer)
            if process is not None and process.drift is drift:
                assert isinstance(timer, _Timer)
                timer._when = drift.moment(timer.due_s)
        heapq.heapify(self._scheduled)

    # -- pauses: the callbacks of a paused process are held back, in order

    def stall(self, process: Process, seconds: float) -> None:
        """Block a process for a while. For its running callback this time has passed."""
        assert seconds >= 0
        process.busy_until_s = max(self._now, process.busy_until_s) + seconds
        self._stand_still(process)
        self.call_at(process.busy_until_s, self._go_on, process, context=Context())

    def pause(self, process: Process) -> None:
        assert process.alive
        process.is_paused = True
        self._stand_still(process)

    def resume(self, process: Process) -> None:
        process.is_paused = False
        self._go_on(process)

    def hold_back(self, handle: asyncio.Handle) -> bool:
        """Hold back a callback if its process is paused. Returns whether it was."""
        if not self.stands_still(handle):
            return False
        process = _process_of(handle)
        assert process is not None
        process.held.append(handle)
        return True

    def stands_still(self, handle: asyncio.Handle) -> bool:
        """Whether the process of a callback is paused."""
        if not self._still:
            return False
        process = _process_of(handle)
        return process is not None and process.is_still

    def _stand_still(self, process: Process) -> None:
        if process.alive and not process.is_still:
            process.is_still = True
            self._still += 1

    def _go_on(self, process: Process) -> None:
        if process.is_still and not process.is_paused and process.busy_until_s <= self._now:
            process.is_still = False
            self._still -= 1
            # Before callbacks that became ready later, to keep the order of scheduling.
            self._ready.extendleft(reversed(process.held))
            process.held.clear()

    # -- readiness: what a selector reports, in every turn until it is cleared

    def set_hot(self, key: int, handle: asyncio.Handle) -> None:
        self._hot[key] = handle

    def clear_hot(self, key: int) -> None:
        self._hot.pop(key, None)

    def select(self, timeout: float | None) -> list[asyncio.Handle]:
        """The selector of BaseEventLoop: report what is ready, or jump to the next timer."""
        if self.after_turn is not None:
            self.after_turn()
        self.turns += 1
        if self.turns > self.max_turns:
            raise SimulationSpinning(f"{self.turns} turns at {self._now:.6f} s")
        hot = list(self._hot.values())
        if self._still:
            hot = [handle for handle in hot if not self.stands_still(handle)]
        if hot:
            self._now += TURN_SECONDS
            return hot
        if timeout is None:
            raise SimulationStuck(f"no event is left at {self._now:.6f} s")
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0]._when)  # type: ignore[attr-defined]
        else:
            self._now += TURN_SECONDS
        return []

    def _process_events(self, event_list: list[asyncio.Handle]) -> None:
        for handle in event_list:
            if not handle.cancelled():
                self._ready.append(handle)

    # -- scheduling: callbacks of a dead process are dropped here

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        handle = _Handle(callback, args, self, context)
        process = context.get(CURRENT_PROCESS)
        if process is None or process.alive:
            self._ready.append(handle)
        else:
            handle.cancel()
        return handle

    def readiness(self, callback: Callable[[], object]) -> asyncio.Handle:
        """A handle for `set_hot`, with the context of the running process."""
        return _Readiness(callback, (), self, copy_context())

    def call_soon_threadsafe(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """`when` is on the clock of the context's process."""
        self._check_closed()
        if context is None:
            context = copy_context()
        process = context.get(CURRENT_PROCESS)
        moment = when if process is None else process.drift.moment(when)
        timer = _Timer(moment, callback, args, self, context)
        timer.due_s = when
        heapq.heappush(self._scheduled, timer)
        timer._scheduled = True
        if process is not None and not process.alive:
            timer.cancel()
        return timer

    def create_future(self) -> "asyncio.Future[Any]":
        future = _Future(loop=self)
        future.process = CURRENT_PROCESS.get()
        return future

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        task = _Task(coro, loop=self, name=None if name is None else str(name), context=context)
        process = CURRENT_PROCESS.get() if context is None else context.get(CURRENT_PROCESS)
        if process is not None:
            task.process = process
            process.adopt(task)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        raise AssertionError("threads are not reproducible: use runtime.offload")

    def kill(self, process: Process) -> None:
        """Drop all callbacks and tasks of a process without its cleanup. May be called from within it."""
        process.alive = False
        for handle in [*self._ready, *self._scheduled, *process.held]:
            if _process_of(handle) is process:
                handle.cancel()
        process.held.clear()
        if process.is_still:
            process.is_still = False
            self._still -= 1
        self.call_soon(self._bury, process, context=Context())

    def _bury(self, process: Process) -> None:
        """Close the coroutines of a dead process now and in order, not when the garbage collector finds them.

        Their `finally` blocks run with a runtime that refuses every call, so they change nothing. A task that
        such a block makes belongs to the dead process, and never runs.
        """
        context = Context()
        context.run(CURRENT_PROCESS.set, process)
        while process.tasks:
            tasks, process.tasks = process.living_tasks(), []
            for task in tasks:
                task._log_destroy_pending = False  # type: ignore[attr-defined]
                context.run(_close, task.get_coro())


def _close(coro: Any) -> None:
    """From the inside out. A `finally` that waits again refuses to end (RuntimeError): it is told once
    more."""
    for _ in range(_MOST_WAITS):
        inner, waits_for = coro, getattr(coro, "cr_await", None)
        while isinstance(waits_for, CoroutineType) and waits_for.cr_frame is not None:
            inner, waits_for = waits_for, waits_for.cr_await
        try:
            inner.close()
        except (ProcessCrashed, RuntimeError):
            continue
        if inner is coro:
            return


def _process_of(handle: asyncio.Handle) -> Process | None:
    return handle._context.get(CURRENT_PROCESS)  # type: ignore[attr-defined,no-any-return]


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    process = getattr(context.get("future"), "process", None)
    if isinstance(error, ProcessCrashed) or (process is not None and process.has_crashed):
        return
    assert isinstance(loop, SimLoop)
    loop.unhandled.append(f"{context.get('message')}: {error!r}")
