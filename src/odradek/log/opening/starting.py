"""Opens the logs of a directory at a node's start, several at a time, and counts the progress.

loader.py opens a single log.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.types import METADATA_TOPIC, TopicPartition
from odradek.log import names
from odradek.log.files import FilePool
from odradek.log.log import Log
from odradek.log.managing.log_dir import LogDir
from odradek.log.opening.steps import Steps, run_beside
from odradek.runtime.api import Disk, Runtime
from odradek.runtime.scope import Scope

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

_LOGS_PER_TURN: Final = 16
_GB: Final = 1_000_000_000


class FoundLog(NamedTuple):
    """A log that is not open yet: `steps` open it."""

    topic_partition: TopicPartition
    steps: Steps[Log]
    is_deleted: bool


class Recovery:
    """The progress of the recovery of logs that were not closed cleanly."""

    __slots__ = ("logs", "logs_done", "on_progress", "size_bytes", "size_bytes_done")

    def __init__(self) -> None:
        self.logs = self.logs_done = 0
        self.size_bytes = self.size_bytes_done = 0
        self.on_progress: Callable[[], None] | None = None

    def __str__(self) -> str:
        done, size = self.size_bytes_done / _GB, self.size_bytes / _GB
        digits = 1 if size < 10 else 0
        return f"recovered {self.logs_done} of {self.logs} partitions, {done:.1f} of {size:.{digits}f} GB"

    def expect(self, size_bytes: int) -> None:
        self.logs += 1
        self.size_bytes += size_bytes

    def read(self, size_bytes: int) -> None:
        self.size_bytes_done += size_bytes
        self._tell()

    def opened(self) -> None:
        self.logs_done += 1
        self._tell()

    def _tell(self) -> None:
        if self.on_progress is not None:
            self.on_progress()


def find_logs(
    runtime: Runtime,
    pool: FilePool,
    directory: LogDir,
    topic_config: "Callable[[str], TopicConfig]",
    producer_id_expiration_ms: int,
    recovery: Recovery,
) -> list[FoundLog]:
    """The logs of a directory, not opened yet. After this the directory counts as not cleanly closed."""
    clean = directory.take_clean_shutdown()
    recovery_points = directory.read_offsets(names.RECOVERY_POINT_CHECKPOINT, expected=clean)
    log_starts = directory.read_offsets(names.LOG_START_CHECKPOINT, expected=clean)
    high_watermarks = directory.read_offsets(names.HIGH_WATERMARK_CHECKPOINT, expected=clean)
    cleaned = directory.read_offsets(names.CLEANER_CHECKPOINT)
    configs: dict[str, TopicConfig] = {}
    found = []
    for name, tp, suffix in directory.partition_dirs():
        if tp.topic == METADATA_TOPIC:
            continue
        path = f"{directory.path}/{name}"
        if suffix in (names.STRAY_DIR_SUFFIX, names.FUTURE_DIR_SUFFIX):
            _log.warning("Skipping %s: its suffix marks it as set aside", path)
            continue
        config = configs.get(tp.topic)
        if config is None:
            config = configs[tp.topic] = topic_config(tp.topic)
        recovery_point = recovery_points.get(tp, 0)
        if not clean:
            recovery.expect(_bytes_from(runtime.disk, path, recovery_point))
        steps = Log.opening(
            runtime,
            path,
            tp,
            None,
            config,
            recovery_point=recovery_point,
            log_start_offset=log_starts.get(tp, 0),
            high_watermark=high_watermarks.get(tp, 0),
            cleaned_offset=cleaned.get(tp),
            clean_shutdown=clean,
            producer_id_expiration_ms=producer_id_expiration_ms,
            pool=pool,
            progress=None if clean else recovery.read,
        )
        if not clean:
            steps = _counted(steps, recovery)
        found.append(FoundLog(tp, steps, is_deleted=suffix == names.DELETE_DIR_SUFFIX))
    return found


def _bytes_from(disk: Disk, path: str, recovery_point: int) -> int:
    """The size of the segments that recovery will read."""
    logs = {
        offset: name
        for name in disk.listdir(path)
        if name.endswith(names.LOG_SUFFIX) and (offset := names.offset_of(name)) is not None
    }
    first = max((offset for offset in logs if offset <= recovery_point), default=0)
    return sum(disk.stat(f"{path}/{name}").size for offset, name in logs.items() if offset >= first)


def _counted(steps: Steps[Log], recovery: Recovery) -> Steps[Log]:
    log = yield from steps
    recovery.opened()
    return log


async def open_logs(runtime: Runtime, found: Sequence[FoundLog], at_a_time: int) -> list[Log]:
    """Open logs, `at_a_time` at a time, with their steps in other threads. Returns them in the same order."""
    opened: dict[int, Log] = {}
    waiting = deque(enumerate(found))

    async def work() -> None:
        while waiting:
            index, log = waiting.popleft()
            opened[index] = await run_beside(runtime, log.steps)
            if index % _LOGS_PER_TURN == 0:
                await asyncio.sleep(0)

    async with Scope() as scope:
        for _ in range(min(at_a_time, len(found))):
            scope.spawn(work())
        await scope.join()
    return [opened[index] for index in range(len(found))]
