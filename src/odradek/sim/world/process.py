"""Process: a simulated process. A crash ends all of its code, and a pause stops all of it.

The context of tasks, timers and callbacks shows to which process their code belongs.
"""

import asyncio
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from odradek.sim.world.clock import Drift


class ProcessCrashed(BaseException):
    """Unwinds code of a crashed process. It is not an Exception, so that no handler of the node catches
    it."""


class Process:
    """One run of a node or client. After its death none of its code runs again.

    `fuse` is the number of system calls with an effect until `on_burnt` is called, which crashes the process
    in the middle of its work. None: no crash is planned.

    A process does not run while it is paused, nor until `busy_until_s` if one of its calls takes long. `held`
    has the callbacks that it would have run, in order.
    """

    __slots__ = (
        "_next_prune",
        "alive",
        "busy_until_s",
        "drift",
        "fuse",
        "has_crashed",
        "held",
        "is_paused",
        "is_still",
        "name",
        "on_burnt",
        "tasks",
    )

    def __init__(self, name: str, drift: Drift | None = None) -> None:
        self.name = name
        self.drift = drift or Drift()
        self.is_still = False
        self.is_paused = False
        self.busy_until_s = 0.0
        self.held: list[asyncio.Handle] = []
        self.alive = True
        self.has_crashed = False
        self.fuse: int | None = None
        self.on_burnt: Callable[[], None] | None = None
        self.tasks: list[asyncio.Task[Any]] = []
        self._next_prune = 256

    def check(self) -> None:
        """Called by every system call of the process."""
        if not self.alive:
            raise ProcessCrashed(self.name)

    def check_effect(self) -> None:
        """Called by every system call that changes something, before it does."""
        if self.fuse is not None:
            self.fuse -= 1
            if self.fuse < 0:
                self.fuse = None
                assert self.on_burnt is not None
                self.on_burnt()
        if not self.alive:
            raise ProcessCrashed(self.name)

    def adopt(self, task: "asyncio.Task[Any]") -> None:
        self.tasks.append(task)
        if len(self.tasks) > self._next_prune:
            self.tasks = self.living_tasks()
            self._next_prune = 2 * len(self.tasks) + 256

    def living_tasks(self) -> "list[asyncio.Task[Any]]":
        return [task for task in self.tasks if not task.done()]


CURRENT_PROCESS: ContextVar[Process | None] = ContextVar("odradek_sim_process", default=None)
