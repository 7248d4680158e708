"""After descriptors or memory ran out, the node retries: marks, checkpoints, creation and deletion of
logs."""

import asyncio
import errno
import uuid
from collections.abc import Coroutine
from typing import Any

import pytest

from odradek.core.configs import NodeConfig
from odradek.core.errors import ExhaustedError, StorageError
from odradek.core.types import TopicPartition
from odradek.log.checkpoints import parse_offsets
from odradek.log.cleaning.cleaner import Cleaner
from odradek.log.cleaning.settings import CleanerSettings
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.sim.world.disk import DiskFault, DiskFaults
from odradek.sim.world.loop import SimLoop
from odradek.sim.world.volume import Volume
from tests.robustness.test_exhaustion import A_ID, CONFIG, MARKED, A, Runtime
from tests.unit.log.support import batch, config, offsets

B = TopicPartition("b", 0)
NEW_ID = uuid.UUID(int=0xABCDEF)


class Disks:
    """A manager of two log directories, and what goes wrong with them."""

    def __init__(self, *paths: str) -> None:
        self.volume, self.faults = Volume(), DiskFaults()
        self.paths = paths or ("/one",)
        self.manager = self.start()

    def start(self) -> LogManager:
        manager = LogManager(Runtime(self.volume, faults=self.faults), self.paths)
        manager.open()
        manager.load(lambda topic: CONFIG)
        return manager

    def lack(self, operation: str, pattern: str = "*", times: int = -1, code: int = errno.ENOMEM) -> None:
        self.faults.rules.append(DiskFault(code, [operation], pattern, times=times))

    def well(self) -> None:
        self.faults.rules.clear()

    def write(self, log: Log, count: int = 1) -> None:
        log.append_as_leader([batch() for _ in range(count)], 0)

    def marks(self) -> list[str]:
        return [path for path in self.volume.files() if path.endswith(".unflushed")]

    def all_online(self) -> bool:
        return all(directory.failure is None for directory in self.manager.directories)


def play(story: Coroutine[Any, Any, None]) -> None:
    loop = SimLoop()
    try:
        loop.run_until_complete(story)
    finally:
        loop.close()


# --- marks ------------------------------------------------------------------------------------------------


def test_a_mark_that_cannot_be_removed_yet_is_removed_though_nothing_is_appended_any_more() -> None:
    async def story() -> None:
        disks = Disks()
        log = disks.manager.get_or_create(A, A_ID, MARKED)
        disks.write(log)
        disks.lack("unlink", "*.unflushed", times=2)
        log.roll()
        await asyncio.sleep(0.5)
        assert log.recovery_point == 1 and len(disks.marks()) == 1
        await asyncio.sleep(5)
        assert disks.marks() == [] and disks.all_online()
        await disks.manager.close()

    play(story())


def test_a_clean_stop_removes_the_marks_that_were_left() -> None:
    async def story() -> None:
        disks = Disks()
        log = disks.manager.get_or_create(A, A_ID, MARKED)
        disks.write(log)
        disks.lack("unlink", "*.unflushed")
        log.roll()
        await asyncio.sleep(0.5)
        disks.well()
        await disks.manager.close()
        assert disks.marks() == []

    play(story())


def test_no_log_is_cleaned_while_a_mark_stands_that_would_then_lie() -> None:
    """Recovery takes an end that is missing before a mark for a loss, and drops what follows."""
    compacted = config(segment_bytes=200, cleanup_policy=("compact",), min_cleanable_dirty_ratio=0.0)

    async def story() -> None:
        disks = Disks()
        log = disks.manager.get_or_create(A, A_ID, compacted)
        disks.lack("unlink", "*.unflushed")
        disks.write(log, 9)
        log.advance_high_watermark(log.log_end_offset)
        node_config, _ = NodeConfig.from_sources({}, {"log.cleaner.backoff.ms": "100"})
        cleaner = Cleaner(disks.manager._runtime, disks.manager, CleanerSettings.from_node(node_config))
        cleaner.start()
        await asyncio.sleep(5)
        assert cleaner.cleanings == 0 and disks.marks() and cleaner.uncleanable == {}
        disks.well()
        await asyncio.sleep(5)
        assert cleaner.cleanings > 0 and disks.marks() == []
        await cleaner.close()
        await disks.manager.close()

    play(story())


def test_a_roll_whose_mark_cannot_be_made_is_no_roll() -> None:
    async def story() -> None:
        disks = Disks()
        log = disks.manager.get_or_create(A, A_ID, MARKED)
        disks.write(log)
        disks.lack("open", "*.unflushed", times=1, code=errno.EMFILE)
        with pytest.raises(ExhaustedError):
            log.roll()
        assert len(log.segments) == 1 and disks.marks() == []
        disks.write(log)
        log.roll()
        await asyncio.sleep(1)
        log.advance_high_watermark(log.log_end_offset)
        assert offsets(log) == [0, 1] and disks.marks() == [] and disks.all_online()
        await disks.manager.close()

    play(story())


# --- checkpoints ------------------------------------------------------------------------------------------


def test_what_a_truncation_has_to_say_does_not_wait_until_a_checkpoint_is_due() -> None:
    """With an interval of 0 none ever is, and a crash would believe what the file says."""

    async def story() -> None:
        disks = Disks()
        log = disks.manager.get_or_create(A, A_ID, MARKED)
        disks.write(log, 3)
        await disks.manager.flusher.flush(log)
        disks.manager.checkpoint_recovery_points()
        disks.lack("open", "/one/recovery-point-offset-checkpoint*", times=1, code=errno.EMFILE)
        log.truncate_to(1)
        await asyncio.sleep(5)
        content = disks.volume.find_file("/one/recovery-point-offset-checkpoint").data.to_bytes()
        assert parse_offsets(content) == {A: 1}
        await disks.manager.close()

    play(story())


# --- logs that are begun or deleted -----------------------------------------------------------------------


@pytest.mark.parametrize("file", ["*.log", "*.timeindex", "*/partition.metadata*"])
def test_a_log_is_begun_in_one_directory_only(file: str) -> None:
    """Two of them would keep the node from its next start."""

    async def story() -> None:
        disks = Disks("/one", "/two")
        disks.lack("open", f"/one/a-0/{file.removeprefix('*/')}", code=errno.EMFILE)
        with pytest.raises(ExhaustedError):
            disks.manager.get_or_create(A, A_ID, CONFIG)
        disks.well()
        for index in range(3):  # of one of them more than of the other
            disks.manager.get_or_create(TopicPartition("b", index), NEW_ID, CONFIG)
        disks.manager.get_or_create(A, A_ID, CONFIG)
        await disks.manager.close()
        disks.manager = disks.start()
        assert disks.manager.logs[A].topic_id == A_ID
        await disks.manager.close()

    play(story())


def test_a_log_begun_in_a_directory_that_fails_since_is_begun_in_no_other() -> None:
    async def story() -> None:
        disks = Disks("/one", "/two")
        disks.lack("open", "/one/a-0/*", code=errno.EMFILE)
        with pytest.raises(ExhaustedError):
            disks.manager.get_or_create(A, A_ID, CONFIG)
        disks.well()
        disks.manager.dirs.take_offline(disks.manager.directories[0], StorageError("broken"))
        with pytest.raises(StorageError, match="/one"):
            disks.manager.get_or_create(A, A_ID, CONFIG)
        disks.manager.get_or_create(B, NEW_ID, CONFIG)
        await disks.manager.close()

    play(story())


def test_a_log_that_was_only_begun_is_deleted_with_its_topic() -> None:
    async def story() -> None:
        disks = Disks()
        disks.lack("open", "*.timeindex", code=errno.EMFILE)
        disks.lack("listdir", code=errno.EMFILE)
        with pytest.raises(ExhaustedError):
            disks.manager.get_or_create(A, A_ID, CONFIG)
        disks.manager.delete(A)
        with pytest.raises(ExhaustedError):
            disks.manager.get_or_create(A, NEW_ID, CONFIG)
        disks.well()
        await disks.manager.tick_deletes()
        assert "a-0" not in disks.volume.find_directory("/one").entries
        assert disks.manager.get_or_create(A, NEW_ID, CONFIG).topic_id == NEW_ID
        await disks.manager.close()

    play(story())


def test_a_log_that_cannot_be_set_aside_yet_makes_room_before_the_next_of_its_name() -> None:
    async def story() -> None:
        disks = Disks()
        disks.write(disks.manager.get_or_create(A, A_ID, CONFIG))
        disks.lack("rename", "/one/a-0")
        disks.manager.delete(A)
        with pytest.raises(ExhaustedError):
            disks.manager.get_or_create(A, NEW_ID, CONFIG)
        disks.well()
        log = disks.manager.get_or_create(A, NEW_ID, CONFIG)
        assert (log.topic_id, log.log_end_offset) == (NEW_ID, 0)
        disks.manager._runtime.clock.ms += CONFIG.file_delete_delay_ms + 1
        await disks.manager.tick_deletes()
        names = disks.volume.find_directory("/one").entries
        assert [name for name in names if name.endswith("-delete")] == [] and disks.all_online()
        await disks.manager.close()

    play(story())


def test_a_stray_that_cannot_be_set_aside_yet_is_not_taken_for_the_new_topic() -> None:
    async def story() -> None:
        disks = Disks()
        disks.write(disks.manager.get_or_create(A, A_ID, CONFIG))
        disks.lack("rename", "/one/a-0", times=2)
        for _ in range(2):
            with pytest.raises(ExhaustedError):
                disks.manager.get_or_create(A, NEW_ID, CONFIG)
        log = disks.manager.get_or_create(A, NEW_ID, CONFIG)
        assert (log.topic_id, log.log_end_offset) == (NEW_ID, 0)
        await disks.manager.close()

    play(story())


def given_up(disks: Disks) -> Log:
    log = disks.manager.get_or_create(A, A_ID, CONFIG)
    disks.write(log, 9)
    disks.lack("fsync", "/one/a-0", times=1, code=errno.EMFILE)
    with pytest.raises(StorageError):
        log.truncate_to(2)
    return log


@pytest.mark.parametrize("how", ["deleted", "a stray"])
def test_the_records_of_a_log_that_was_given_up_alone_are_not_the_next_topics(how: str) -> None:
    async def story() -> None:
        disks = Disks()
        given_up(disks)
        if how == "deleted":
            disks.manager.delete(A)
        log = disks.manager.get_or_create(A, NEW_ID, CONFIG)
        assert (log.topic_id, log.log_end_offset, log.failure) == (NEW_ID, 0, None)
        await disks.manager.close()

    play(story())


def test_a_log_that_was_given_up_alone_keeps_no_other_from_being_closed() -> None:
    async def story() -> None:
        disks = Disks()
        log = given_up(disks)
        other = disks.manager.get_or_create(B, NEW_ID, MARKED)
        disks.write(other)
        await disks.manager.close()
        assert other.recovery_point == other.log_end_offset == 1
        assert log.failure is not None and disks.all_online()
        assert ".kafka_cleanshutdown" not in disks.volume.find_directory("/one").entries

    play(story())
