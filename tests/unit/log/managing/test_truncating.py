"""Truncations beside the loop: what is so at once, what waits for the disk, and what happens meanwhile."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.log import names
from odradek.log.log import Isolation, Log
from odradek.runtime.slices import at_once
from tests.unit.log.managing.support import Dirs, turn
from tests.unit.log.support import FaultyDisk, append, batch, offsets

RECOVERY_POINTS = names.RECOVERY_POINT_CHECKPOINT


def staged(path: Path, scenario: Callable[[Dirs], Awaitable[None]]) -> None:
    async def run() -> None:
        dirs = Dirs(path)
        await scenario(dirs)
        dirs.checkpointer.stop()

    asyncio.run(run())


def flushed(dirs: Dirs, name: str = "a", directory: int = 0) -> Log:
    """Six durable records of one batch each, and a checkpoint that says so."""
    log = dirs.log(name, directory)
    append(log, *(batch() for _ in range(6)))
    log.flush()
    dirs.checkpointer.write_now(dirs.dirs.directory_of(log), RECOVERY_POINTS)
    return log


def test_the_log_ends_at_once_but_is_truncating_until_its_checkpoint_is_lower(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        reply = log.begin_truncation(4)
        assert log.log_end_offset == log.high_watermark == log.recovery_point == 4
        await turn()
        for _ in range(3):  # the directory, the files, the checkpoint
            assert log.is_truncating and len(dirs.held) == 1
            with pytest.raises(KafkaError) as refused:
                log.append_as_leader([batch()], 1)
            assert refused.value.code is ErrorCode.NOT_LEADER_OR_FOLLOWER
            with pytest.raises(KafkaError):
                log.read(0, 1000, Isolation.LOG_END)
            await dirs.runtime.run_next()
        await reply
        assert not log.is_truncating and not dirs.held
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 4}
        append(log, batch())
        assert offsets(log) == [0, 1, 2, 3, 4]

    staged(tmp_path, scenario)


def test_logs_that_truncate_in_one_turn_share_their_syncs_and_their_checkpoint(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        logs = [flushed(dirs, f"t{number}") for number in range(5)]
        replies = [log.begin_truncation(3) for log in logs]
        await turn()
        for _ in range(3):
            assert len(dirs.held) == 1
            await dirs.runtime.run_next()
        assert not dirs.held
        for reply in replies:
            await reply
        assert set(dirs.checkpoint(RECOVERY_POINTS).values()) == {3}

    staged(tmp_path, scenario)


def test_a_truncation_during_another_one_follows_it(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        replies = [log.begin_truncation(4), log.begin_truncation(5), log.begin_truncation(2)]
        await turn()
        while dirs.held:
            assert log.is_truncating
            await dirs.runtime.run_next()
        for reply in replies:
            await reply
        assert not log.is_truncating and offsets(log) == [0, 1]
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 2}

    staged(tmp_path, scenario)


def test_a_log_restarts_beside_the_loop(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        reply = log.begin_restart(3)
        assert (log.log_start_offset, log.log_end_offset) == (3, 3)
        await turn()
        while dirs.held:
            await dirs.runtime.run_next()
        await reply
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 3}

    staged(tmp_path, scenario)


def test_without_anything_to_remove_nothing_is_synced(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        reply = log.begin_truncation(6)
        assert not log.is_truncating
        await reply
        assert not dirs.held

    staged(tmp_path, scenario)


@pytest.mark.parametrize("step", range(3))
def test_a_sync_that_fails_takes_the_directory_offline(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(dirs: Dirs) -> None:
        log, other = flushed(dirs), flushed(dirs, "b", directory=1)
        replies = [log.begin_truncation(4), other.begin_truncation(4)]
        await turn()
        for _ in range(step):
            await dirs.runtime.run_next()
        disk, call = dirs.runtime.disk, ("fsync_dir", "fdatasync", "rename")[step]
        works = getattr(disk, call)

        def fail_in_the_first(disk: FaultyDisk, *args: object) -> None:
            path = disk.path_of(args[0]) if isinstance(args[0], int) else args[0]
            if f"{dirs.paths[0]}" in str(path):
                raise OSError(errno.EIO, "Input/output error")
            works(*args)

        monkeypatch.setattr(FaultyDisk, call, fail_in_the_first)
        while dirs.held:
            await dirs.runtime.run_next()
        with pytest.raises(StorageError):
            await replies[0]
        assert log.failure is not None and not dirs.truncations.is_running
        await replies[1]
        assert other.failure is None and offsets(other) == [0, 1, 2, 3]

    staged(tmp_path, scenario)


def test_a_log_that_is_deleted_meanwhile_is_left_alone(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        reply = log.begin_truncation(4)
        await turn()
        del dirs.dirs.logs[log.topic_partition]
        log.move(f"{log.path}-delete")
        while dirs.held:
            await dirs.runtime.run_next()
        with pytest.raises(KafkaError) as gone:
            await reply
        assert gone.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        assert log.failure is None and dirs.dirs.directories[0].failure is None

    staged(tmp_path, scenario)


def test_chores_leave_a_truncating_log_alone(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = flushed(dirs)
        append(log, batch())
        reply = log.begin_truncation(4)
        await turn()
        assert log.begin_flush() is None and not dirs.dirs.is_usable(log)
        at_once(dirs.flusher.flush_due())
        assert len(dirs.held) == 1
        while dirs.held:
            await dirs.runtime.run_next()
        await reply
        assert dirs.dirs.is_usable(log)

    staged(tmp_path, scenario)
