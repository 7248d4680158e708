"""The start and end of a log: retention, deleted records, truncation, flushing."""

import errno
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.log.log import Log
from odradek.log.lookup import TimestampOffset
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    batch,
    files,
    idempotent,
    offsets,
    open_log,
    transactional,
)

SIZE = len(batch().buffer)


def bases(log: Log) -> list[int]:
    return log.segments.base_offsets


def test_old_segments_go_by_the_time_of_their_latest_record(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE, "retention_ms": 100})
    for i in range(6):
        append(log, batch(timestamp=NOW_MS + 10 * i))
    assert log.retain(NOW_MS + 110) == 0
    assert log.retain(NOW_MS + 111) == 1
    assert (bases(log), log.log_start_offset) == ([2, 4], 2)
    assert log.retain(NOW_MS + 10_000) == 2
    assert (bases(log), log.log_start_offset, log.log_end_offset) == ([6], 6, 6)
    assert log.retain(NOW_MS + 10_000) == 0
    (info,) = append(log, batch())
    assert info.first_offset == 6


def test_a_log_that_is_too_large_loses_its_oldest_segments(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {"segment_bytes": 2 * SIZE, "retention_bytes": 3 * SIZE, "retention_ms": -1}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(batch() for _ in range(7)))
    assert log.retain(NOW_MS) == 2
    assert bases(log) == [4, 6]


def test_a_compacted_log_is_not_cut_by_time_or_size(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {
        "segment_bytes": 2 * SIZE,
        "retention_bytes": 0,
        "retention_ms": 0,
        "cleanup_policy": ("compact",),
    }
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(batch() for _ in range(7)))
    assert log.retain(NOW_MS + 10_000) == 0
    log.increment_log_start_offset(5)
    assert log.retain(NOW_MS) == 2
    assert bases(log) == [4, 6]


def test_what_is_not_replicated_is_not_deleted(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE, "retention_ms": 0})
    log.append_as_leader([batch() for _ in range(6)], 0)
    log.advance_high_watermark(3)
    assert log.retain(NOW_MS + 10) == 1
    assert log.log_start_offset == 2


def test_deleted_files_go_after_their_delay(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {"segment_bytes": 2 * SIZE, "retention_ms": 0, "file_delete_delay_ms": 500}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(idempotent(i) for i in range(4)))
    log.retain(NOW_MS + 10)
    deleted = {name for name in files(log) if name.endswith(".deleted")}
    assert "00000000000000000000.log.deleted" in deleted
    assert "00000000000000000002.snapshot.deleted" in deleted
    log.purge_deleted(NOW_MS + 499)
    assert deleted <= set(files(log))
    log.purge_deleted(NOW_MS + 500)
    assert not [name for name in files(log) if name.endswith(".deleted")]


def test_the_log_start_moves_up_to_the_high_watermark(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=1)
    append(log, batch(5), epoch=2)
    assert log.increment_log_start_offset(7)
    assert not log.increment_log_start_offset(7)
    assert log.epochs.entries == [(2, 7)]
    assert offsets(log, 7) == [7, 8, 9]
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(6, 100, 0)  # type: ignore[arg-type]
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.OFFSET_OUT_OF_RANGE):
        log.increment_log_start_offset(11)


def test_truncation_removes_records_producers_and_epochs(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 3 * len(idempotent(0).buffer)})
    for i in range(8):
        append(log, idempotent(i), epoch=i // 4)
    assert log.truncate_to(5)
    assert offsets(log) == [0, 1, 2, 3, 4]
    assert (log.log_end_offset, log.high_watermark, bases(log)) == (5, 5, [0, 3])
    assert log.producers.entries[7].last_sequence == 4
    assert log.truncate_to(4)
    assert log.epochs.entries == [(0, 0)]
    assert not log.truncate_to(4)
    (info,) = append(log, idempotent(4), epoch=9)
    assert info.first_offset == 4
    assert offsets(log) == [0, 1, 2, 3, 4]


def test_truncation_inside_a_batch_removes_the_batch(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), batch(5))
    log.truncate_to(7)
    assert offsets(log) == [0, 1, 2, 3, 4]


def test_truncation_reopens_a_transaction_whose_marker_is_gone(runtime: LogRuntime, tmp_path: Path) -> None:
    from odradek.log.producers.rules import AppendOrigin
    from tests.unit.log.support import marker

    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    log.truncate_to(2)
    assert log.last_stable_offset == 0
    assert log.segments.active.txn_index.entries == []


def test_truncating_everything_begins_at_the_given_offset(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 5))
    log.roll()
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.high_watermark, log.log_end_offset) == (100, 100, 100)
    assert [name for name in files(log) if name.endswith((".log", ".snapshot"))] == [
        "00000000000000000100.log"
    ]
    (info,) = append(log, idempotent(50))
    assert info.first_offset == 100


def test_truncation_below_the_first_segment_empties_the_log(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, log_start_offset=50)
    append(log, batch(5))
    log.truncate_to(20)
    assert (log.log_start_offset, log.log_end_offset) == (20, 20)


def test_a_flush_moves_the_recovery_point(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=3)
    assert log.recovery_point == 0
    log.flush()
    assert log.recovery_point == 5
    assert log.begin_flush() is None
    assert (tmp_path / "orders-0" / "leader-epoch-checkpoint").read_text() == "0\n1\n3 0\n"


def test_flush_messages_bounds_what_is_not_durable(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"flush_messages": 3})
    append(log, batch(2))
    assert log.recovery_point == 0
    append(log, batch(1))
    assert log.recovery_point == 3


def test_flush_ms_makes_a_flush_due(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"flush_ms": 100})
    runtime.clock.ms += 500
    assert not log.is_flush_due
    append(log, batch())
    assert log.is_flush_due
    log.flush()
    append(log, batch())
    assert not log.is_flush_due
    runtime.clock.ms += 100
    assert log.is_flush_due


def test_a_failed_sync_takes_the_log_offline_and_is_not_repeated(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch())
    runtime.disk.fail["fdatasync"] = errno.EIO
    with pytest.raises(StorageError):
        log.flush()
    runtime.disk.fail.clear()
    with pytest.raises(StorageError):
        log.flush()
    assert log.recovery_point == 0


def test_a_flush_that_ends_after_a_truncation_does_not_count(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch(), batch())
    job = log.begin_flush()
    assert job is not None
    job.run()
    log.truncate_to(1)
    append(log, batch(), batch())
    log.finish_flush(job)
    assert log.recovery_point == 0


def test_truncation_inside_a_batch_ends_the_log_where_the_batch_began(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), batch(5))
    log.truncate_to(7)
    assert (log.log_end_offset, log.high_watermark) == (5, 5)
    append(log, batch(3))
    log.close(clean=False)
    assert open_log(runtime, tmp_path).log_end_offset == 8


def test_what_a_truncation_takes_from_the_epochs_does_not_come_back_after_a_kill(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=0)
    append(log, batch(5), epoch=5)
    log.flush()
    log.truncate_to(5)
    append(log, batch(5), epoch=3)
    log.close(clean=False)
    assert open_log(runtime, tmp_path, recovery_point=5).epochs.entries == [(0, 0), (3, 5)]


def test_what_truncating_everything_takes_from_the_epochs_does_not_come_back(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=5)
    log.flush()
    log.truncate_fully_and_start_at(3)
    append(log, batch(5), epoch=4)
    log.close(clean=False)
    assert open_log(runtime, tmp_path, log_start_offset=3).epochs.entries == [(4, 3)]


@pytest.mark.parametrize(
    ("suffix", "position"), [(".timeindex", 12 + 7), (".timeindex", 12 + 11), (".index", 8 + 7)]
)
def test_truncation_does_not_leave_a_damaged_entry_as_the_last(
    runtime: LogRuntime, tmp_path: Path, suffix: str, position: int
) -> None:
    """While it was not the last nobody looked at it."""
    log = open_log(runtime, tmp_path, changes={"index_interval_bytes": 0})
    append(log, *(batch(timestamp=NOW_MS + i) for i in range(5)))
    log.close()
    path = tmp_path / "orders-0" / f"{0:020d}{suffix}"
    content = bytearray(path.read_bytes())
    content[position] ^= 0x40
    path.write_bytes(content)
    log = open_log(runtime, tmp_path, changes={"index_interval_bytes": 0}, clean_shutdown=True)
    log.truncate_to(3)
    log.advance_high_watermark(3)
    assert log.segments.active.max_timestamp == (NOW_MS + 2, 2)
    found = log.offset_for_timestamp(NOW_MS + 2)
    assert isinstance(found, TimestampOffset)
    assert found.offset == 2
    append(log, batch(timestamp=NOW_MS + 9))
    assert offsets(log) == [0, 1, 2, 3]
