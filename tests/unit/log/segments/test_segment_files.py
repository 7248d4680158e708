"""The names of a segment's files, and the indexes that follow them."""

import os
from pathlib import Path

import pytest

from odradek.log.files import FilePool
from odradek.log.names import INDEX_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX
from odradek.log.segments.files import SegmentFiles
from odradek.log.segments.indexes import SegmentIndexes
from tests.unit.log.support import FaultyDisk

BASE = "00000000000000000005"


@pytest.fixture
def pool() -> FilePool:
    return FilePool(FaultyDisk())


def files_of(pool: FilePool, path: Path, mark: str = "") -> SegmentFiles:
    for suffix in (".log", ".index"):
        (path / f"{BASE}{suffix}{mark}").write_bytes(b"")
    return SegmentFiles(pool.disk, str(path), 5, mark)


def indexes_of(pool: FilePool, path: Path) -> SegmentIndexes:
    indexes = SegmentIndexes(pool, files_of(pool, path), 5, 1024)
    indexes.reset()
    return indexes


def test_files_set_aside_have_their_names_of_deletion(pool: FilePool, tmp_path: Path) -> None:
    files = files_of(pool, tmp_path)
    files.set_aside()
    assert sorted(os.listdir(tmp_path)) == [f"{BASE}.index.deleted", f"{BASE}.log.deleted"]
    assert {f"{tmp_path}/{BASE}.index.deleted", f"{tmp_path}/{BASE}.log.deleted"} < set(files.deleted_paths())


def test_files_are_removed_where_they_are_there(pool: FilePool, tmp_path: Path) -> None:
    files = files_of(pool, tmp_path)
    files.unlink()
    files.unlink()
    assert os.listdir(tmp_path) == []


def test_swapped_files_take_the_names_of_a_live_segment(pool: FilePool, tmp_path: Path) -> None:
    files = files_of(pool, tmp_path, SWAP_SUFFIX)
    assert files.path(LOG_SUFFIX) == f"{tmp_path}/{BASE}.log.swap"
    files.take_place()
    assert sorted(os.listdir(tmp_path)) == [f"{BASE}.index", f"{BASE}.log"]
    assert files.path(LOG_SUFFIX) == f"{tmp_path}/{BASE}.log"


def test_open_indexes_follow_a_renamed_directory(pool: FilePool, tmp_path: Path) -> None:
    (tmp_path / "here").mkdir()
    files = files_of(pool, tmp_path / "here")
    indexes = SegmentIndexes(pool, files, 5, 1024)
    indexes.reset()
    files.moved(f"{tmp_path}/there")
    indexes.follow_names()
    assert indexes.offsets is not None and indexes.times is not None
    assert indexes.offsets.file.path == f"{tmp_path}/there/{BASE}.index"
    assert indexes.times.file.path == f"{tmp_path}/there/{BASE}.timeindex"


def test_growing_indexes_stay_in_memory_when_the_pool_takes_their_descriptors(
    pool: FilePool, tmp_path: Path
) -> None:
    indexes = indexes_of(pool, tmp_path)
    assert indexes.is_growing and indexes.offsets is not None and indexes.times is not None
    spare_offsets, spare_times = indexes.offsets.file.on_spared, indexes.times.file.on_spared
    assert spare_offsets is not None and spare_times is not None
    spare_offsets()
    spare_times()
    assert indexes.offsets is not None and indexes.times is not None
    indexes.is_growing = False
    spare_offsets()
    spare_times()
    assert indexes.offsets is None and indexes.times is None


def test_a_spared_index_is_still_synced(pool: FilePool, tmp_path: Path) -> None:
    indexes = indexes_of(pool, tmp_path)
    indexes.flush()
    indexes.is_growing = False
    assert indexes.offsets is not None and indexes.offsets.file.on_spared is not None
    indexes.offsets.file.on_spared()
    synced = [os.readlink(f"/proc/self/fd/{descriptor.fd}") for descriptor in indexes.flush()]
    assert synced == [f"{tmp_path}/{BASE}{suffix}" for suffix in (INDEX_SUFFIX, ".timeindex")]


def test_indexes_that_are_let_go_call_back_no_more(pool: FilePool, tmp_path: Path) -> None:
    indexes = indexes_of(pool, tmp_path)
    indexes.let_go()
    assert indexes.offsets is not None and indexes.offsets.file.on_spared is None
    assert indexes.times is not None and indexes.times.file.on_spared is None


def test_a_transaction_index_is_opened_once(pool: FilePool, tmp_path: Path) -> None:
    indexes = indexes_of(pool, tmp_path)
    assert indexes.txns is None
    assert indexes.open_txns() is indexes.open_txns() is indexes.txns
