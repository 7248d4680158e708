"""flush.messages: acknowledged records are durable, and one flush serves all producers before its start."""

import asyncio
import errno
import threading
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log.checkpoints import parse_offsets
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.runtime.slices import at_once
from tests.unit.log.support import FaultyDisk, LogRuntime, batch, config

A0 = TopicPartition("a", 0)
ID = uuid.UUID(int=1)
SIZE = len(batch().buffer)


class SlowDisk(FaultyDisk):
    """Counts syncs of data, and holds them while `gate` is closed. They run in other threads."""

    __slots__ = ("gate", "syncs")

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Event()
        self.gate.set()
        self.syncs = 0

    def fdatasync(self, fd: int) -> None:
        self.syncs += 1
        assert self.gate.wait(20)
        super().fdatasync(fd)


class Stage:
    """One log of a manager on a disk whose syncs can be held."""

    def __init__(self, path: Path, **changes: int) -> None:
        self.runtime = LogRuntime()
        self.disk = self.runtime.disk = SlowDisk()
        self.manager = LogManager(self.runtime, [str(path)])
        self.manager.open()
        self.manager.load(lambda topic: config(**changes))
        self.log: Log = self.manager.get_or_create(A0, ID, config(**changes))
        self.settled: list[int] = []
        self.log.settling.on_settled = lambda: self.settled.append(self.log.settled_offset)

    def append(self, count: int = 1) -> None:
        (result,) = self.log.append_as_leader([batch(count)], 0)
        assert not isinstance(result, Exception)

    async def until(self, condition: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not condition():
                await asyncio.sleep(0.001)


def test_an_append_returns_before_it_is_durable_and_is_settled_afterwards(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1)
        stage.disk.gate.clear()
        stage.append()
        assert (stage.log.log_end_offset, stage.log.settled_offset) == (1, 0)
        await stage.until(lambda: stage.disk.syncs == 1)
        assert stage.log.settled_offset == 0
        stage.disk.gate.set()
        await stage.until(lambda: stage.settled == [1])
        assert stage.log.recovery_point == 1
        await stage.manager.close()

    asyncio.run(scenario())


def test_one_flush_serves_all_that_came_before_it_began(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1)
        for _ in range(10):
            stage.append()
        stage.disk.gate.clear()
        await stage.until(lambda: stage.disk.syncs == 1)
        for _ in range(50):
            stage.append()
            await asyncio.sleep(0)
        stage.disk.gate.set()
        await stage.until(lambda: stage.settled == [10, 60])
        assert stage.disk.syncs == 2
        await stage.manager.close()

    asyncio.run(scenario())


def test_records_below_the_count_wait_for_nothing(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=5)
        stage.append(4)
        assert stage.log.settled_offset == 4
        stage.disk.gate.clear()
        stage.append(1)
        assert stage.log.settled_offset == 4, "the fifth waits, those before it were acknowledged"
        await stage.until(lambda: stage.disk.syncs == 1)
        stage.append(3)
        assert stage.log.settled_offset == 4, "no record is acknowledged before an earlier one"
        stage.disk.gate.set()
        await stage.until(lambda: stage.settled == [8])
        assert (stage.log.recovery_point, stage.disk.syncs) == (5, 1)
        await stage.manager.close()

    asyncio.run(scenario())


def test_a_failed_flush_takes_the_directory_offline_and_is_not_tried_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1)
        stage.disk.fail["fdatasync"] = errno.EIO
        stage.append()
        stage.append()
        await stage.until(lambda: stage.log.failure is not None)
        stage.disk.fail.clear()
        syncs = stage.disk.syncs
        with pytest.raises(StorageError):
            stage.append()
        stage.manager.tick_flush()
        stage.manager.checkpoint_recovery_points()
        await asyncio.sleep(0.05)
        assert (stage.disk.syncs, stage.settled, stage.log.recovery_point) == (syncs, [], 0)
        assert at_once(stage.manager.describe())[0].failure is not None
        await stage.manager.close()
        assert not (tmp_path / ".kafka_cleanshutdown").exists()

    asyncio.run(scenario())


def test_a_truncation_during_a_flush_is_followed_by_another_flush(tmp_path: Path) -> None:
    """What was cut off may have been written anew, and the flush under way proves nothing about that."""

    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1)
        stage.append()
        await stage.until(lambda: stage.log.recovery_point == 1)
        stage.append()
        await asyncio.sleep(0)
        stage.log.truncate_to(1)
        assert stage.log.settled_offset == 1
        stage.append()
        assert stage.log.settled_offset == 1
        await stage.until(lambda: stage.log.settled_offset == 2)
        assert stage.log.recovery_point == 2
        await stage.manager.close()

    asyncio.run(scenario())


def test_the_checkpoint_is_written_when_a_segment_is_complete_not_with_every_flush(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1, segment_bytes=3 * SIZE)
        checkpoint = tmp_path / "recovery-point-offset-checkpoint"
        for end in range(1, 4):
            stage.append()
            await stage.until(lambda end=end: stage.log.recovery_point == end)  # type: ignore[misc]
        await stage.until(lambda: not stage.manager.work.in_flight)
        assert not checkpoint.exists()
        stage.append()
        await stage.until(lambda: stage.log.recovery_point == 4 and not stage.manager.work.in_flight)
        assert parse_offsets(checkpoint.read_bytes()) == {A0: 4}
        await stage.manager.close()

    asyncio.run(scenario())


def test_a_stop_waits_for_a_flush_that_was_only_asked_for(tmp_path: Path) -> None:
    async def scenario() -> None:
        stage = Stage(tmp_path, flush_messages=1)
        stage.append()
        await stage.manager.close()
        assert stage.log.recovery_point == 1
        assert (tmp_path / ".kafka_cleanshutdown").exists()

    asyncio.run(scenario())


def test_what_a_killed_node_left_is_durable_before_it_is_served(tmp_path: Path) -> None:
    """A producer that was not answered sends it again, and is told that it is there."""
    stage = Stage(tmp_path, flush_messages=1 << 62)
    stage.append(3)
    asyncio.run(stage.manager.close(clean=False))
    stage = Stage(tmp_path, flush_messages=1)
    assert stage.disk.syncs > 0
    assert (stage.log.log_end_offset, stage.log.recovery_point) == (3, 3)
    asyncio.run(stage.manager.close())
    stage = Stage(tmp_path)
    asyncio.run(stage.manager.close(clean=False))
    stage = Stage(tmp_path)
    assert stage.disk.syncs == 0, "a topic that does not flush is not flushed at its start either"
    asyncio.run(stage.manager.close(clean=False))
