"""An event loop whose clock is a number: it jumps to the next timer instead of waiting for it.

No sockets, no threads, no real time. Code runs in the order in which it was scheduled, so that one seed gives
one history. Callbacks and tasks of a dead process are dropped wherever they would be scheduled or run.
"""

import asyncio
from asyncio import base_events
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from concurrent.futures import Executor
from contextvars import Context, copy_context
from typing import Any, TypeVar, TypeVarTuple, Unpack

from odradek.sim.world.process import CURRENT_PROCESS, Process, ProcessCrashed

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

TURN_SECONDS = 1e-5
"""What a turn of the loop costs: code that spins makes time pass, as it does on a machine."""


class SimulationStuck(Exception):
    """Nothing is ready, no timer is set and the simulation is not over: something waits for ever."""


class SimulationSpinning(Exception):
    """More turns than any sane run needs: something goes round without end."""


class SimLoop(base_events.BaseEventLoop):
    _ready: "deque[asyncio.Handle]"
    _scheduled: list[asyncio.TimerHandle]

    def __init__(self, max_turns: int = 50_000_000) -> None:
        super().__init__()
        self._now = 0.0
        self._selector = self
        self._hot: dict[int, asyncio.Handle] = {}
        self._clock_resolution = 1e-9
        self.turns = 0
        self.max_turns = max_turns
        self.after_turn: Callable[[], None] | None = None
        self.unhandled: list[str] = []
        self.set_exception_handler(_note_unhandled)

    def time(self) -> float:
        return self._now

    def stall(self, seconds: float) -> None:
        """Let time pass inside the running callback, as a slow system call does."""
        self._now += seconds

    # -- readiness: what a selector would report, again every turn until it is cleared

    def set_hot(self, key: int, handle: asyncio.Handle) -> None:
        self._hot[key] = handle

    def clear_hot(self, key: int) -> None:
        self._hot.pop(key, None)

    def select(self, timeout: float | None) -> list[asyncio.Handle]:
        """The selector's part in a turn of BaseEventLoop: report what is ready, or jump to the next timer."""
        if self.after_turn is not None:
            self.after_turn()
        self.turns += 1
        if self.turns > self.max_turns:
            raise SimulationSpinning(f"{self.turns} turns at {self._now:.6f} s")
        if self._hot:
            self._now += TURN_SECONDS
            return list(self._hot.values())
        if timeout is None:
            raise SimulationStuck(f"nothing can happen any more at {self._now:.6f} s")
        if timeout > 0:
            self._now = max(self._now, self._scheduled[0].when())
        else:
            self._now += TURN_SECONDS
        return []

    def _process_events(self, event_list: list[asyncio.Handle]) -> None:
        for handle in event_list:
            if not handle.cancelled():
                self._ready.append(handle)

    # -- scheduling: what belongs to a dead process is dropped here

    def call_soon(
        self, callback: Callable[[Unpack[Ts]], object], *args: *Ts, context: Context | None = None
    ) -> asyncio.Handle:
        if context is None:
            context = copy_context()
        handle = asyncio.Handle(callback, args, self, context)
        process = context.get(CURRENT_PROCESS)
        if process is None or process.alive:
            self._ready.append(handle)
        else:
            handle.cancel()
        return handle

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
        if context is None:
            context = copy_context()
        timer = super().call_at(when, callback, *args, context=context)
        process = context.get(CURRENT_PROCESS)
        if process is not None and not process.alive:
            timer.cancel()
        return timer

    def create_task(
        self,
        coro: Coroutine[Any, Any, T] | Generator[Any, None, T],
        *,
        name: object = None,
        context: Context | None = None,
    ) -> "asyncio.Task[T]":
        task = asyncio.Task(coro, loop=self, name=None if name is None else str(name), context=context)
        process = CURRENT_PROCESS.get() if context is None else context.get(CURRENT_PROCESS)
        if process is not None:
            process.adopt(task)
        return task

    def run_in_executor(
        self, executor: Executor | None, func: Callable[[Unpack[Ts]], T], *args: *Ts
    ) -> "asyncio.Future[T]":
        raise AssertionError("threads are not reproducible: use runtime.offload")

    def kill(self, process: Process) -> None:
        """Drop everything of a process without running its cleanup. May be called from within it."""
        process.alive = False
        for handle in [*self._ready, *self._scheduled]:
            if handle._context.get(CURRENT_PROCESS) is process:  # type: ignore[attr-defined]
                handle.cancel()
        self.call_soon(self._bury, process, context=Context())

    def _bury(self, process: Process) -> None:
        """Close the coroutines of a dead process now and in order, rather than whenever they are collected.

        Their `finally` blocks run against a runtime that refuses every call, so they change nothing.
        """
        for task in process.living_tasks():
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            try:
                task.get_coro().close()
            except (ProcessCrashed, RuntimeError):
                continue
        process.tasks.clear()


def _note_unhandled(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
    error = context.get("exception")
    if isinstance(error, ProcessCrashed):
        return
    assert isinstance(loop, SimLoop)
    loop.unhandled.append(f"{context.get('message')}: {error!r}")
