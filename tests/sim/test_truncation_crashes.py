"""A power loss at any system call of truncations whose syncs run beside the loop."""

import asyncio
import random
import uuid
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import pytest

from odradek.core.types import TopicPartition
from odradek.log.log import Isolation, Log
from odradek.log.manager import LogManager
from odradek.log.names import RECOVERY_POINT_CHECKPOINT
from odradek.records.batch import Record, iter_batches, iter_records
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.volume import CrashModel, Volume
from odradek.testing.inline import done_at_once
from tests.unit.log.support import VolumeRuntime, append, batch, config

T = TypeVar("T")
LOGS = [TopicPartition("t", index) for index in range(2)]
TOPIC_ID = uuid.UUID(int=7)
DURABLE, KEPT, NEW = 12, 5, 4
"""Records that are durable, those below the truncation, and those that the next leader has instead."""


class InlineRuntime(VolumeRuntime):
    """What leaves the loop is done at once, but its owner hears of it in another turn."""

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        return done_at_once(work, carried=OSError)

    in_background = for_quorum = offload


def opened(volume: Volume) -> tuple[InlineRuntime, LogManager]:
    runtime = InlineRuntime(volume)
    runtime.disk.makedirs("/data")
    manager = LogManager(runtime, ["/data"])
    manager.open()
    manager.load(lambda topic: config(index_interval_bytes=50, segment_index_bytes=480))
    return runtime, manager


def filled(manager: LogManager) -> None:
    """Segments at 0, 4 and 8. Epoch 1 begins at 6."""
    for tp in LOGS:
        log = manager.get_or_create(tp, TOPIC_ID, config(index_interval_bytes=50, segment_index_bytes=480))
        for offset in range(DURABLE):
            if offset in (4, 8):
                log.roll()
            append(log, batch(value=b"old %d" % offset), epoch=int(offset >= 6))
        log.flush()


def followed(log: Log) -> None:
    for offset in range(log.log_end_offset, log.log_end_offset + NEW):
        log.append_as_follower(batch(value=b"new %d" % offset, base_offset=offset, leader_epoch=2).buffer)


async def truncate_and_follow(manager: LogManager, offset: int, restarts: bool) -> None:
    logs = [manager.logs[tp] for tp in LOGS]
    replies = [log.begin_restart(offset) if restarts else log.begin_truncation(offset) for log in logs]
    for log, reply in zip(logs, replies, strict=True):
        await reply
        followed(log)


def records(log: Log) -> list[Record]:
    found: list[Record] = []
    while log.log_start_offset + len(found) < log.log_end_offset:
        info = log.read(log.log_start_offset + len(found), 1 << 20, Isolation.LOG_END)
        assert info.slice is not None, "a hole"
        data = info.slice.read()
        for located in iter_batches(data):
            found += iter_records(data, located)
    return found


def check(log: Log, offset: int, restarts: bool) -> str:
    """What a restart finds is the log as it was or as it is to be. Returns which."""
    found = records(log)
    assert [r.offset for r in found] == list(range(log.log_start_offset, log.log_end_offset))
    values = [(r.value or b"").split()[0] for r in found]
    olds = values.count(b"old")
    assert values == [b"old"] * olds + [b"new"] * (len(values) - olds), "nothing comes back behind newer ones"
    for record in found:
        assert record.value == b"%s %d" % ((record.value or b"").split()[0], record.offset)
    if log.log_start_offset == 0 and not (restarts and olds == 0):
        assert olds >= (0 if restarts else offset), "what is below the truncation is durable"
    if len(values) > olds:
        assert olds == (0 if restarts else offset)
    epochs = log.epochs.entries
    for record in found:
        epoch = 2 if (record.value or b"").startswith(b"new") else int(record.offset >= 6)
        assert max((e for e, start in epochs if start <= record.offset), default=None) == epoch
    assert all(start <= log.log_end_offset for _, start in epochs)
    return "new" if len(values) > olds else "cut" if olds < DURABLE else "old"


async def until_the_crash(runtime: InlineRuntime, work: Coroutine[Any, Any, None]) -> None:
    """A crash in a callback of the loop ends the work, too."""
    task = asyncio.create_task(work)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: task.cancel())
    try:
        await task
    except (ProcessCrashed, asyncio.CancelledError):
        assert not runtime.process.alive


def crashed_at(call: int, seed: int, offset: int, restarts: bool) -> tuple[bool, set[str]]:
    """Whether all was done before the crash, and what the restart found."""
    volume = Volume()
    runtime, manager = opened(volume)
    process = runtime.process

    def lose_power() -> None:
        process.alive = False
        volume.crash(random.Random(seed), CrashModel())

    async def live() -> None:
        filled(manager)
        for _ in range(10):
            await asyncio.sleep(0)  # flushes of rolled segments
        manager.checkpointer.write_now(manager.directories[0], RECOVERY_POINT_CHECKPOINT)
        volume.sync_all()
        process.fuse, process.on_burnt = call, lose_power
        await until_the_crash(runtime, truncate_and_follow(manager, offset, restarts))

    asyncio.run(live())
    is_done = process.alive
    if is_done:
        process.fuse = None
        lose_power()
    _, restarted = opened(volume)
    return is_done, {check(restarted.logs[tp], offset, restarts) for tp in LOGS}


@pytest.mark.parametrize(
    ("offset", "restarts"), [(KEPT, False), (0, False), (DURABLE - 1, False), (7, False), (20, True)]
)
@pytest.mark.parametrize("seed", range(3))
def test_removed_records_do_not_come_back_behind_newer_ones(offset: int, restarts: bool, seed: int) -> None:
    found: set[str] = set()
    for call in range(1_000):
        is_done, seen = crashed_at(call, 1_000 * seed + call, offset, restarts)
        found |= seen
        if is_done:
            assert call > 10
            break
    assert "old" in found and found & {"cut", "new"}
