"""The offset checkpoints of the log directories: what they say, when they are written, when again."""

import asyncio
import errno
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from odradek.core.errors import ExhaustedError
from odradek.log import names
from odradek.log.managing.checkpointing import checkpointed_offset
from tests.unit.log.managing.support import Dirs, turn
from tests.unit.log.support import append, batch

RECOVERY_POINTS = names.RECOVERY_POINT_CHECKPOINT
HIGH_WATERMARKS = names.HIGH_WATERMARK_CHECKPOINT


def staged(path: Path, scenario: Callable[[Dirs], Awaitable[None]]) -> None:
    async def run() -> None:
        dirs = Dirs(path)
        await scenario(dirs)
        dirs.checkpointer.stop()

    asyncio.run(run())


def test_each_directory_has_a_checkpoint_of_its_own_logs(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        append(dirs.log("a"), batch(3))
        append(dirs.log("b", directory=1), batch(5))
        dirs.checkpointer.write_all(HIGH_WATERMARKS)
        await dirs.runtime.run_next()
        await dirs.runtime.run_next()
        assert dirs.checkpoint(HIGH_WATERMARKS, 0) == {"a-0": 3}
        assert dirs.checkpoint(HIGH_WATERMARKS, 1) == {"b-0": 5}
        assert not dirs.checkpointer.is_writing

    staged(tmp_path, scenario)


def test_without_news_nothing_is_written(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        dirs.checkpointer.write(dirs.dirs.directory_of(log), HIGH_WATERMARKS)
        await dirs.runtime.run_next()
        dirs.checkpointer.write(dirs.dirs.directory_of(log), HIGH_WATERMARKS)
        await turn()
        assert not dirs.held and not dirs.checkpointer.is_writing

    staged(tmp_path, scenario)


def test_news_during_a_write_have_the_next_one(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        directory = dirs.dirs.directory_of(log)
        append(log, batch())
        dirs.checkpointer.write(directory, HIGH_WATERMARKS)
        await turn()
        append(log, batch())
        dirs.checkpointer.write(directory, HIGH_WATERMARKS)
        dirs.checkpointer.write(directory, HIGH_WATERMARKS)
        await turn()
        assert len(dirs.held) == 1, "one write of a file at a time"
        await dirs.runtime.run_next()
        assert dirs.checkpoint(HIGH_WATERMARKS) == {"a-0": 1}
        await dirs.runtime.run_next()
        assert dirs.checkpoint(HIGH_WATERMARKS) == {"a-0": 2}
        assert not dirs.held

    staged(tmp_path, scenario)


def test_a_directory_that_is_offline_is_not_written_to(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        log.fail(OSError(errno.EIO, "Input/output error"), "reading from")
        dirs.checkpointer.write_all(HIGH_WATERMARKS)
        await turn()
        (written,) = dirs.held
        assert "two" in str(written[1])

    staged(tmp_path, scenario)


def test_a_write_that_fails_takes_its_directory_offline(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        heard: list[str] = []
        dirs.dirs.on_offline = lambda path, failure: heard.append(path)
        log = dirs.log()
        dirs.checkpointer.write(dirs.dirs.directory_of(log), HIGH_WATERMARKS)
        await turn()
        dirs.runtime.disk.fail["pwrite"] = errno.EIO
        await dirs.runtime.run_next()
        assert heard == [str(dirs.paths[0])] and log.failure is not None
        assert not dirs.checkpointer.is_writing

    staged(tmp_path, scenario)


def test_a_write_that_lacks_descriptors_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("odradek.log.managing.checkpointing.RETRY_S", 0.01)

    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch())
        dirs.checkpointer.write(dirs.dirs.directory_of(log), HIGH_WATERMARKS)
        await turn()
        dirs.runtime.disk.fail["pwrite"] = errno.EMFILE
        await dirs.runtime.run_next()
        dirs.runtime.disk.fail.clear()
        assert log.failure is None
        await asyncio.sleep(0.05)
        await dirs.runtime.run_next()
        assert dirs.checkpoint(HIGH_WATERMARKS) == {"a-0": 1}

    staged(tmp_path, scenario)


def test_a_truncation_below_what_was_durable_is_checkpointed_at_once(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch())
        append(log, batch())
        log.flush()
        dirs.checkpointer.write_now(dirs.dirs.directory_of(log), RECOVERY_POINTS)
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 2}
        log.truncate_to(1)
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 1}

    staged(tmp_path, scenario)


def test_a_truncation_during_a_write_has_the_next_one(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch())
        append(log, batch())
        log.flush()
        dirs.checkpointer.write(dirs.dirs.directory_of(log), RECOVERY_POINTS)
        await turn()
        log.truncate_to(1)
        await dirs.runtime.run_next()
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 2}, "gathered before the truncation"
        await dirs.runtime.run_next()
        assert dirs.checkpoint(RECOVERY_POINTS) == {"a-0": 1}

    staged(tmp_path, scenario)


def test_each_checkpoint_has_its_offset(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        log = dirs.log()
        append(log, batch(5))
        log.append_as_leader([batch(2)], 0)
        log.flush(5)
        said = {name: checkpointed_offset(log, name) for name in names.OFFSET_CHECKPOINTS}
        assert said == {
            names.RECOVERY_POINT_CHECKPOINT: 5,
            names.LOG_START_CHECKPOINT: None,
            names.HIGH_WATERMARK_CHECKPOINT: 5,
            names.CLEANER_CHECKPOINT: None,
        }
        log.increment_log_start_offset(2)
        log.compaction.cleaned_offset = 3
        assert checkpointed_offset(log, names.LOG_START_CHECKPOINT) == 2
        assert checkpointed_offset(log, names.CLEANER_CHECKPOINT) == 3

    staged(tmp_path, scenario)


def test_exhaustion_is_no_failure_of_a_directory(tmp_path: Path) -> None:
    async def scenario(dirs: Dirs) -> None:
        directory = dirs.dirs.directories[0]
        said = dirs.dirs.failed_in(directory, "no room", OSError(errno.ENFILE, "Too many open files"))
        assert isinstance(said, ExhaustedError) and directory.failure is None

    staged(tmp_path, scenario)
