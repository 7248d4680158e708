"""Proves what the simulated disk keeps and loses, and that its calls fail as a real one's do."""

import errno
import os
import random

import pytest

from odradek.sim.world.disk import DiskFault, DiskFaults, SimDisk
from odradek.sim.world.process import Process, ProcessCrashed
from odradek.sim.world.trace import Trace
from odradek.sim.world.volume import SECTOR_BYTES, CrashModel, Volume

RW = os.O_RDWR | os.O_CREAT
LOSE_ALL = CrashModel(keep_all=0, lose_all=1, zero_tail=0, garbage_tail=0)
KEEP_ALL = CrashModel(keep_all=1, lose_all=0, zero_tail=0, garbage_tail=0)
TEAR = CrashModel(keep_all=0, lose_all=0, zero_tail=0, garbage_tail=0)


def _disk(volume: Volume | None = None, faults: DiskFaults | None = None) -> SimDisk:
    return SimDisk(
        volume or Volume(),
        Process("p"),
        faults or DiskFaults(),
        random.Random(1),
        Trace(lambda: 0.0),
        lambda: 123,
        lambda seconds: None,
    )


def _content(volume: Volume, path: str) -> bytes:
    return volume.find_file(path).data.to_bytes()


def _synced(disk: SimDisk, path: str, data: bytes) -> int:
    fd = disk.open(path, RW)
    disk.pwrite(fd, data, 0)
    disk.fsync(fd)
    disk.fsync_dir("/")
    return fd


def test_reads_see_what_was_written() -> None:
    disk = _disk()
    fd = disk.open("/f", RW)
    assert disk.pwritev(fd, [b"abc", memoryview(b"def")], 2) == 6
    assert disk.pread(fd, 100, 0) == b"\0\0abcdef"
    into = bytearray(3), bytearray(9)
    assert disk.preadv(fd, into, 2) == 6
    assert bytes(into[1][:3]) == b"def"
    disk.ftruncate(fd, 4)
    assert disk.size(fd) == 4
    assert disk.stat("/f").mtime_ms == 123
    disk.close(fd)
    with pytest.raises(OSError, match="Bad file"):
        disk.pread(fd, 1, 0)


def test_a_hole_reads_as_zeros_and_takes_no_space() -> None:
    disk = _disk(Volume(capacity_bytes=1000))
    fd = disk.open("/f", RW)
    disk.ftruncate(fd, 1 << 40)
    assert disk.size(fd) == 1 << 40
    assert disk.pwrite(fd, b"abc", 0) == 3
    assert disk.pread(fd, 5, 1) == b"bc\0\0\0"
    assert disk.pread(fd, 5, (1 << 40) - 2) == b"\0\0"
    assert disk.pread(fd, 5, 1 << 41) == b""
    assert disk.usage("/") == (1000, 997)


def test_one_call_takes_so_many_buffers_and_no_more() -> None:
    disk = _disk()
    fd = disk.open("/f", RW)
    assert disk.pwritev(fd, [b"x"] * 1024, 0) == 1024
    with pytest.raises(OSError, match="Invalid argument"):
        disk.pwritev(fd, [b"x"] * 1025, 0)
    with pytest.raises(OSError, match="Invalid argument"):
        disk.preadv(fd, [bytearray(1)] * 1025, 0)


def test_errors_are_those_of_the_system() -> None:
    disk = _disk()
    with pytest.raises(FileNotFoundError):
        disk.open("/none", os.O_RDONLY)
    disk.makedirs("/a/b")
    disk.makedirs("/a/b")
    fd = disk.open("/a/f", RW)
    disk.close(fd)
    with pytest.raises(FileExistsError):
        disk.open("/a/f", RW | os.O_EXCL)
    with pytest.raises(NotADirectoryError):
        disk.listdir("/a/f")
    with pytest.raises(IsADirectoryError):
        disk.unlink("/a")
    with pytest.raises(OSError, match="not empty"):
        disk.rmdir("/a")
    with pytest.raises(FileExistsError):
        disk.mkdir("/a")
    read_only = disk.open("/a/f", os.O_RDONLY)
    with pytest.raises(OSError, match="Bad file"):
        disk.pwrite(read_only, b"x", 0)
    assert disk.listdir("/a") == ["b", "f"]


def test_an_open_file_outlives_its_name() -> None:
    disk = _disk()
    fd = _synced(disk, "/f", b"data")
    disk.unlink("/f")
    assert disk.pread(fd, 9, 0) == b"data"
    assert not disk.exists("/f")


def test_unsynced_writes_are_lost_and_synced_ones_kept() -> None:
    disk = _disk()
    fd = _synced(disk, "/f", b"durable")
    disk.pwrite(fd, b"XX", 0)
    disk.pwrite(fd, b"more", 7)
    disk.volume.crash(random.Random(1), LOSE_ALL)
    assert _content(disk.volume, "/f") == b"durable"


def test_unsynced_writes_may_survive() -> None:
    disk = _disk()
    fd = _synced(disk, "/f", b"durable")
    disk.pwrite(fd, b" and more", 7)
    disk.ftruncate(fd, 11)
    disk.volume.crash(random.Random(1), KEEP_ALL)
    assert _content(disk.volume, "/f") == b"durable and"


def test_a_torn_write_is_torn_at_sectors_and_never_touches_what_was_synced() -> None:
    torn = 0
    for seed in range(200):
        disk = _disk()
        fd = _synced(disk, "/f", b"d" * 700)
        for i in range(4):
            disk.pwrite(fd, b"n" * 2000, 700 + 2000 * i)
        disk.volume.crash(random.Random(seed), TEAR)
        content = _content(disk.volume, "/f")
        assert content[:700] == b"d" * 700
        assert set(content[700:]) <= {0, ord("n")}
        lost = [i for i in range(700, len(content)) if content[i] == 0]
        assert all(content[i - 1] == 0 for i in lost if i % SECTOR_BYTES and (i - 700) % 2000)
        torn += bool(lost) or 700 < len(content) < 8700
    assert torn > 100


def test_a_tail_of_zeros_or_garbage_may_appear() -> None:
    tails = set()
    for seed in range(100):
        disk = _disk()
        fd = _synced(disk, "/f", b"d" * 10)
        disk.pwrite(fd, b"n" * 10, 10)
        disk.volume.crash(
            random.Random(seed), CrashModel(keep_all=0, lose_all=1, zero_tail=0.5, garbage_tail=0.5)
        )
        tail = _content(disk.volume, "/f")[10:]
        assert len(tail) <= 10
        assert tail != b"n" * 10
        tails.add("zeros" if not any(tail) else "garbage")
    assert tails == {"zeros", "garbage"}


def test_a_synced_file_keeps_no_dirt() -> None:
    disk = _disk()
    _synced(disk, "/f", b"clean")
    disk.volume.crash(random.Random(1), CrashModel(keep_all=0, lose_all=1, zero_tail=1, garbage_tail=0))
    assert _content(disk.volume, "/f") == b"clean"


def test_a_new_name_needs_its_directory_synced() -> None:
    present = set()
    for seed in range(50):
        disk = _disk()
        fd = disk.open("/f", RW)
        disk.pwrite(fd, b"x", 0)
        disk.fsync(fd)
        disk.volume.crash(random.Random(seed), LOSE_ALL)
        present.add(disk.volume.root.entries.get("f") is not None)
    assert present == {True, False}


def test_a_rename_is_all_or_nothing() -> None:
    seen = set()
    for seed in range(50):
        disk = _disk()
        disk.close(_synced(disk, "/f", b"old"))
        disk.close(disk.open("/f.tmp", RW))
        fd = disk.open("/f.tmp", os.O_RDWR)
        disk.pwrite(fd, b"new", 0)
        disk.fsync(fd)
        disk.rename("/f.tmp", "/f")
        disk.volume.crash(random.Random(seed), LOSE_ALL)
        seen.add(_content(disk.volume, "/f"))
    assert seen == {b"old", b"new"}


def test_a_rename_without_a_sync_of_the_file_may_leave_it_empty() -> None:
    disk = _disk()
    fd = disk.open("/f.tmp", RW)
    disk.pwrite(fd, b"new", 0)
    disk.rename("/f.tmp", "/f")
    disk.fsync_dir("/")
    disk.volume.crash(random.Random(1), LOSE_ALL)
    assert _content(disk.volume, "/f") == b""


def test_what_lies_in_a_lost_directory_is_lost() -> None:
    lost = 0
    for seed in range(20):
        disk = _disk()
        disk.mkdir("/d")
        fd = disk.open("/d/f", RW)
        disk.fsync(fd)
        disk.fsync_dir("/d")
        assert disk.volume.durable_files() == {}
        disk.volume.crash(random.Random(seed), LOSE_ALL)
        lost += not disk.volume.files()
    assert 0 < lost < 20


def test_sync_all_makes_everything_durable() -> None:
    disk = _disk()
    disk.mkdir("/d")
    fd = disk.open("/d/f", RW)
    disk.pwrite(fd, b"x", 0)
    disk.volume.sync_all()
    assert list(disk.volume.durable_files()) == ["/d/f"]
    disk.volume.crash(random.Random(1), LOSE_ALL)
    assert _content(disk.volume, "/d/f") == b"x"


def test_a_full_volume_writes_what_fits_and_then_refuses() -> None:
    disk = _disk(Volume(capacity_bytes=10))
    fd = disk.open("/f", RW)
    assert disk.pwrite(fd, b"x" * 8, 0) == 8
    assert disk.pwrite(fd, b"y" * 8, 8) == 2
    with pytest.raises(OSError, match="No space"):
        disk.pwrite(fd, b"z", 10)
    assert disk.pwrite(fd, b"over", 0) == 4
    assert disk.usage("/") == (10, 0)
    with pytest.raises(OSError, match="No space"):
        disk.fallocate_keep_size(fd, 10, 100)


def test_faults_strike_where_told_and_as_often() -> None:
    faults = DiskFaults()
    disk = _disk(faults=faults)
    fd = disk.open("/x.log", RW)
    other = disk.open("/x.index", RW)
    faults.rules.append(DiskFault(errno.EIO, ["pwrite"], "*.log", times=2))
    for _ in range(2):
        with pytest.raises(OSError, match="Input/output"):
            disk.pwrite(fd, b"x", 0)
    assert disk.pwrite(other, b"x", 0) == 1
    assert disk.pwrite(fd, b"x", 0) == 1


def test_a_failed_fsync_loses_the_writes_even_if_the_next_one_succeeds() -> None:
    faults = DiskFaults()
    disk = _disk(faults=faults)
    fd = _synced(disk, "/f", b"durable")
    disk.pwrite(fd, b"lost", 7)
    faults.rules.append(DiskFault(errno.EIO, ["fsync"], times=1))
    with pytest.raises(OSError, match="Input/output"):
        disk.fsync(fd)
    assert disk.pread(fd, 99, 0) == b"durablelost"
    disk.fsync(fd)
    disk.volume.crash(random.Random(1), KEEP_ALL)
    assert _content(disk.volume, "/f") == b"durable"


def test_short_counts_and_cold_reads_happen_when_asked_for() -> None:
    faults = DiskFaults()
    faults.short_write = faults.cold_read = 1.0
    disk = _disk(faults=faults)
    fd = disk.open("/f", RW)
    assert 1 <= disk.pwrite(fd, b"x" * 100, 0) < 100
    with pytest.raises(BlockingIOError):
        disk.preadv_nowait(fd, [bytearray(1)], 0)


def test_a_lock_falls_with_its_process() -> None:
    volume = Volume()
    one, two = _disk(volume), _disk(volume)
    fd = one.lock("/.lock")
    with pytest.raises(BlockingIOError):
        two.lock("/.lock")
    one.close(fd)
    two.lock("/.lock")
    two._process.alive = False
    one.lock("/.lock")


def test_a_dead_process_reaches_nothing() -> None:
    disk = _disk()
    fd = disk.open("/f", RW)
    disk._process.alive = False
    with pytest.raises(ProcessCrashed):
        disk.pwrite(fd, b"x", 0)
    disk.close(fd)
    assert _content(disk.volume, "/f") == b""
