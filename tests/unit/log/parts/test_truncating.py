"""A truncation resets every part of a log, durably, or the log becomes unusable."""

import errno

import pytest

from odradek.core.errors import StorageError
from odradek.core.types import TopicPartition
from odradek.log.parts.reading import Position
from tests.unit.log.parts.support import Parts
from tests.unit.log.support import TP, config, transactional


def written(parts: Parts) -> None:
    """Three durable segments: two records each from 0 and 2, and from 4 on two batches of one."""
    for count in (2, 2):
        parts.write(count)
        parts.roller.roll_at(parts.bounds.log_end_offset)
    parts.write(1)
    parts.write(1)
    parts.bounds.advance_high_watermark(6)
    parts.epochs.assign(0, 0)
    parts.epochs.assign(1, 4)
    parts.flush()


def test_a_truncation_takes_every_part_back(parts: Parts) -> None:
    written(parts)
    parts.compaction.cleaned_offset = 5
    assert parts.truncator.truncate_to(5)
    assert parts.bounds.log_end_offset == parts.bounds.high_watermark == 5
    assert parts.durability.recovery_point == parts.compaction.cleaned_offset == 5
    assert parts.truncator.truncate_to(3)
    assert parts.bounds.log_end_offset == 2, "a batch goes as a whole"
    assert parts.durability.recovery_point == parts.compaction.cleaned_offset == 2
    assert parts.epochs.entries == [(0, 0)]
    assert parts.snapshots.offsets == [2]
    assert parts.segments.base_offsets == [0, 2]


def test_what_is_cut_off_is_gone_durably(parts: Parts) -> None:
    written(parts)
    parts.take_synced()
    parts.truncator.truncate_to(5)
    synced = parts.take_synced()
    assert synced[0] == "orders-0/"
    assert "00000000000000000004.log" in synced


def test_there_is_nothing_at_the_log_end(parts: Parts) -> None:
    written(parts)
    assert not parts.truncator.truncate_to(6)
    assert parts.bounds.truncations == 0


def test_a_listener_hears_when_less_is_durable(parts: Parts) -> None:
    heard: list[TopicPartition] = []
    parts.truncator.on_truncated = heard.append
    written(parts)
    parts.write(2)
    parts.truncator.truncate_to(6)
    assert heard == [], "the records were not durable"
    parts.truncator.truncate_to(5)
    assert heard == [TP]


def test_a_log_restarts_empty_at_an_offset(parts: Parts) -> None:
    written(parts)
    parts.compaction.cleaned_offset = 5
    parts.truncator.restart_at(3)
    bounds = parts.bounds
    assert bounds.log_start_offset == bounds.high_watermark == bounds.log_end_offset == 3
    assert parts.durability.recovery_point == parts.settling.settled_offset == 3
    assert parts.compaction.cleaned_offset == 3
    assert parts.segments.base_offsets == [3]
    assert parts.epochs.entries == [] and parts.snapshots.offsets == []
    assert [name for name in parts.files() if name.endswith(".log")] == ["00000000000000000003.log"]


def test_a_truncation_below_the_first_segment_restarts_the_log(parts: Parts) -> None:
    parts.truncator.restart_at(5)
    parts.write(2)
    assert parts.truncator.truncate_to(3)
    assert parts.bounds.log_start_offset == parts.bounds.log_end_offset == 3


def test_the_marks_of_what_is_cut_off_go(parts: Parts) -> None:
    parts.write(2)
    parts.roller.roll_at(2)
    parts.write(2)
    parts.roller.roll_at(4)
    assert parts.marks.end_offsets == [2, 4]
    parts.truncator.truncate_to(3)
    assert parts.marks.end_offsets == [2]
    assert [name for name in parts.files() if name.endswith(".unflushed")] == [
        "00000000000000000002.unflushed"
    ]


@pytest.mark.parametrize("error", [errno.EIO, errno.EMFILE])
def test_a_truncation_that_fails_halfway_ends_the_use_of_the_log(parts: Parts, error: int) -> None:
    written(parts)
    parts.disk.fail["ftruncate"] = error
    with pytest.raises(StorageError, match="Error while truncating orders-0"):
        parts.truncator.truncate_to(5)
    assert parts.dir.failure is not None


def test_a_truncation_removes_what_a_cleaning_has_made_of_the_end(parts: Parts) -> None:
    written(parts)
    leftover = parts.path / "00000000000000000002.log.cleaned"
    leftover.touch()
    parts.truncator.truncate_to(5)
    assert leftover.exists(), "no cleaning is under way"
    parts.compaction.being_cleaned = True
    parts.truncator.truncate_to(4)
    assert not leftover.exists()


# --- what may not outlive the records ---------------------------------------------------------------------


def two_segments(parts: Parts) -> list[object]:
    """Segments at 0 and 3, a mark between them, a flush that acknowledgements wait for; who hears of it."""
    parts.config.update(config(flush_messages=1))
    parts.write(3)
    parts.roller.roll_at(3)
    parts.write(2)
    assert parts.settling.await_flush(3)
    heard: list[object] = []
    parts.truncator.on_truncated = heard.append
    return heard


def test_a_log_that_restarts_leaves_nothing_behind(parts: Parts) -> None:
    two_segments(parts)
    (parts.path / f"{0:020}.log.swap").write_bytes(b"")
    parts.compaction.being_cleaned = True
    (sent,) = transactional(0).batches
    parts.producers.replay(sent._replace(base_offset=1), None)
    parts.bounds.transactions_changed()
    parts.reader.newest = Position(parts.segments.active, 3, 0, 10)
    parts.take_synced()
    parts.truncator.restart_at(100)
    assert (parts.marks.end_offsets, parts.snapshots.offsets) == ([], [])
    named = [name for name in parts.files() if name != "leader-epoch-checkpoint"]
    assert named == [f"{100:020}.index", f"{100:020}.log", f"{100:020}.timeindex"]
    assert "orders-0/" in parts.take_synced()
    assert parts.settling.settled_offset == 100
    assert parts.bounds.last_stable_offset == 100
    assert parts.reader.newest is None


def test_a_log_that_restarts_below_what_was_durable_is_reported(parts: Parts) -> None:
    heard = two_segments(parts)
    parts.flush()
    parts.truncator.restart_at(100)
    assert heard == []
    parts.truncator.restart_at(2)
    assert heard == [TP]


def test_a_restart_that_lacks_descriptors_halfway_gives_the_log_up(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EMFILE, "too many open files")

    two_segments(parts)
    monkeypatch.setattr(type(parts.disk), "fsync_dir", refuse)
    with pytest.raises(StorageError):
        parts.truncator.restart_at(100)
    assert parts.dir.failure is not None


def test_what_is_cut_off_is_not_waited_for_nor_found_again(parts: Parts) -> None:
    two_segments(parts)
    parts.reader.newest = Position(parts.segments.active, 3, 0, 10)
    assert parts.truncator.truncate_to(3)
    assert parts.bounds.log_end_offset == 3
    assert parts.settling.settled_offset == 3
    assert parts.reader.newest is None
    assert parts.marks.end_offsets == [3], "the first segment is not durable yet"
    assert parts.truncator.truncate_to(0)
    assert [segment.base_offset for segment in parts.segments.all()] == [0]
    assert parts.marks.end_offsets == []
