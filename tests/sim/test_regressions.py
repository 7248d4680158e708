"""Bugs that seeds have found, each as a short test."""

import os
import random

import pytest

from odradek.core.config.node import node_defaults
from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log.log import Log
from odradek.log.managing.log_dir import LogDir
from odradek.records.batch import build_batch, iter_batches
from odradek.records.check import CheckedRecords
from odradek.sim.main import odradek_node
from odradek.sim.stories.plan import Settings
from odradek.sim.world.cluster import SimHost
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import CrashModel, Volume
from odradek.sim.world.world import World

TP = TopicPartition("t", 0)
PATH = "/data/t-0"
TEAR = CrashModel(keep_all=0, lose_all=0, zero_tail=0, garbage_tail=0)
LOSE_ALL = CrashModel(keep_all=0, lose_all=1, zero_tail=0, garbage_tail=0)


def _config() -> TopicConfig:
    return TopicConfig.resolve(NodeConfig(node_defaults("/data")), {"internal.segment.bytes": "250"})


def _log(runtime: SimRuntime) -> Log:
    runtime.disk.makedirs("/data")
    return Log.open(runtime, PATH, TP, None, _config())


def _append(log: Log, value: bytes) -> None:
    data = build_batch([(1, None, value, ())])
    log.append_as_leader([CheckedRecords(data, list(iter_batches(data)))], 0)


def test_what_lies_behind_a_gap_between_segments_is_dropped() -> None:
    """A segment lost its last batch at the border of two batches; the next segment survived whole."""
    world, volume = World(1), Volume()
    log = _log(world.runtime("node", "first", volume=volume))
    for _ in range(4):
        _append(log, b"." * 50)
    first, second = log.segments.all()[:2]
    assert second.base_offset == 2
    file = volume.find_file(first.file.path)
    file.truncate(file.data.size // 2)
    recovered = _log(world.runtime("node", "second", volume=volume))
    assert recovered.log_end_offset == 1
    assert len(recovered.segments.all()) == 1


@pytest.mark.parametrize("seed", range(10))
def test_an_append_that_was_undone_stays_undone(seed: int) -> None:
    """A full disk took part of a batch, which was cut off again; the segment was not written to any more."""
    world, volume = World(1), Volume()
    log = _log(world.runtime("node", "first", volume=volume))
    _append(log, b"whole")
    log.flush()
    path, size = log.segments.active.file.path, log.segments.active.size
    volume.sync_all()
    volume.capacity_bytes = volume.used_bytes() + 30
    with pytest.raises(StorageError, match="No space left"):
        _append(log, b"too much for the disk" * 5)
    volume.capacity_bytes = None
    runtime = world.runtime("node", "second", volume=volume)
    recovered = Log.open(runtime, PATH, TP, None, _config(), recovery_point=1)
    assert recovered.log_end_offset == 1
    volume.crash(random.Random(seed), TEAR)
    assert volume.find_file(path).data.size == size


def test_a_new_data_directory_is_durable_before_anything_is_put_into_it() -> None:
    volume = Volume()
    runtime = World(1).runtime("node", volume=volume)
    LogDir(runtime.disk, "/var/lib/odradek").open()
    fd = runtime.disk.open("/var/lib/odradek/file", os.O_RDWR | os.O_CREAT)
    runtime.disk.fsync(fd)
    runtime.disk.fsync_dir("/var/lib/odradek")
    volume.crash(random.Random(1), LOSE_ALL)
    assert "/var/lib/odradek/file" in volume.files()


def test_a_node_that_flushes_every_message_comes_up() -> None:
    world = World(1)
    settings = Settings(
        flush_everything=True,
        flush_interval_ms=None,
        checkpoint_interval_ms=60_000,
        segment_ms=600_000,
        index_interval_bytes=4096,
    )
    host = SimHost(world, "node", odradek_node(settings))

    async def main() -> None:
        await host.start()
        await host.stop()

    world.run(main())
    assert host.leaks == []
