"""The topic id of a log: durable before its first record, and what happens to a log without one."""

import asyncio
import random
import uuid
from pathlib import Path

import pytest

from odradek.core.types import TopicPartition
from odradek.log.checkpoints import is_damaged_topic_id
from odradek.log.manager import LogManager
from odradek.sim.world.volume import CrashModel, Volume
from tests.unit.log.support import LogRuntime, VolumeRuntime, append, batch, config

A0 = TopicPartition("a", 0)
OLD, NEW = (uuid.UUID(bytes=random.Random(seed).randbytes(16), version=4) for seed in (1, 2))


def started(runtime: LogRuntime, path: str) -> LogManager:
    manager = LogManager(runtime, [path])
    manager.open()
    manager.load(lambda topic: config())
    return manager


@pytest.mark.parametrize("seeds", [range(start, start + 50) for start in range(0, 300, 50)])
def test_records_of_a_deleted_topic_are_never_taken_for_those_of_the_next_one(seeds: range) -> None:
    for seed in seeds:
        volume = Volume()
        runtime = VolumeRuntime(volume)
        runtime.disk.makedirs("/data")
        volume.sync_all()
        manager = started(runtime, "/data")
        append(manager.get_or_create(A0, OLD, config()), batch(3))
        manager.delete(A0)
        manager.get_or_create(A0, NEW, config())
        runtime.process.alive = False
        volume.crash(random.Random(seed), CrashModel())

        manager = started(VolumeRuntime(volume), "/data")
        log = manager.get_or_create(A0, NEW, config())
        assert log.log_end_offset == 0, f"seed {seed}"


def test_the_topic_id_is_durable_before_the_first_record_is_written() -> None:
    volume = Volume()
    runtime = VolumeRuntime(volume)
    runtime.disk.makedirs("/data")
    volume.sync_all()
    log = started(runtime, "/data").get_or_create(A0, OLD, config())
    assert "/data/a-0/partition.metadata" not in volume.durable_files()
    append(log, batch())
    volume.sync_directory(volume.find_directory("/data"))
    assert b"topic_id: " in volume.durable_files()["/data/a-0/partition.metadata"].durable.to_bytes()


class CountingRuntime(LogRuntime):
    """Counts the syncs that are made on the event loop."""

    def __init__(self) -> None:
        super().__init__()
        self.syncs: list[str] = []
        disk = self.disk
        plain = disk.fsync_dir

        def fsync_dir(path: str) -> None:
            try:
                asyncio.get_running_loop()
                self.syncs.append(path)
            except RuntimeError:
                pass  # a thread of the pool
            plain(path)

        self.disk = type("CountingDisk", (type(disk),), {"fsync_dir": staticmethod(fsync_dir)})()


def test_topic_ids_of_new_logs_are_synced_beside_the_loop(tmp_path: Path) -> None:
    async def scenario() -> None:
        runtime = CountingRuntime()
        manager = started(runtime, str(tmp_path))
        logs = [manager.get_or_create(TopicPartition("a", i), OLD, config()) for i in range(40)]
        assert runtime.syncs == []
        manager.persist_topic_ids()
        while manager.work.in_flight:
            await asyncio.sleep(0.001)
        for log in logs:
            append(log, batch())
        assert runtime.syncs == []
        append(manager.get_or_create(TopicPartition("a", 99), OLD, config()), batch())
        assert runtime.syncs == [f"{tmp_path}/a-99"]
        await manager.close()

    asyncio.run(scenario())


def test_a_log_with_records_need_not_prove_its_topic_again(tmp_path: Path) -> None:
    async def scenario() -> None:
        manager = started(LogRuntime(), str(tmp_path))
        append(manager.get_or_create(A0, OLD, config()), batch())
        await manager.close(clean=False)
        runtime = CountingRuntime()
        manager = started(runtime, str(tmp_path))
        runtime.syncs.clear()
        append(manager.get_or_create(A0, OLD, config()), batch())
        assert runtime.syncs == []
        await manager.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("at", [10 + 11, 10 + 11 + 13, 10 + 11 + 21])
def test_a_flipped_bit_of_a_topic_id_does_not_cost_the_log(
    tmp_path: Path, at: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever it makes of the id: another one, or nothing that is one."""
    for bit in range(7):
        path = tmp_path / str(bit)
        manager = started(LogRuntime(), str(path))
        append(manager.get_or_create(A0, OLD, config()), batch(3))
        asyncio.run(manager.close())
        file = path / "a-0" / "partition.metadata"
        content = bytearray(file.read_bytes())
        content[at] ^= 1 << bit
        file.write_bytes(content)
        manager = started(LogRuntime(), str(path))
        read = manager.logs[A0].topic_id
        log = manager.get_or_create(A0, OLD, config())
        assert (log.topic_id, log.log_end_offset) == (OLD, 3)
        assert read == OLD or str(file.parent) in caplog.text
        asyncio.run(manager.close())
        assert started(LogRuntime(), str(path)).logs[A0].topic_id == OLD
        caplog.clear()


def test_ids_of_two_topics_are_not_taken_for_a_flipped_bit() -> None:
    rng = random.Random(3)
    ids = [uuid.UUID(bytes=rng.randbytes(16), version=4) for _ in range(300)]
    assert not any(is_damaged_topic_id(a, b) for a in ids for b in ids)
