"""Offsets by time, as ListOffsets asks."""

from pathlib import Path

import pytest

from odradek.log.lookup import (
    EARLIEST,
    EARLIEST_LOCAL,
    LATEST,
    LATEST_TIERED,
    MAX_TIMESTAMP,
    BatchSearch,
    TimestampOffset,
)
from odradek.records import compression
from odradek.records.header import CREATE_TIME, LOG_APPEND_TIME
from tests.unit.log.support import NOW_MS, LogRuntime, append, batch, open_log

SMALL = {"index_interval_bytes": 1, "segment_bytes": 400}


def test_the_special_timestamps(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) is None
    append(log, batch(3), epoch=2)
    append(log, batch(3), epoch=4)
    log.increment_log_start_offset(2)
    assert log.offset_for_timestamp(LATEST) == TimestampOffset(-1, 6, 4)
    assert log.offset_for_timestamp(EARLIEST) == TimestampOffset(-1, 2, 2)
    assert log.offset_for_timestamp(EARLIEST_LOCAL) == TimestampOffset(-1, 2, 2)
    assert log.offset_for_timestamp(LATEST_TIERED) == TimestampOffset(-1, -1, -1)


def test_the_first_record_at_or_after_a_time_is_found_inside_batches(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes=SMALL)
    for i in range(20):
        append(log, batch(5, timestamp=NOW_MS + 100 * i, step_ms=10), epoch=i // 10)
    assert len(log.segments) > 3
    assert log.offset_for_timestamp(NOW_MS - 5) == TimestampOffset(NOW_MS, 0, 0)
    assert log.offset_for_timestamp(NOW_MS + 731) == TimestampOffset(NOW_MS + 740, 39, 0)
    assert log.offset_for_timestamp(NOW_MS + 741) == TimestampOffset(NOW_MS + 800, 40, 0)
    assert log.offset_for_timestamp(NOW_MS + 1900) == TimestampOffset(NOW_MS + 1900, 95, 1)
    assert log.offset_for_timestamp(NOW_MS + 1941) is None


def test_records_below_the_log_start_are_not_found(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5, step_ms=10))
    log.increment_log_start_offset(3)
    assert log.offset_for_timestamp(NOW_MS) == TimestampOffset(NOW_MS + 30, 3, 0)


def test_times_out_of_order_give_the_first_offset_that_is_late_enough(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes=SMALL)
    for delta in (50, 10, 90, 20, 30, 100, 5):
        append(log, batch(timestamp=NOW_MS + delta))
    assert log.offset_for_timestamp(NOW_MS + 60) == TimestampOffset(NOW_MS + 90, 2, 0)
    assert log.offset_for_timestamp(NOW_MS + 91) == TimestampOffset(NOW_MS + 100, 5, 0)


def test_the_record_of_the_largest_timestamp_is_found(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes=SMALL)
    for delta in (50, 10, 90, 20, 30, 90, 5):
        append(log, batch(3, timestamp=NOW_MS + delta, step_ms=-1))
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == TimestampOffset(NOW_MS + 90, 6, 0)


def test_times_are_found_after_a_restart(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes=SMALL)
    for i in range(20):
        append(log, batch(timestamp=NOW_MS + i))
    log.close()
    log = open_log(runtime, tmp_path, changes=SMALL, clean_shutdown=True)
    assert log.offset_for_timestamp(NOW_MS + 13) == TimestampOffset(NOW_MS + 13, 13, 0)
    assert log.offset_for_timestamp(MAX_TIMESTAMP) == TimestampOffset(NOW_MS + 19, 19, 0)


def test_a_segment_whose_late_records_are_trimmed_does_not_end_the_search(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(timestamp=NOW_MS + 900))
    append(log, batch(timestamp=NOW_MS))
    log.roll()
    append(log, batch(timestamp=NOW_MS + 500))
    log.increment_log_start_offset(1)
    assert log.offset_for_timestamp(NOW_MS + 400) == TimestampOffset(NOW_MS + 500, 2, 0)


@pytest.mark.parametrize("timestamp_type", [CREATE_TIME, LOG_APPEND_TIME])
@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_a_record_is_found_by_time_and_above_the_log_start(
    runtime: LogRuntime, tmp_path: Path, codec: int, timestamp_type: int
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(9, timestamp=NOW_MS, step_ms=10, codec=codec, timestamp_type=timestamp_type))
    stamped = timestamp_type == LOG_APPEND_TIME
    assert log.offset_for_timestamp(NOW_MS + 31) == (
        TimestampOffset(NOW_MS + 80, 0, 0) if stamped else TimestampOffset(NOW_MS + 40, 4, 0)
    )
    log.increment_log_start_offset(6)
    time_at_start = NOW_MS + (80 if stamped else 60)
    assert log.offset_for_timestamp(NOW_MS + 31) == TimestampOffset(time_at_start, 6, 0)
    assert log.offset_for_timestamp(NOW_MS + 31, 9) is None


def test_a_batch_that_takes_long_is_the_callers_to_look_into(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(9, timestamp=NOW_MS, step_ms=10, codec=compression.ZSTD, value=bytes(100_000)))
    append(log, batch(timestamp=NOW_MS + 200))
    search = log.offset_for_timestamp(NOW_MS + 31)
    assert isinstance(search, BatchSearch)
    assert search.run() == TimestampOffset(NOW_MS + 40, 4, 0)
    assert log.offset_for_timestamp(NOW_MS + 31, search.batch.last_offset + 1) == TimestampOffset(
        NOW_MS + 200, 9, 0
    )
    newest = log.offset_for_timestamp(MAX_TIMESTAMP)
    assert newest == TimestampOffset(NOW_MS + 200, 9, 0)
