"""A node's logs on a real disk, filled, stopped, damaged and read again by the tests of storage."""

import asyncio
import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.log.log import AppendInfo, Isolation, Log
from odradek.log.lookup import BatchSearch
from odradek.log.manager import LogManager
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import iter_batches
from odradek.records.check import CheckedRecords
from tests.unit.log.support import (
    NOW_MS,
    FaultyDisk,
    LogRuntime,
    append,
    batch,
    config,
    idempotent,
    marker,
    transactional,
)

ORDERS, OTHER, TXN = TopicPartition("orders", 0), TopicPartition("other", 0), TopicPartition("txn", 0)
IDS = {ORDERS: uuid.UUID(int=1), OTHER: uuid.UUID(int=2), TXN: uuid.UUID(int=3)}
SIZE = len(batch().buffer)
CONFIG = config(segment_bytes=4 * SIZE, index_interval_bytes=SIZE // 2, segment_index_bytes=480)
ALL = list(range(12))
TXN_CONFIG = config(segment_bytes=600, index_interval_bytes=100)


class Done:
    """The future of work that was done at once."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work()

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        callback(self)

    def result(self) -> Any:
        return self._work

    def __await__(self) -> Iterator[Any]:
        return iter(())


class UnsyncedDisk(FaultyDisk):
    """A real disk, in no hurry: here nothing loses its power."""

    __slots__ = ()

    def fsync(self, fd: int) -> None:
        pass

    fdatasync = fsync

    def fsync_dir(self, path: str) -> None:
        pass


class Runtime(LogRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.disk = UnsyncedDisk()

    def offload(self, work: Callable[[], Any]) -> Any:
        return Done(work)


class Node:
    """The logs of a log directory, started and stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runtime = Runtime()
        self.start()

    def start(self) -> None:
        self.manager = LogManager(self.runtime, [str(self.path)])
        self.manager.open()
        self.manager.load(lambda topic: TXN_CONFIG if topic == "txn" else CONFIG)
        for tp, topic_id in IDS.items():
            log = self.manager.get_or_create(tp, topic_id, TXN_CONFIG if tp is TXN else CONFIG)
            log.advance_high_watermark(log.log_end_offset)

    def stop(self, *, clean: bool) -> None:
        asyncio.run(self.manager.close(clean=clean))

    def log(self, tp: TopicPartition) -> Log:
        return self.manager.logs[tp]

    def file(self, base: int, suffix: str, tp: TopicPartition = ORDERS) -> Path:
        return self.path / str(tp) / f"{base:020d}{suffix}"


def fill(node: Node) -> None:
    """On a loop: what a roll has flushed is flushed when its turn is over."""
    asyncio.run(_fill(node))


def append_on_loop(log: Log, *sets: CheckedRecords, epoch: int = 0) -> list[AppendInfo]:
    async def work() -> list[AppendInfo]:
        return append(log, *sets, epoch=epoch)

    return asyncio.run(work())


async def _fill(node: Node) -> None:
    for i in range(12):
        for tp in (ORDERS, OTHER):
            append(node.log(tp), batch(timestamp=NOW_MS + i), epoch=i // 6)
    log = node.log(TXN)
    for i in range(8):
        append(log, idempotent(2 * i, 2, producer_id=1))
        append(log, transactional(i, producer_id=2))
        append(log, marker(committed=i % 2 == 0, producer_id=2), origin=AppendOrigin.COORDINATOR)


CLEAN, KILLED, POWER = "clean stop", "kill", "kill, nothing was durable"
STOPS = (CLEAN, KILLED, POWER)


def stop(node: Node, how: str) -> None:
    """After `POWER` nothing is known to be durable, so that everything is looked at."""
    node.stop(clean=how == CLEAN)
    if how == POWER:
        (node.path / "recovery-point-offset-checkpoint").write_text("0\n0\n")


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << (position % 8)
    path.write_bytes(data)


def add(path: Path, tail: bytes) -> None:
    with path.open("ab") as file:
        file.write(tail)


def cut(path: Path, size: int) -> None:
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


class Image:
    """The files of a directory, to be put back as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.contents = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        self._stats: dict[Path, tuple[int, int]] = {}

    def restore(self) -> None:
        for file in self._path.rglob("*"):
            if file.is_file() and file not in self.contents:
                file.unlink()
        for file, content in self.contents.items():
            if self._stats.get(file) != self._stat(file):
                file.write_bytes(content)
                self._stats[file] = self._stat(file)

    def _stat(self, file: Path) -> tuple[int, int]:
        if not file.exists():
            return -1, -1
        found = file.stat()
        return found.st_mtime_ns, found.st_size


def path_of(base: int, suffix: str) -> str:
    return re.escape(f"/orders-0/{base:020d}{suffix}")


def read(log: Log) -> list[int]:
    """The offsets that consumers get, whichever they begin with."""
    found = offsets_until_damage(log, log.log_start_offset)
    for offset in found:
        assert offsets_until_damage(log, offset) == found[found.index(offset) :]
    return found


def offsets_until_damage(log: Log, offset: int) -> list[int]:
    found: list[int] = []
    while True:
        try:
            info = log.read(offset, 1, Isolation.HIGH_WATERMARK)
        except KafkaError:
            return found
        if info.slice is None:
            return found
        for located in iter_batches(info.slice.read()):
            found.append(located.base_offset)
            offset = located.last_offset + 1


def times(log: Log) -> list[int]:
    """Which offset the time of each record leads to."""
    found = []
    for i in ALL:
        answer = log.offset_for_timestamp(NOW_MS + i)
        assert not isinstance(answer, BatchSearch)
        found.append(-1 if answer is None else answer.offset)
    return found
