"""Offset, time and transaction index: searching in memory and on disk, growing, trimming, truncating."""

import os
from pathlib import Path

import pytest

from odradek.log.files import FilePool
from odradek.log.segments.index_file import CorruptIndexError
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.segments.txn_index import AbortedTxn, TransactionIndex
from tests.unit.log.support import LogRuntime

BASE = 1000
MANY = 5000  # more than is held in memory


@pytest.fixture
def pool(runtime: LogRuntime) -> FilePool:
    return FilePool(runtime.disk)


def offset_index(pool: FilePool, path: Path, *, max_bytes: int = 1 << 20, fresh: bool = True) -> OffsetIndex:
    return OffsetIndex(pool, str(path / "i.index"), BASE, max_bytes, fresh=fresh)


def time_index(pool: FilePool, path: Path, *, max_bytes: int = 1 << 20, fresh: bool = True) -> TimeIndex:
    return TimeIndex(pool, str(path / "i.timeindex"), BASE, max_bytes, fresh=fresh)


def test_an_empty_index_points_to_the_beginning(pool: FilePool, tmp_path: Path) -> None:
    assert offset_index(pool, tmp_path).lookup(BASE + 5) == (BASE, 0)
    assert time_index(pool, tmp_path).lookup(99) == (-1, BASE)


def test_lookup_gives_the_last_entry_at_or_before_an_offset(pool: FilePool, tmp_path: Path) -> None:
    index = offset_index(pool, tmp_path)
    for i in range(1, MANY):
        index.append(BASE + 10 * i, 100 * i)
    for i in (1, 2, 63, 64, 65, 1024, 2500, MANY - 2, MANY - 1):
        assert index.lookup(BASE + 10 * i) == (BASE + 10 * i, 100 * i)
        assert index.lookup(BASE + 10 * i + 9) == (BASE + 10 * i, 100 * i)
    assert index.lookup(BASE + 9) == (BASE, 0)


def test_upper_bound_is_the_first_entry_at_or_after_a_position(pool: FilePool, tmp_path: Path) -> None:
    index = offset_index(pool, tmp_path)
    for i in range(1, MANY):
        index.append(BASE + 10 * i, 100 * i)
    assert index.upper_bound(0) == BASE + 10
    for i in (1, 700, 2900, MANY - 1):
        assert index.upper_bound(100 * i) == BASE + 10 * i
        assert index.upper_bound(100 * i - 99) == BASE + 10 * i
    assert index.upper_bound(100 * MANY) is None


def test_time_lookup_gives_the_last_entry_at_or_before_a_time(pool: FilePool, tmp_path: Path) -> None:
    index = time_index(pool, tmp_path)
    for i in range(1, MANY):
        index.maybe_append(50 * i, BASE + 10 * i)
    for i in (1, 2, 64, 2000, MANY - 1):
        assert index.lookup(50 * i) == (50 * i, BASE + 10 * i)
        assert index.lookup(50 * i + 49) == (50 * i, BASE + 10 * i)
    assert index.lookup(49) == (-1, BASE)


def test_a_time_that_is_not_later_is_not_indexed(pool: FilePool, tmp_path: Path) -> None:
    index = time_index(pool, tmp_path)
    index.maybe_append(100, BASE + 1)
    index.maybe_append(100, BASE + 9)
    assert index.entries == 1
    assert index.last_entry == (100, BASE + 1)


def test_the_file_is_preallocated_while_it_grows_and_trimmed_afterwards(
    pool: FilePool, tmp_path: Path
) -> None:
    index = offset_index(pool, tmp_path, max_bytes=65536)
    index.append(BASE + 1, 10)
    index.flush()
    assert os.path.getsize(tmp_path / "i.index") == 65536
    index.trim()
    assert os.path.getsize(tmp_path / "i.index") == 8


def test_the_preallocated_size_is_a_multiple_of_the_entry(pool: FilePool, tmp_path: Path) -> None:
    index = time_index(pool, tmp_path, max_bytes=10485760)
    index.maybe_append(1, BASE)
    index.flush()
    assert os.path.getsize(tmp_path / "i.timeindex") == 10485756


def test_the_last_slot_of_a_time_index_is_kept_free(pool: FilePool, tmp_path: Path) -> None:
    index = time_index(pool, tmp_path, max_bytes=36)
    index.maybe_append(1, BASE + 1)
    assert not index.is_full
    index.maybe_append(2, BASE + 2)
    assert index.is_full
    index.maybe_append(3, BASE + 3)
    index.trim()
    assert time_index(pool, tmp_path, fresh=False).last_entry == (3, BASE + 3)


def test_an_index_for_less_than_one_entry_is_full_from_the_start(pool: FilePool, tmp_path: Path) -> None:
    assert offset_index(pool, tmp_path, max_bytes=7).is_full


def test_a_reopened_index_is_the_same(pool: FilePool, tmp_path: Path) -> None:
    index = offset_index(pool, tmp_path)
    times = time_index(pool, tmp_path)
    for i in range(1, MANY):
        index.append(BASE + i, 100 * i)
        times.maybe_append(i, BASE + i)
    index.trim()
    times.trim()
    again, times_again = offset_index(pool, tmp_path, fresh=False), time_index(pool, tmp_path, fresh=False)
    assert (again.entries, again.last_entry) == (MANY - 1, (BASE + MANY - 1, 100 * (MANY - 1)))
    assert (times_again.entries, times_again.last_entry) == (MANY - 1, (MANY - 1, BASE + MANY - 1))
    assert again.lookup(BASE + 17) == (BASE + 17, 1700)
    again.append(BASE + MANY, 100 * MANY)
    assert again.lookup(BASE + MANY) == (BASE + MANY, 100 * MANY)


@pytest.mark.parametrize("keep", [0, 1, 3, 1500, MANY - 2, MANY - 1])
def test_truncation_forgets_entries_at_and_above_an_offset(pool: FilePool, tmp_path: Path, keep: int) -> None:
    index, times = offset_index(pool, tmp_path), time_index(pool, tmp_path)
    for i in range(1, MANY):
        index.append(BASE + 2 * i, 100 * i)
        times.maybe_append(i, BASE + 2 * i)
    index.truncate_to(BASE + 2 * keep + 1)
    times.truncate_to(BASE + 2 * keep + 1)
    assert (index.entries, times.entries) == (keep, keep)
    index.append(BASE + 2 * keep + 1, 100 * keep + 1)
    assert index.lookup(BASE + 2 * MANY) == (BASE + 2 * keep + 1, 100 * keep + 1)
    index.truncate_to(BASE + 2 * keep + 1)
    assert index.entries == keep


def test_a_file_that_is_not_whole_entries_is_corrupt(pool: FilePool, tmp_path: Path) -> None:
    (tmp_path / "i.index").write_bytes(bytes(9))
    with pytest.raises(CorruptIndexError):
        offset_index(pool, tmp_path, fresh=False)


def test_the_zeros_of_preallocation_are_no_entries(pool: FilePool, tmp_path: Path) -> None:
    index, times = offset_index(pool, tmp_path), time_index(pool, tmp_path)
    index.append(BASE + 1, 10)
    index.flush()
    times.maybe_append(5, BASE + 1)
    times.flush()
    with pytest.raises(CorruptIndexError):
        offset_index(pool, tmp_path, fresh=False)
    with pytest.raises(CorruptIndexError):
        time_index(pool, tmp_path, fresh=False)


def test_an_offset_index_takes_only_rising_offsets(pool: FilePool, tmp_path: Path) -> None:
    index = offset_index(pool, tmp_path)
    index.append(BASE + 5, 10)
    with pytest.raises(AssertionError):
        index.append(BASE + 5, 20)


def txn_index(pool: FilePool, path: Path) -> TransactionIndex:
    return TransactionIndex(pool, str(path / "i.txnindex"), BASE)


def test_a_transaction_index_has_a_file_only_once_there_is_an_aborted_one(
    pool: FilePool, tmp_path: Path
) -> None:
    index = txn_index(pool, tmp_path)
    assert index.entries == []
    assert os.listdir(tmp_path) == []
    index.append(AbortedTxn(7, BASE, BASE + 4, BASE + 5))
    assert os.path.getsize(tmp_path / "i.txnindex") == 34
    assert txn_index(pool, tmp_path).entries == [AbortedTxn(7, BASE, BASE + 4, BASE + 5)]


def test_aborted_transactions_are_collected_where_they_overlap(pool: FilePool, tmp_path: Path) -> None:
    index = txn_index(pool, tmp_path)
    index.append(AbortedTxn(1, BASE, BASE + 10, BASE + 5))
    index.append(AbortedTxn(2, BASE + 5, BASE + 20, BASE + 21))
    index.append(AbortedTxn(3, BASE + 30, BASE + 40, BASE + 41))

    def collect(start: int, end: int) -> tuple[list[tuple[int, int]], bool]:
        found: list[tuple[int, int]] = []
        return found, index.collect(BASE + start, BASE + end, found)

    assert collect(0, 3) == ([(1, BASE)], True)
    assert collect(0, 6) == ([(1, BASE), (2, BASE + 5)], True)
    assert collect(11, 31) == ([(2, BASE + 5), (3, BASE + 30)], True)
    assert collect(21, 100) == ([(3, BASE + 30)], False)


def test_truncation_forgets_transactions_whose_marker_is_gone(pool: FilePool, tmp_path: Path) -> None:
    index = txn_index(pool, tmp_path)
    index.append(AbortedTxn(1, BASE, BASE + 10, BASE + 5))
    index.append(AbortedTxn(2, BASE + 5, BASE + 20, BASE + 21))
    index.truncate_to(BASE + 20)
    assert txn_index(pool, tmp_path).entries == [AbortedTxn(1, BASE, BASE + 10, BASE + 5)]


@pytest.mark.parametrize("data", [bytes(33), bytes(34), b"\x00\x01" + bytes(32)])
def test_a_transaction_index_that_cannot_be_one_is_corrupt(
    pool: FilePool, tmp_path: Path, data: bytes
) -> None:
    (tmp_path / "i.txnindex").write_bytes(data)
    with pytest.raises(CorruptIndexError):
        _ = txn_index(pool, tmp_path).entries


class ReadCounter(LogRuntime):
    """Counts the reads of files."""

    def __init__(self) -> None:
        super().__init__()
        self.reads = 0
        plain = self.disk.pread

        def pread(fd: int, count: int, offset: int) -> bytes:
            self.reads += 1
            return plain(fd, count, offset)

        self.disk = type("CountingDisk", (type(self.disk),), {"pread": staticmethod(pread)})()


def test_the_newest_entries_are_searched_without_a_read(tmp_path: Path) -> None:
    """They are 8 KB, as much as Apache Kafka keeps warm; further back a search reads a few entries."""
    runtime = ReadCounter()
    index = offset_index(FilePool(runtime.disk), tmp_path)
    for i in range(1, MANY):
        index.append(BASE + 10 * i, 100 * i)
    index.trim()
    index = offset_index(FilePool(runtime.disk), tmp_path, fresh=False)
    runtime.reads = 0
    for i in range(MANY - 8192 // 8, MANY):
        assert index.lookup(BASE + 10 * i) == (BASE + 10 * i, 100 * i)
    assert runtime.reads == 0
    index.lookup(BASE + 10)
    assert 0 < runtime.reads <= 2 + (MANY // 64).bit_length()
    runtime.reads = 0
    for i in range(1, 500):
        index.lookup(BASE + 10 * i)
    assert runtime.reads <= 1, "what follows is read ahead"
