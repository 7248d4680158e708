"""The file under an index: when entries reach it, what a fresh one leaves of an older one, how it is cut."""

import errno
import os
from pathlib import Path

import pytest

from odradek.log.files import FilePool
from odradek.log.segments.index_file import PENDING_BYTES, WARM_BYTES, CorruptIndexError
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.segment import Segment
from tests.unit.log.support import NOW_MS, LogRuntime, config

BASE = 1000
ENTRY_BYTES = 8
MAX_BYTES = 1 << 16
GATHERED = PENDING_BYTES // ENTRY_BYTES


def index(runtime: LogRuntime, path: Path, count: int = 0, *, fresh: bool = True) -> OffsetIndex:
    made = OffsetIndex(FilePool(runtime.disk), str(path / "i.index"), BASE, MAX_BYTES, fresh=fresh)
    for i in range(1, count + 1):
        made.append(BASE + i, 100 * i)
    return made


def entry(number: int) -> bytes:
    return number.to_bytes(4, "big") + (100 * number).to_bytes(4, "big")


def content(path: Path) -> bytes:
    return (path / "i.index").read_bytes()


def test_entries_reach_the_file_a_few_at_a_time(runtime: LogRuntime, tmp_path: Path) -> None:
    made = index(runtime, tmp_path, GATHERED - 1)
    assert content(tmp_path) == b""
    assert made.last_offset == BASE + GATHERED - 1
    made.append(BASE + GATHERED, 100 * GATHERED)
    data = content(tmp_path)
    assert len(data) == MAX_BYTES
    assert data[: GATHERED * ENTRY_BYTES] == b"".join(entry(i) for i in range(1, GATHERED + 1))
    assert not any(data[GATHERED * ENTRY_BYTES :])


def test_a_fresh_one_leaves_nothing_of_what_it_found(runtime: LogRuntime, tmp_path: Path) -> None:
    index(runtime, tmp_path, 300).trim()
    assert len(content(tmp_path)) == 300 * ENTRY_BYTES
    made = index(runtime, tmp_path, 2)
    made.flush()
    data = content(tmp_path)
    assert data[: 2 * ENTRY_BYTES] == entry(1) + entry(2)
    assert not any(data[2 * ENTRY_BYTES :]), "an older entry would be taken for one of its own"
    made.trim()
    assert len(content(tmp_path)) == 2 * ENTRY_BYTES
    index(runtime, tmp_path).trim()
    assert content(tmp_path) == b""


def test_a_file_with_a_part_of_an_entry_is_corrupt(runtime: LogRuntime, tmp_path: Path) -> None:
    index(runtime, tmp_path, 3).trim()
    with (tmp_path / "i.index").open("ab") as file:
        file.write(b"x")
    with pytest.raises(CorruptIndexError, match="25 bytes are not entries of 8"):
        index(runtime, tmp_path, fresh=False)


def test_a_file_that_became_shorter_is_corrupt(runtime: LogRuntime, tmp_path: Path) -> None:
    index(runtime, tmp_path, 3_000).trim()
    made = index(runtime, tmp_path, fresh=False)
    os.truncate(tmp_path / "i.index", ENTRY_BYTES)
    with pytest.raises(CorruptIndexError, match="ends before entry"):
        made.lookup(BASE + 50)


def test_what_is_cut_off_is_not_in_the_file_any_more(runtime: LogRuntime, tmp_path: Path) -> None:
    made = index(runtime, tmp_path, 10)
    made.truncate_to(BASE + 5)
    assert content(tmp_path) == b"".join(entry(i) for i in range(1, 5))
    made.append(BASE + 7, 700)
    made.trim()
    assert content(tmp_path) == b"".join(entry(i) for i in (1, 2, 3, 4, 7))
    assert index(runtime, tmp_path, fresh=False).lookup(BASE + 6) == (BASE + 4, 400)


def test_a_truncation_above_the_last_entry_cuts_nothing(runtime: LogRuntime, tmp_path: Path) -> None:
    made = index(runtime, tmp_path, 10)
    made.truncate_to(BASE + 11)
    assert made.entries == 10
    assert content(tmp_path) == b"", "what it has gathered stays in memory"


def test_older_entries_are_let_go_once_they_are_written(runtime: LogRuntime, tmp_path: Path) -> None:
    warm = WARM_BYTES // ENTRY_BYTES
    made = index(runtime, tmp_path, 2 * warm - 1)
    assert len(made._offsets) == 2 * warm - 1
    made.append(BASE + 2 * warm, 200 * warm)
    assert len(made._offsets) == warm
    for number in (1, warm - 1, warm, warm + 1, 2 * warm):
        assert made.lookup(BASE + number) == (BASE + number, 100 * number)
        assert made.upper_bound(100 * number) == BASE + number


def test_entries_stay_in_memory_while_there_is_no_descriptor(runtime: LogRuntime, tmp_path: Path) -> None:
    made = index(runtime, tmp_path, GATHERED - 1)
    runtime.disk.fail["ftruncate"] = errno.EMFILE
    made.append(BASE + GATHERED, 100 * GATHERED)
    made.append(BASE + GATHERED + 1, 100 * GATHERED + 100)
    assert content(tmp_path) == b""
    runtime.disk.fail.clear()
    made.trim()
    assert content(tmp_path) == b"".join(entry(i) for i in range(1, GATHERED + 2))


def test_a_broken_disk_is_not_overlooked(runtime: LogRuntime, tmp_path: Path) -> None:
    made = index(runtime, tmp_path, GATHERED - 1)
    runtime.disk.fail["ftruncate"] = errno.EIO
    with pytest.raises(OSError, match="Input/output"):
        made.append(BASE + GATHERED, 100 * GATHERED)


def test_a_segment_that_cannot_be_made_leaves_no_file(runtime: LogRuntime, tmp_path: Path) -> None:
    runtime.disk.fail["ftruncate"] = errno.ENOSPC
    with pytest.raises(OSError, match="No space"):
        Segment.create(FilePool(runtime.disk), str(tmp_path), 0, config(preallocate=True), NOW_MS)
    assert os.listdir(tmp_path) == []
