"""Blocks asked for ahead of a segment's batches: given back by a cut, and after a write that failed."""

import errno
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.log.segments.blocks import Blocks
from tests.unit.log.support import FaultyDisk


@pytest.fixture
def disk() -> FaultyDisk:
    return FaultyDisk()


@pytest.fixture
def fd(tmp_path: Path) -> Iterator[int]:
    opened = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    os.write(opened, bytes(100))
    yield opened
    os.close(opened)


def test_a_preallocated_file_has_its_full_size_until_it_is_cut(disk: FaultyDisk, fd: int) -> None:
    blocks = Blocks(disk)
    blocks.preallocate(fd, 1 << 20)
    assert os.fstat(fd).st_size == blocks.reserved_bytes == 1 << 20
    blocks.cut(fd, 100)
    assert os.fstat(fd).st_size == 100 and blocks.reserved_bytes == 0


def test_blocks_ahead_do_not_change_the_size(disk: FaultyDisk, fd: int) -> None:
    blocks = Blocks(disk)
    blocks.reserve(fd, 100)
    assert os.fstat(fd).st_size == 100
    assert blocks.reserved_bytes > 100


def test_a_file_system_that_gives_none_is_asked_once(
    disk: FaultyDisk, fd: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(self: FaultyDisk, fd: int, offset: int, length: int) -> None:
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(FaultyDisk, "fallocate_keep_size", refuse, raising=False)
    blocks = Blocks(disk)
    blocks.reserve(fd, 100)
    assert blocks.reserved_bytes > 1 << 60


def test_a_failed_write_is_taken_back(disk: FaultyDisk, fd: int) -> None:
    blocks = Blocks(disk)
    blocks.take_back(fd, 40)
    assert os.fstat(fd).st_size == 40 and blocks.reserved_bytes == 0


def test_what_cannot_be_taken_back_for_lack_of_memory_is_cut_later(disk: FaultyDisk, fd: int) -> None:
    blocks = Blocks(disk)
    disk.fail["ftruncate"] = errno.ENOMEM
    blocks.take_back(fd, 40)
    assert blocks.reserved_bytes == 1, "a seal has something to cut"


def test_a_disk_that_cannot_take_back_has_failed(disk: FaultyDisk, fd: int) -> None:
    disk.fail["ftruncate"] = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        Blocks(disk).take_back(fd, 40)
