"""Work with the files of logs away from the event loop. A stop waits for it before it gives the files up."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from odradek.runtime.api import Runtime

T = TypeVar("T")

RETRY_S: Final = 1.0
"""When to try again what only lacked descriptors or memory."""


class DiskWork:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.in_flight: dict[asyncio.Future[Any], None] = {}

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do something that an answer may wait for."""
        return self._kept(self._runtime.offload(work))

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Do something long that no answer waits for."""
        return self._kept(self._runtime.in_background(work))

    def then(self, work: Callable[[], T], done: "Callable[[asyncio.Future[T]], None]") -> None:
        """`offload`, and call `done` with what came of it."""
        self.offload(work).add_done_callback(done)

    def _kept(self, future: "asyncio.Future[T]") -> "asyncio.Future[T]":
        self.in_flight[future] = None
        future.add_done_callback(self._landed)
        return future

    def _landed(self, future: "asyncio.Future[Any]") -> None:
        del self.in_flight[future]

    async def wait_for_one(self) -> None:
        """Give the loop a turn and wait for one piece of work. Its error is its owner's to look at."""
        await asyncio.sleep(0)
        for future in self.in_flight:
            try:
                await future
            except OSError:
                pass
            break
