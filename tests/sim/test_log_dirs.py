"""One of two log directories fails at any call of the disk: the other one's partitions miss nothing."""

import asyncio
import copy
import errno
import logging
import random
from collections.abc import Callable, Iterator

import pytest

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import Volume
from tests.sim.log_dirs_stage import (
    CHORES_SECONDS,
    SICK,
    WELL,
    LogDirsStage,
    halting_node_of,
    make_topics,
    node_of,
    used_volume,
)


class CallFault(DiskFault):
    """The n-th call on the sick directory fails; -1: none does, they are only counted."""

    __slots__ = ("calls", "nth")

    def __init__(self, nth: int) -> None:
        super().__init__(errno.EIO, ())
        self.nth = nth
        self.calls = 0

    def strikes(self, operation: str, path: str, rng: random.Random) -> bool:
        if path != SICK and not path.startswith(SICK + "/"):
            return False
        self.calls += 1
        return self.calls - 1 == self.nth


async def change_everything(story: LogDirsStage) -> None:
    """Topics created, altered, deleted and written to; then every chore, and a clean stop."""
    if not story.entries(WELL, "stay"):
        await make_topics(story)
    assert story.node.logs.directories[0].failure is None
    await story.alter("stay", "retention.ms", "123456789")
    await story.delete("gone")
    await story.create("new")
    for name in ("stay", "new"):
        await story.write_everywhere(name)
    await asyncio.sleep(CHORES_SECONDS)
    well = {tp: log for tp, log in story.node.logs.logs.items() if log.directory == WELL}
    assert all(log.failure is None for log in well.values())
    stays = [log for tp, log in well.items() if tp.topic == "stay"]
    assert len(stays) >= 1
    assert {log.config.retention_ms for log in stays} == {123456789}
    assert [str(tp) for tp in well if tp.topic == "new"] == story.entries(WELL, "new")
    assert len(story.entries(WELL, "new")) >= 1
    await story.node.stop()
    assert story.entries(WELL, "gone") == story.entries(WELL, "left") == []
    assert all(name.endswith("-stray") for name in story.entries(WELL, "stray"))
    assert ".kafka_cleanshutdown" in story.disk.find_directory(WELL).entries


async def find_everything(story: LogDirsStage) -> None:
    """The disk is well again: all that the well directory acknowledged is there, and nothing else."""
    assert [directory.failure for directory in story.node.logs.directories] == [None, None]
    topics = {tp.topic for tp in story.node.logs.logs}
    assert topics == {"stay", "new"}
    for name in topics:
        for entry in story.entries(WELL, name):
            log = story.node.logs.logs[TopicPartition(name, int(entry.rpartition("-")[2]))]
            assert log.directory == WELL and log.log_end_offset >= 1
    await story.node.stop()


def sweep(volume: Volume, calls: int, make_node: Callable[[SimRuntime, str], Node] = node_of) -> None:
    """Play the story once for each of the first calls on the sick directory, which fails."""
    for nth in range(calls):
        story = LogDirsStage(copy.deepcopy(volume), CallFault(nth), make_node)
        try:
            story.play(change_everything)
            LogDirsStage(story.disk).play(find_everything)
        except Exception as e:
            raise AssertionError(f"call {nth} of {calls} failed") from e


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is logged holds the errors, and they hold the nodes of all stories."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_a_directory_that_fails_at_any_call_takes_only_its_own_partitions_with_it() -> None:
    volume = used_volume()
    counting = CallFault(-1)
    LogDirsStage(copy.deepcopy(volume), counting).play(change_everything)
    assert counting.calls > 100
    sweep(volume, counting.calls)


def test_the_same_holds_while_others_run_between_the_steps_of_taking_it_offline() -> None:
    volume = used_volume()
    counting = CallFault(-1)
    LogDirsStage(copy.deepcopy(volume), counting, halting_node_of).play(change_everything)
    assert counting.calls > 100
    sweep(volume, counting.calls, halting_node_of)


def test_a_new_directory_that_cannot_be_formatted_leaves_the_others_in_use() -> None:
    counting, to_start = CallFault(-1), []

    async def stop(story: LogDirsStage) -> None:
        to_start.append(counting.calls)
        await story.node.stop()

    LogDirsStage(None, counting).play(stop)
    assert to_start[0] > 10
    sweep(Volume(), to_start[0])


def test_a_metadata_log_that_cannot_be_closed_keeps_no_directory_from_a_clean_stop() -> None:
    async def stop(story: LogDirsStage) -> None:
        await make_topics(story)
        broken = DiskFault(errno.EIO, ["open"], f"{WELL}/__cluster_metadata-0/*.snapshot")
        story.host.faults.rules.append(broken)
        await story.node.stop()
        assert ".kafka_cleanshutdown" in story.disk.find_directory(SICK).entries

    LogDirsStage().play(stop)
