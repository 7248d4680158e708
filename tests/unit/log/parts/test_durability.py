"""What a flush syncs, and what it proves."""

import errno

import pytest

from odradek.core.errors import ExhaustedError, StorageError
from tests.unit.log.parts.support import Parts

FIRST = "00000000000000000000"


def test_the_first_flush_syncs_the_records_and_both_directories(parts: Parts) -> None:
    parts.write(5)
    assert parts.flush() == [f"{FIRST}.log", "orders-0/", "data/"]
    assert parts.durability.recovery_point == parts.durability.restart_offset == 5


def test_a_later_flush_syncs_the_records_alone(parts: Parts) -> None:
    parts.write()
    parts.flush()
    parts.write()
    assert parts.flush() == [f"{FIRST}.log"]


def test_nothing_new_needs_no_flush(parts: Parts) -> None:
    assert parts.flush() == []
    parts.write()
    parts.flush()
    assert parts.flush() == []


def test_new_epochs_are_written_and_synced(parts: Parts) -> None:
    parts.write()
    parts.epochs.assign(3, 0)
    assert "leader-epoch-checkpoint" in parts.flush()
    assert (parts.path / "leader-epoch-checkpoint").read_text() == "0\n1\n3 0\n"
    parts.write()
    assert "leader-epoch-checkpoint" not in parts.flush()


def test_a_complete_segment_is_synced_with_its_indexes_and_its_snapshot(parts: Parts) -> None:
    parts.write(3)
    parts.roller.roll_at(3)
    assert parts.marks.end_offsets == [3]
    assert parts.flush() == [
        f"{FIRST}.index",
        f"{FIRST}.timeindex",
        f"{FIRST}.log",
        "00000000000000000003.snapshot",
        "orders-0/",
        "data/",
    ]
    assert parts.marks.end_offsets == []
    assert not [name for name in parts.files() if name.endswith(".unflushed")]


def test_indexes_that_were_not_flushed_with_their_records_are_a_debt(parts: Parts) -> None:
    parts.write(3)
    parts.flush()
    parts.roller.roll_at(3)
    assert parts.durability.recovery_point == 3
    assert parts.durability.restart_offset == 0, "a restart must look at the indexes of the first segment"
    assert set(parts.flush()) >= {f"{FIRST}.index", f"{FIRST}.timeindex", f"{FIRST}.log"}
    assert parts.durability.restart_offset == 3


def test_a_job_proves_only_what_it_found(parts: Parts) -> None:
    parts.write(2)
    job = parts.durability.begin_flush(2)
    assert job is not None
    parts.write(2)
    parts.epochs.assign(1, 2)
    parts.roller.roll_at(4)
    parts.run(job)
    assert parts.durability.recovery_point == 2
    assert parts.dir.has_unsynced_changes
    assert not parts.durability.epoch_file.is_durable
    assert parts.marks.end_offsets == [4]
    assert parts.snapshots.unsynced() == [4]


def test_a_job_that_began_before_a_truncation_proves_no_records(parts: Parts) -> None:
    parts.write(4)
    job = parts.durability.begin_flush(4)
    assert job is not None
    parts.bounds.truncate_to(2)
    parts.durability.truncated(2)
    parts.write(2)
    parts.run(job)
    assert parts.durability.recovery_point == 0


def test_a_truncation_takes_the_recovery_point_with_it(parts: Parts) -> None:
    parts.write(4)
    parts.flush()
    parts.durability.truncated(2)
    assert parts.durability.recovery_point == 2
    parts.durability.restarted(7)
    assert parts.durability.recovery_point == 7


def test_a_job_that_fails_proves_nothing(parts: Parts) -> None:
    parts.write()
    job = parts.durability.begin_flush(1)
    assert job is not None
    parts.disk.fail["fdatasync"] = errno.EIO
    with pytest.raises(OSError, match="Input/output error"):
        job.run()
    assert parts.durability.recovery_point == 0


def test_a_mark_that_cannot_be_removed_yet_is_idle_until_the_next_flush(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(end_offsets: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    parts.write(3)
    parts.roller.roll_at(3)
    with monkeypatch.context() as patched:
        patched.setattr(
            "odradek.log.parts.unflushed_marks.UnflushedMarks.remove", lambda _, marks: refuse(marks)
        )
        parts.flush()
    assert parts.durability.recovery_point == 3, "what the flush proved holds"
    assert parts.durability.has_idle_marks and parts.dir.failure is None
    parts.flush()
    assert not parts.durability.has_idle_marks


def test_a_mark_is_not_idle_before_its_segment_is_durable(parts: Parts) -> None:
    parts.write(3)
    parts.roller.roll_at(3)
    assert parts.marks.end_offsets == [3]
    assert not parts.durability.has_idle_marks


def test_a_mark_that_a_broken_disk_keeps_takes_the_directory_offline(
    parts: Parts, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    parts.write(3)
    parts.roller.roll_at(3)
    monkeypatch.setattr(type(parts.marks), "remove", refuse)
    parts.flush()
    assert parts.durability.recovery_point == 3
    assert parts.dir.failure is not None


def test_snapshots_are_synced_once(parts: Parts) -> None:
    parts.write(3)
    parts.roller.roll_at(3)
    parts.flush()
    assert parts.snapshots.unsynced() == []
    parts.write()
    assert parts.flush() == [f"{3:020}.log"]


def test_a_flush_that_cannot_be_prepared_takes_the_directory_offline(parts: Parts) -> None:
    parts.write()
    parts.epochs.assign(1, 0)
    parts.disk.fail["pwrite"] = errno.EIO
    with pytest.raises(StorageError, match="Error while flushing orders-0"):
        parts.durability.begin_flush(1)
    assert parts.dir.failure is not None


def test_a_flush_that_lacks_descriptors_is_prepared_again_later(parts: Parts) -> None:
    parts.write()
    parts.epochs.assign(1, 0)
    parts.disk.fail["pwrite"] = errno.EMFILE
    with pytest.raises(ExhaustedError):
        parts.durability.begin_flush(1)
    parts.disk.fail.clear()
    assert "leader-epoch-checkpoint" in parts.flush()
    assert parts.durability.epoch_file.is_durable


def test_a_flush_is_due_when_its_time_has_passed_with_something_to_flush(parts: Parts) -> None:
    clock = parts.runtime.clock
    clock.ms += 100
    assert not parts.durability.is_due(100)
    parts.write()
    assert parts.durability.is_due(100) and not parts.durability.is_due(101)
    parts.flush()
    parts.write()
    assert not parts.durability.is_due(100)


def test_a_clean_stop_flushes_the_indexes_of_the_active_segment_too(parts: Parts) -> None:
    parts.write()
    sealed = parts.segments.active.seal_if_open()
    job = parts.durability.begin_close(sealed=sealed)
    assert job is not None
    parts.run(job)
    assert parts.take_synced()[:3] == [f"{FIRST}.index", f"{FIRST}.timeindex", f"{FIRST}.log"]


def test_a_clean_stop_of_an_empty_log_only_writes_its_epochs(parts: Parts) -> None:
    assert parts.durability.begin_close(sealed=False) is None
    parts.epochs.assign(3, 0)
    job = parts.durability.begin_close(sealed=False)
    assert job is not None
    parts.run(job)
    assert parts.take_synced() == []
    assert (parts.path / "leader-epoch-checkpoint").read_text() == "0\n1\n3 0\n"
