"""Descriptors or memory run out at any call of a node with two log directories: it loses nothing, and both
directories stay in use. What was lacking is made up for without anybody asking again."""

import asyncio
import copy
import errno
import logging
import random
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.core.errors import ErrorCode, ExhaustedError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.sim.world.cluster import CrashKind
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.volume import Directory, Volume
from odradek.wire.api_keys import ApiKey
from tests.sim.log_dirs_stage import PARTITIONS, SICK, WELL, LogDirsStage, make_topics, used_volume

E = ErrorCode
CHORES_SECONDS = 8
LATER = (E.KAFKA_STORAGE_ERROR, E.NOT_LEADER_OR_FOLLOWER, E.UNKNOWN_TOPIC_OR_PARTITION)


class Exhaustion(DiskFault):
    """Strikes a run of calls on either directory. Data that could not be synced is another matter."""

    __slots__ = ("_first", "_length", "_volume", "calls")

    def __init__(self, code: int, volume: Volume, first: int | None = None, length: int = 0) -> None:
        super().__init__(code, ("open", "listdir", "fsync"))
        self._volume, self._first, self._length = volume, first, length
        self.calls = 0

    def strikes(self, operation: str, path: str, rng: random.Random) -> bool:
        if self.code == errno.EMFILE and operation not in self.operations:
            return False
        if operation == "fsync" and not isinstance(self._volume.find(path), Directory):
            return False
        self.calls += 1
        return self._first is not None and 0 <= self.calls - 1 - self._first < self._length


class Patient(LogDirsStage):
    """Whoever is told that something is lacking tries again, a node that does not start included."""

    async def start(self) -> None:
        for _ in range(9):
            try:
                await self.host.start()
                return
            except (OSError, ExhaustedError) as e:
                if not is_exhausted(e):
                    raise
                self.host.crash(CrashKind.KILL)
        raise AssertionError("never started")

    async def change(self, api_key: ApiKey, request: Any, *, version: int, rows: str) -> None:
        for _ in range(9):
            answer = await self.client.call(api_key, request, version=version)
            code = ErrorCode(getattr(answer, rows)[0].error_code)
            if code == E.NONE:
                return
            assert code == E.KAFKA_STORAGE_ERROR
        raise AssertionError("never changed")

    async def write_everywhere(self, name: str) -> None:
        for partition in range(PARTITIONS):
            for _ in range(9):
                code = await self.write(name, partition)
                if code == E.NONE:
                    break
                assert code in LATER
                await asyncio.sleep(0.5)
            else:
                raise AssertionError(f"{name}-{partition} was never written")


async def change_everything(story: LogDirsStage) -> None:
    if not story.entries(WELL, "stay"):
        await make_topics(story)
    await story.alter("stay", "retention.ms", "123456789")
    await story.delete("gone")
    await story.create("new")
    for name in ("stay", "new"):
        await story.write_everywhere(name)
    await asyncio.sleep(CHORES_SECONDS)
    logs, image = story.node.logs, story.node.metadata.image
    assert [directory.failure for directory in logs.directories] == [None, None]
    assert story.node.replicas.offline == {} and story.node.replicas.waiting() == []
    assert sorted({tp.topic for tp in logs.logs}) == ["new", "stay"]
    assert len(logs.logs) == 2 * PARTITIONS
    for tp, log in logs.logs.items():
        assert log.failure is None
        assert tp.topic != "stay" or log.config.retention_ms == 123456789
        told = image.topics_by_name[tp.topic].partitions[tp.partition].directories
        assert told == (logs.directory_id(tp),), "the controller knows where it lies"
    await story.node.stop()
    for directory in (WELL, SICK):
        assert story.entries(directory, "gone") == story.entries(directory, "left") == []
        assert all(name.endswith("-stray") for name in story.entries(directory, "stray"))


async def find_everything(story: LogDirsStage) -> None:
    logs = story.node.logs.logs
    for name in ("stay", "new"):
        ends = [logs[TopicPartition(name, index)].log_end_offset for index in range(PARTITIONS)]
        assert min(ends) >= 1
    assert len(logs) == 2 * PARTITIONS
    await story.node.stop()


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is logged holds the errors, and they hold the nodes of all stories."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("used", [True, False], ids=["used", "new"])
@pytest.mark.parametrize(
    ("code", "length", "step"), [(errno.EMFILE, 1, 3), (errno.EMFILE, 4, 3), (errno.ENOMEM, 1, 4)]
)
def test_a_lack_at_any_call_takes_no_directory_offline(code: int, length: int, step: int, used: bool) -> None:
    volume = used_volume() if used else Volume()
    calm = copy.deepcopy(volume)
    counting = Exhaustion(code, calm)
    Patient(calm, counting).play(change_everything)
    assert counting.calls > 150
    for first in range(0, counting.calls, step):
        disk = copy.deepcopy(volume)
        try:
            Patient(disk, Exhaustion(code, disk, first, length)).play(change_everything)
            LogDirsStage(disk).play(find_everything)
        except Exception as e:
            raise AssertionError(f"from call {first} of {counting.calls} on") from e
