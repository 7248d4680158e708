"""A cleaned segment takes the place of others: their snapshots, their files, and what an error leaves."""

import errno
import shutil

import pytest

from odradek.core.errors import StorageError
from odradek.log.cleaning.job import Replacement
from tests.unit.log.parts.support import Parts


def three_segments(parts: Parts) -> Replacement:
    """Segments at 0, 3 and 6, each with a snapshot but the first; and the swap files for the first two."""
    for end in (3, 6):
        parts.write(3)
        parts.roller.roll_at(end)
    parts.flush()
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(parts.path / f"{0:020}{suffix}", parts.path / f"{0:020}{suffix}.swap")
    size = (parts.path / f"{0:020}.log").stat().st_size
    return Replacement(0, size, False, (0, 3))


def test_the_snapshots_of_replaced_segments_go_with_them(parts: Parts) -> None:
    replacement = three_segments(parts)
    assert parts.snapshots.offsets == [3, 6]
    changes = parts.dir.changes
    segment = parts.compaction.begin_swap(replacement)
    assert segment is not None
    assert [s.base_offset for s in parts.segments.all()] == [0, 6]
    assert parts.snapshots.offsets == [6]
    assert f"{3:020}.snapshot.deleted" in parts.files()
    assert parts.dir.changes == changes + 1
    parts.compaction.finish_swap(segment)
    assert parts.dir.changes == changes + 2
    parts.local_log.purge_deleted(1 << 62)
    assert not [name for name in parts.files() if name.endswith((".deleted", ".swap"))]


def test_the_snapshot_at_the_start_of_the_cleaned_segment_stays(parts: Parts) -> None:
    three_segments(parts)
    parts.write(1)
    parts.roller.roll_at(7)
    for suffix in (".log", ".index", ".timeindex"):
        shutil.copy(parts.path / f"{3:020}{suffix}", parts.path / f"{3:020}{suffix}.swap")
    size = (parts.path / f"{3:020}.log").stat().st_size
    assert parts.compaction.begin_swap(Replacement(3, size, False, (3, 6))) is not None
    assert parts.snapshots.offsets == [3, 7]


@pytest.mark.parametrize("replaced", [(0, 3, 6), (0, 4)])
def test_segments_that_are_not_all_there_or_active_are_not_replaced(
    parts: Parts, replaced: tuple[int, ...]
) -> None:
    replacement = three_segments(parts)._replace(replaced=replaced)
    assert parts.compaction.begin_swap(replacement) is None
    assert [s.base_offset for s in parts.segments.all()] == [0, 3, 6]


def test_a_log_that_failed_replaces_nothing(parts: Parts) -> None:
    replacement = three_segments(parts)
    segment = parts.compaction.begin_swap(replacement)
    assert segment is not None
    parts.dir.fail(OSError(errno.EIO, "broken"), "reading")
    with pytest.raises(StorageError):
        parts.compaction.finish_swap(segment)
    with pytest.raises(StorageError):
        parts.compaction.begin_swap(replacement)
    assert f"{0:020}.log.swap" in parts.files()


def test_a_swap_that_lacks_descriptors_halfway_gives_the_log_up(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Which files have their new names is not known: a restart finds out."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    replacement = three_segments(parts)
    with monkeypatch.context() as patched:
        patched.setattr(type(parts.disk), "rename", refuse)
        with pytest.raises(StorageError):
            parts.compaction.begin_swap(replacement)
    assert parts.dir.failure is not None


def test_a_swap_that_cannot_be_finished_gives_the_log_up(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    segment = parts.compaction.begin_swap(three_segments(parts))
    assert segment is not None
    monkeypatch.setattr(type(parts.disk), "rename", refuse)
    with pytest.raises(StorageError):
        parts.compaction.finish_swap(segment)
    assert parts.dir.failure is not None


def test_a_truncation_takes_the_cleaned_offset_with_it(parts: Parts) -> None:
    parts.compaction.truncated(5)
    assert parts.compaction.cleaned_offset is None
    parts.compaction.cleaned_offset = 9
    parts.compaction.truncated(12)
    assert parts.compaction.cleaned_offset == 9
    parts.compaction.truncated(4)
    assert parts.compaction.cleaned_offset == 4
