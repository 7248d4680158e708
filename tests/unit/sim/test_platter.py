"""Proves that only what a power loss cannot take counts as flushed."""

import os
import random

from odradek.coordinators.records import OffsetCommitKey, OffsetCommitValue, encode_key, encode_value
from odradek.core.types import GROUP_METADATA_TOPIC, TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.checkers.platter import flushed_commits, flushed_records
from odradek.sim.world.disk import DiskFaults, SimDisk
from odradek.sim.world.process import Process
from odradek.sim.world.trace import Trace
from odradek.sim.world.volume import Volume

TP = TopicPartition("my-topic", 3)


def _disk() -> SimDisk:
    return SimDisk(
        Volume(), Process("p"), DiskFaults(), random.Random(1), Trace(lambda: 0), lambda: 0, lambda s: None
    )


def _batch(base_offset: int, *values: bytes) -> bytes:
    return bytes(build_batch([(0, None, value, ()) for value in values], base_offset=base_offset))


def _segment(
    disk: SimDisk, base: int, data: bytes, *, sync: bool = True, directory: str = "my-topic-3"
) -> int:
    disk.makedirs(f"/data/{directory}")
    fd = disk.open(f"/data/{directory}/{base:020}.log", os.O_RDWR | os.O_CREAT)
    disk.pwrite(fd, data, disk.size(fd))
    if sync:
        disk.fsync(fd)
        for path in (f"/data/{directory}", "/data", "/"):
            disk.fsync_dir(path)
    return fd


def _values(disk: SimDisk) -> list[tuple[int, bytes | None]]:
    return [(r.offset, r.value) for r in flushed_records(disk.volume, "/data").get(TP, [])]


def test_synced_batches_of_all_segments_are_flushed() -> None:
    disk = _disk()
    _segment(disk, 0, _batch(0, b"a", b"b"))
    _segment(disk, 2, _batch(2, b"c"))
    assert _values(disk) == [(0, b"a"), (1, b"b"), (2, b"c")]


def test_unsynced_batches_are_not() -> None:
    disk = _disk()
    _segment(disk, 0, _batch(0, b"a"))
    _segment(disk, 0, _batch(1, b"b"), sync=False)
    assert _values(disk) == [(0, b"a")]


def test_a_file_without_a_durable_name_is_not() -> None:
    disk = _disk()
    disk.fsync(_segment(disk, 0, _batch(0, b"a"), sync=False))
    assert _values(disk) == []


def test_nothing_behind_a_gap_or_a_torn_batch_counts() -> None:
    disk = _disk()
    whole, torn = _batch(0, b"a"), bytearray(_batch(1, b"b"))
    torn[-1] ^= 1
    _segment(disk, 0, whole + bytes(torn) + _batch(2, b"c"))
    assert _values(disk) == [(0, b"a")]
    disk = _disk()
    _segment(disk, 0, whole)
    _segment(disk, 2, _batch(2, b"c"))
    assert _values(disk) == [(0, b"a")]
    disk = _disk()
    _segment(disk, 0, whole + bytes(4096))
    assert _values(disk) == [(0, b"a")]


def test_the_last_flushed_commit_of_each_group_counts() -> None:
    def entry(group: str, offset: int | None) -> tuple[int, bytes, bytes | None, tuple[()]]:
        key = OffsetCommitKey(group=group, topic="t", partition=0)
        value = None
        if offset is not None:
            value = encode_value(
                OffsetCommitValue(offset=offset, leader_epoch=-1, metadata="", commit_timestamp=0)
            )
        return (0, encode_key(key), value, ())

    disk = _disk()
    batch = build_batch([entry("g", 5), entry("gone", 1), entry("g", 8), entry("gone", None)])
    _segment(disk, 0, bytes(batch), directory=f"{GROUP_METADATA_TOPIC}-7")
    commits = flushed_commits(flushed_records(disk.volume, "/data"))
    assert commits == {("g", TopicPartition("t", 0)): 8}
