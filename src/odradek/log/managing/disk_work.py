"""DiskWork: work with files of logs in other threads. A stop waits for it before it closes the files."""

import asyncio
from collections.abc import Callable
from typing import Any, Final, TypeVar

from odradek.runtime.api import Runtime

T = TypeVar("T")

RETRY_S: Final = 1.0
"""The pause before a retry if descriptors or memory ran out."""


class DiskWork:
    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self.in_flight: dict[asyncio.Future[Any], None] = {}

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run work that a client may wait for."""
        return self._kept(self._runtime.offload(work))

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run long work that no client waits for."""
        return self._kept(self._runtime.in_background(work))

    def then(self, work: Callable[[], T], done: "Callable[[asyncio.Future[T]], None]") -> None:
        """`offload`, and call `done` with the result."""
        self.offload(work).add_done_callback(done)

    def _kept(self, future: "asyncio.Future[T]") -> "asyncio.Future[T]":
        self.in_flight[future] = None
        future.add_done_callback(self._landed)
        return future

    def _landed(self, future: "asyncio.Future[Any]") -> None:
        del self.in_flight[future]

    async def wait_for_one(self) -> None:
        """Yield to the loop, then wait for one piece of work. Its owner handles its error."""
        await asyncio.sleep(0)
        for future in self.in_flight:
            try:
                await future
            except OSError:
                pass
            break
