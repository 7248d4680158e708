"""Errors of a failing disk name the file and the position. The operating system's errors of calls by
descriptor name neither."""

import errno
import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from odradek.core.errors import StorageError
from odradek.log.files import read_file, read_fully, write_file, write_fully
from odradek.log.manager import LogManager
from odradek.log.segments.batch_search import find_batch, last_offset_at
from odradek.runtime.api import Disk
from odradek.runtime.real import RealDisk
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.volume import Volume
from tests.unit.log.support import LogRuntime, VolumeRuntime, append, batch, config, open_log


class PlainRuntime(LogRuntime):
    """A real disk without faults made up."""

    def __init__(self) -> None:
        super().__init__()
        self.disk = RealDisk()  # type: ignore[assignment]


@pytest.fixture
def small_files() -> Iterator[None]:
    """No file may grow beyond 600 bytes."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (600, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_write_that_does_not_fit(tmp_path: Path, small_files: None) -> None:
    with pytest.raises(OSError, match=r"at byte offset 600: .*/f\.tmp'"):
        write_file(RealDisk(), str(tmp_path / "f"), bytes(700))


def test_an_index_that_does_not_fit(tmp_path: Path, small_files: None) -> None:
    log = open_log(PlainRuntime(), tmp_path, changes={"index_interval_bytes": 0})
    append(log, batch(), batch(), batch())
    with pytest.raises(OSError, match=r"orders-0/0{20}\.index"):
        log.segments.active.flush_indexes()  # extended to 10 MB


@pytest.mark.parametrize(
    "read",
    [
        lambda disk, fd: read_fully(disk, fd, 10, 30),
        lambda disk, fd: find_batch(disk, fd, 100, 0, 5, (0, 30)),
        lambda disk, fd: last_offset_at(disk, fd, 30),
        lambda disk, fd: write_fully(disk, fd, b"?", 30),
    ],
)
def test_bytes_that_cannot_be_read_or_written(tmp_path: Path, read: Callable[[Disk, int], object]) -> None:
    fd = os.open(tmp_path, os.O_RDONLY)  # a directory has no bytes
    try:
        with pytest.raises(OSError, match=rf"at byte offset 30: '{tmp_path}'"):
            read(RealDisk(), fd)
    finally:
        os.close(fd)


def test_a_small_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(IsADirectoryError, match=str(tmp_path)):
        read_file(RealDisk(), str(tmp_path))


@pytest.mark.parametrize("call", ["fsync", "fdatasync"])
def test_a_sync_that_fails(call: str) -> None:
    reading, writing = os.pipe()
    try:
        with pytest.raises(OSError, match="pipe:"):
            getattr(RealDisk(), call)(writing)
    finally:
        os.close(reading)
        os.close(writing)


def test_a_file_that_cannot_be_cut(tmp_path: Path) -> None:
    (tmp_path / "f").touch()
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    try:
        with pytest.raises(OSError, match=f"'{tmp_path}/f'"):
            RealDisk().ftruncate(fd, 3)
    finally:
        os.close(fd)


def test_a_descriptor_that_is_none() -> None:
    with pytest.raises(OSError, match="Bad file descriptor"):
        RealDisk().fsync(1 << 20)


@pytest.mark.parametrize("size", [1, 200_000], ids=["read at once", "read in steps"])
def test_a_recovery_that_cannot_read(size: int) -> None:
    """The simulated disk tells no more of a descriptor than a real one."""
    volume = Volume()
    runtime = VolumeRuntime(volume)
    runtime.disk.makedirs("/data")
    log = open_log(runtime, Path("/data"))
    append(log, batch(value=bytes(size)))
    runtime.process.alive = False

    runtime = VolumeRuntime(volume)
    runtime.faults.rules.append(DiskFault(errno.EIO, ["pread"], "*.log"))
    manager = LogManager(runtime, ["/data"])
    manager.open()
    with pytest.raises(StorageError, match=r"at byte offset 0: '/data/orders-0/0{20}\.log'"):
        manager.load(lambda topic: config())
