"""The snapshot files of a log: which is loaded, which are removed, which a flush still has to sync."""

import os
from pathlib import Path

import pytest

from odradek.log.producers.entry import ProducerBatch, ProducerEntry
from odradek.log.producers.snapshot import CorruptSnapshotError, format_snapshot, parse_snapshot
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.records.kernel import crc32c
from odradek.runtime.real import RealDisk


def entry(offset: int) -> ProducerEntry:
    return ProducerEntry(7, 0, -1, 99, -1, (ProducerBatch(offset, offset - 1, 0, 99),))


def taken(path: Path, *offsets: int) -> ProducerSnapshotFiles:
    snapshots = ProducerSnapshotFiles(RealDisk(), str(path))
    for offset in offsets:
        snapshots.take([entry(offset)], offset)
    return snapshots


def there(path: Path) -> list[int]:
    return sorted(
        int(name.removesuffix(".snapshot")) for name in os.listdir(path) if name.endswith("snapshot")
    )


@pytest.mark.parametrize(
    ("start", "end", "loaded"),
    [(0, 99, 30), (0, 30, 30), (0, 29, 20), (19, 29, 20), (20, 29, None), (30, 99, None), (0, 9, None)],
)
def test_the_newest_within_the_log_is_loaded(
    tmp_path: Path, start: int, end: int, loaded: int | None
) -> None:
    snapshots = taken(tmp_path, 10, 20, 30)
    expected = ([], start) if loaded is None else ([entry(loaded)], loaded)
    assert snapshots.load_newest(start, end) == expected
    assert snapshots.offsets == there(tmp_path) == [10, 20, 30]


def test_a_broken_one_is_removed_and_an_older_one_loaded(tmp_path: Path) -> None:
    snapshots = taken(tmp_path, 10, 20, 30)
    Path(snapshots.path(30)).write_bytes(b"torn")
    os.unlink(snapshots.path(20))
    assert snapshots.load_newest(0, 99) == ([entry(10)], 10)
    assert snapshots.offsets == there(tmp_path) == [10]


def test_a_snapshot_of_another_length_than_it_says_is_broken() -> None:
    data = bytearray(format_snapshot([entry(1), entry(2)]))
    for count in (1, 3):
        data[6:10] = count.to_bytes(4, "big")
        data[2:6] = crc32c(bytes(data[6:])).to_bytes(4, "big")
        with pytest.raises(CorruptSnapshotError, match="producers"):
            parse_snapshot(bytes(data))


def test_what_was_taken_is_to_be_synced_once(tmp_path: Path) -> None:
    snapshots = taken(tmp_path, 10, 20, 30)
    assert snapshots.unsynced() == [10, 20, 30]
    snapshots.remove(20)
    snapshots.synced([10, 20])
    assert snapshots.unsynced() == [30]
    snapshots.take([entry(10)], 10)
    assert sorted(snapshots.unsynced()) == [10, 30]
    assert snapshots.offsets == [10, 30]


def test_a_doubted_one_is_not_loaded_and_goes_unless_it_is_taken_again(tmp_path: Path) -> None:
    snapshots = taken(tmp_path, 10, 20, 30, 40)
    snapshots.synced([10, 20, 30, 40])
    written = os.stat(snapshots.path(30)).st_mtime_ns
    snapshots.doubt_above(20)
    assert snapshots.offsets == [10, 20]
    assert snapshots.load_newest(0, 99) == ([entry(20)], 20)
    snapshots.take([entry(30)], 30)
    assert os.stat(snapshots.path(30)).st_mtime_ns == written, "it has the same bytes"
    assert snapshots.unsynced() == [30], "but may never have been synced"
    snapshots.remove_doubted()
    assert snapshots.offsets == there(tmp_path) == [10, 20, 30]


def test_a_doubted_one_that_says_something_else_is_written_again(tmp_path: Path) -> None:
    snapshots = taken(tmp_path, 30)
    snapshots.doubt_above(0)
    snapshots.take([entry(5)], 30)
    snapshots.remove_doubted()
    assert snapshots.load_newest(0, 99) == ([entry(5)], 30)


@pytest.mark.parametrize(
    ("start", "end", "left"), [(0, 99, [10, 20, 30]), (10, 30, [20, 30]), (9, 29, [10, 20]), (30, 30, [])]
)
def test_what_lies_outside_the_log_is_removed(tmp_path: Path, start: int, end: int, left: list[int]) -> None:
    snapshots = taken(tmp_path, 10, 20, 30)
    snapshots.remove_outside(start, end)
    assert snapshots.offsets == there(tmp_path) == left


@pytest.mark.parametrize(
    ("segments", "left"),
    [
        ([0, 10, 20], [10, 20, 35]),
        ([0, 10, 35], [10, 35]),
        ([0, 10, 40], [10]),
        ([], []),
    ],
)
def test_one_that_belongs_to_no_segment_goes_unless_it_is_the_newest(
    tmp_path: Path, segments: list[int], left: list[int]
) -> None:
    snapshots = taken(tmp_path, 5, 10, 20, 30, 35)
    if 20 not in segments:
        snapshots.remove(20)
    snapshots.remove_strays(segments)
    assert snapshots.offsets == there(tmp_path) == left


def test_one_set_aside_keeps_its_bytes_under_the_name_of_deletion(tmp_path: Path) -> None:
    snapshots = taken(tmp_path, 10, 20)
    aside = snapshots.set_aside(10)
    assert aside == snapshots.path(10) + ".deleted"
    assert os.path.exists(aside)
    assert snapshots.offsets == there(tmp_path) == [20]
    assert snapshots.set_aside(10) is None
