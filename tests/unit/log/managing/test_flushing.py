"""The flushes of a node's logs: when one begins, what follows from it, and when it is tried again."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.core.errors import ExhaustedError, StorageError
from odradek.log import names
from odradek.log.log import Log
from odradek.runtime.slices import at_once
from tests.unit.log.managing.support import Dirs, turn
from tests.unit.log.support import TP, append, batch

RECOVERY_POINTS = names.RECOVERY_POINT_CHECKPOINT


def staged(path: Path, scenario: Callable[[Dirs], Awaitable[None]]) -> None:
    async def run() -> None:
        dirs = Dirs(path)
        await scenario(dirs)
        dirs.flusher.stop()
        dirs.checkpointer.stop()

    asyncio.run(run())


def lack_descriptors(monkeypatch: pytest.MonkeyPatch, log: Log) -> None:
    def refuse(self: Log, up_to: int | None = None) -> None:
        raise ExhaustedError("no descriptor left")

    monkeypatch.setattr(Log, "begin_flush", refuse)


def test_a_flush_begins_when_the_turn_of_the_loop_is_over(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log(flush_messages=1)
        append(log, batch())
        append(log, batch())
        assert not dirs.held and log in dirs.flusher.flushing
        await turn()
        assert len(dirs.held) == 1
        await dirs.runtime.run_next()
        assert log.recovery_point == log.settled_offset == 2
        assert log not in dirs.flusher.flushing

    staged(tmp_path, scenario)


def test_what_comes_during_a_flush_has_the_next_one(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log(flush_messages=1)
        append(log, batch())
        await turn()
        append(log, batch())
        append(log, batch())
        await turn()
        assert len(dirs.held) == 1, "one flush at a time"
        await dirs.runtime.run_next()
        assert log.recovery_point == 1
        await dirs.runtime.run_next()
        assert log.recovery_point == 3
        assert not dirs.held

    staged(tmp_path, scenario)


def test_a_complete_segment_is_flushed_and_checkpointed(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch(3))
        log.roll()
        append(log, batch())
        await turn()
        await dirs.runtime.run_next()
        assert log.recovery_point == 3, "the active segment is left to the file system"
        await dirs.runtime.run_next()
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 3}

    staged(tmp_path, scenario)


def test_acknowledged_flushes_within_a_segment_write_no_checkpoint(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log(flush_messages=1)
        append(log, batch())
        await turn()
        await dirs.runtime.run_next()
        assert not dirs.held and not dirs.checkpointer.is_writing

    staged(tmp_path, scenario)


def test_a_flush_that_fails_takes_its_directory_offline_and_is_not_repeated(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log, beside, other = dirs.log("a", flush_messages=1), dirs.log("b"), dirs.log("c", directory=1)
        append(log, batch())
        await turn()
        dirs.runtime.disk.fail["fdatasync"] = errno.EIO
        await dirs.runtime.run_next()
        dirs.runtime.disk.fail.clear()
        assert log.failure is not None and beside.failure is log.failure and other.failure is None
        dirs.flusher.flush_soon(log.topic_partition)
        await turn()
        assert not dirs.held and log.recovery_point == 0 and not dirs.flusher.flushing

    staged(tmp_path, scenario)


def test_a_flush_that_lacks_descriptors_is_begun_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.log.managing.flushing.RETRY_S", 0.01)

    async def scenario(dirs: Dirs) -> None:
        log = dirs.log(flush_messages=1)
        append(log, batch())
        with monkeypatch.context() as patched:
            lack_descriptors(patched, log)
            await turn()
            assert not dirs.held and not dirs.flusher.flushing and log.failure is None
        await asyncio.sleep(0.05)
        await dirs.runtime.run_next()
        assert log.settled_offset == 1

    staged(tmp_path, scenario)


def test_a_deleted_log_has_no_flush(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log(flush_messages=1)
        append(log, batch())
        del dirs.dirs.logs[log.topic_partition]
        await turn()
        assert not dirs.held and not dirs.flusher.flushing

    staged(tmp_path, scenario)


def test_a_flush_of_a_log_that_is_deleted_meanwhile_proves_nothing(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch())
        log.roll()
        await turn()
        del dirs.dirs.logs[log.topic_partition]
        await dirs.runtime.run_next()
        assert log.recovery_point == 0 and not dirs.flusher.flushing and not dirs.held

    staged(tmp_path, scenario)


def test_flush_ms_begins_a_flush_of_the_whole_log(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log, idle = dirs.log("a", flush_ms=100), dirs.log("b", flush_ms=100)
        append(log, batch())
        at_once(dirs.flusher.flush_due())
        assert not dirs.held
        dirs.runtime.clock.ms += 100
        at_once(dirs.flusher.flush_due())
        await dirs.runtime.run_next()
        assert log.recovery_point == 1 and idle not in dirs.flusher.flushing

    staged(tmp_path, scenario)


def test_a_flush_that_is_waited_for_raises_what_went_wrong(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        await dirs.flusher.flush(log)
        append(log, batch())
        flushing = asyncio.create_task(dirs.flusher.flush(log))
        await turn()
        dirs.runtime.disk.fail["fdatasync"] = errno.EIO
        await dirs.runtime.run_next()
        with pytest.raises(StorageError, match="Error while flushing a-0"):
            await flushing

    staged(tmp_path, scenario)


def test_an_unknown_partition_is_passed_over(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        dirs.flusher.flush_soon(TP)
        await turn()
        assert not dirs.held

    staged(tmp_path, scenario)
