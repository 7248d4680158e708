"""Logs in log directories, with work that leaves the loop only when a test lets it."""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from odradek.core.types import TopicPartition
from odradek.log.checkpoints import parse_offsets
from odradek.log.log import Log
from odradek.log.managing.checkpointing import Checkpointer
from odradek.log.managing.disk_work import DiskWork
from odradek.log.managing.flushing import Flusher
from odradek.log.managing.log_dirs import LogDirs
from odradek.log.managing.truncating import Truncations
from odradek.runtime.slices import Slices
from tests.unit.log.support import LogRuntime, config

T = TypeVar("T")


class HeldRuntime(LogRuntime):
    """Holds what was offloaded, in order."""

    def __init__(self) -> None:
        super().__init__()
        self.held: deque[tuple[asyncio.Future[Any], Callable[[], Any]]] = deque()

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.held.append((future, work))
        return future

    in_background = for_quorum = offload

    async def run_next(self) -> None:
        """Run the oldest work and let its owner hear of it."""
        future, work = self.held.popleft()
        try:
            future.set_result(work())
        except OSError as e:
            future.set_exception(e)
        await turn()


async def turn() -> None:
    """Let all that is ready on the loop happen."""
    for _ in range(5):
        await asyncio.sleep(0)


class Dirs:
    """Two log directories and what keeps their logs durable."""

    def __init__(self, path: Path) -> None:
        self.runtime = HeldRuntime()
        self.held = self.runtime.held
        self.paths = [path / "one", path / "two"]
        for directory in self.paths:
            directory.mkdir()
        self.dirs = LogDirs(self.runtime.disk, [str(directory) for directory in self.paths])
        self.work = DiskWork(self.runtime)
        self.checkpointer = Checkpointer(self.runtime.disk, self.dirs, self.work, Slices())
        self.flusher = Flusher(self.dirs, self.work, self.checkpointer)
        self.truncations = Truncations(self.dirs, self.work, self.checkpointer)

    def log(self, name: str = "a", directory: int = 0, **changes: int) -> Log:
        """A new log, wired as the manager does it."""
        tp = TopicPartition(name, 0)
        path = f"{self.paths[directory]}/{tp}"
        log = Log.open(self.runtime, path, tp, uuid.UUID(int=1), config(**changes))
        log.partition_dir.on_failed = self.dirs.log_failed
        log.roller.on_rolled = log.settling.on_flush_due = self.flusher.flush_soon
        log.truncator.on_truncated = self.checkpointer.truncated
        log.truncator.beside = self.truncations.begin
        self.dirs.logs[tp] = log
        return log

    def checkpoint(self, name: str, directory: int = 0) -> dict[str, int]:
        content = (self.paths[directory] / name).read_bytes()
        return {str(tp): offset for tp, offset in parse_offsets(content).items()}
