"""Descriptors: limited, reopened, open during reads, closed when the system has none left."""

import errno
import os
from pathlib import Path

import pytest

from odradek.log.files import FilePool, PooledFile, read_file, write_file
from tests.unit.log.support import LogRuntime


def pool_of(
    runtime: LogRuntime, path: Path, files: int, max_descriptors: int
) -> tuple[FilePool, list[PooledFile]]:
    pool = FilePool(runtime.disk, max_descriptors)
    return pool, [pool.create(str(path / str(i))) for i in range(files)]


def opened(files: list[PooledFile]) -> list[int]:
    return [i for i, file in enumerate(files) if file.handle is not None]


def test_the_longest_unused_file_is_closed_first(runtime: LogRuntime, tmp_path: Path) -> None:
    _, files = pool_of(runtime, tmp_path, 4, 4)
    for i in (0, 2):
        files[i].open()
    more = FilePool.create(files[0]._pool, str(tmp_path / "more"))
    assert opened(files) == [0, 2, 3]
    assert more.handle is not None


def test_a_closed_file_is_opened_again(runtime: LogRuntime, tmp_path: Path) -> None:
    pool, files = pool_of(runtime, tmp_path, 10, 3)
    assert len(opened(files)) == 3
    runtime.disk.pwrite(files[0].open().fd, b"again", 0)
    assert read_file(runtime.disk, files[0].path) == b"again"
    assert len(opened(files)) == 3
    assert pool.max_descriptors == 3


def test_a_descriptor_in_use_survives_its_eviction(runtime: LogRuntime, tmp_path: Path) -> None:
    pool, files = pool_of(runtime, tmp_path, 1, 1)
    kept = files[0].open()
    runtime.disk.pwrite(kept.fd, b"still", 0)
    pool.create(str(tmp_path / "other"))
    pool.create(str(tmp_path / "another"))
    assert files[0].handle is None
    assert runtime.disk.pread(kept.fd, 10, 0) == b"still"


def test_without_free_descriptors_the_pool_makes_do_with_fewer(runtime: LogRuntime, tmp_path: Path) -> None:
    pool, files = pool_of(runtime, tmp_path, 8, 100)
    refusals = [OSError(errno.EMFILE, "too many open files")]

    class Exhausted(type(runtime.disk)):  # type: ignore[misc]
        def open(self, path: str, flags: int, mode: int = 0o644) -> int:
            if refusals:
                raise refusals.pop()
            return os.open(path, flags, mode)

    pool.disk = Exhausted()
    assert pool.create(str(tmp_path / "one-more")).handle is not None
    assert len(opened(files)) == 4


def test_one_open_looks_at_few_files_however_many_are_in_use(runtime: LogRuntime, tmp_path: Path) -> None:
    pool, files = pool_of(runtime, tmp_path, 300, 300)
    looks: list[bool] = []

    class Watched(PooledFile):
        __slots__ = ()

        def spare(self) -> bool:
            looks.append(self.used)
            return super().spare()

    for file in files:
        file.open()
        file.__class__ = Watched
    pool.create(str(tmp_path / "more"))
    assert len(opened(files)) == 299
    assert len(looks) < 40


def test_any_other_error_is_told(runtime: LogRuntime, tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        PooledFile(FilePool(runtime.disk), str(tmp_path / "missing")).open()


def test_a_file_is_replaced_as_a_whole(runtime: LogRuntime, tmp_path: Path) -> None:
    path = str(tmp_path / "file")
    for content in (b"first", b"", b"second" * 1000):
        write_file(runtime.disk, path, content)
        assert read_file(runtime.disk, path) == content
    assert os.listdir(tmp_path) == ["file"]
