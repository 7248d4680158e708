"""Reading: how far, from where, how much, and what stays readable."""

from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.log import Isolation
from odradek.log.producers.rules import AppendOrigin
from tests.unit.log.support import (
    LogRuntime,
    append,
    batch,
    marker,
    offsets,
    open_log,
    transactional,
)

SIZE = len(batch().buffer)


def test_a_reader_sees_up_to_the_high_watermark_a_follower_to_the_end(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch())
    log.append_as_leader([batch()], 0)
    assert log.read(0, 10_000, Isolation.HIGH_WATERMARK).size == 2 * SIZE
    assert log.read(0, 10_000, Isolation.LOG_END).size == 3 * SIZE
    assert log.read(2, 10_000, Isolation.HIGH_WATERMARK).slice is None
    log.advance_high_watermark(3)
    assert log.read(2, 10_000, Isolation.HIGH_WATERMARK).size == SIZE


def test_the_high_watermark_bounds_reads_of_earlier_segments_too(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 3 * SIZE})
    log.append_as_leader([batch() for _ in range(9)], 0)
    log.advance_high_watermark(2)
    assert log.read(0, 10_000, Isolation.HIGH_WATERMARK).size == 2 * SIZE
    log.advance_high_watermark(3)
    assert log.read(0, 10_000, Isolation.HIGH_WATERMARK).size == 3 * SIZE
    log.advance_high_watermark(7)
    assert log.read(4, 10_000, Isolation.HIGH_WATERMARK).size == 2 * SIZE
    assert log.read(6, 10_000, Isolation.HIGH_WATERMARK).size == SIZE


@pytest.mark.parametrize("offset", [-1, 4, 99])
def test_offsets_outside_the_log_are_out_of_range(runtime: LogRuntime, tmp_path: Path, offset: int) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(3))
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.OFFSET_OUT_OF_RANGE):
        log.read(offset, 100, Isolation.LOG_END)
    assert log.read(3, 100, Isolation.LOG_END).slice is None


def test_the_first_batch_is_given_whole_even_when_larger_than_the_limit(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch())
    assert log.read(0, 1, Isolation.LOG_END).size == SIZE
    assert log.read(0, 1, Isolation.LOG_END, min_one_message=False).size == 1
    assert log.read(0, 0, Isolation.LOG_END, min_one_message=False).slice is None
    assert log.read(0, SIZE + 7, Isolation.LOG_END).size == SIZE + 7


def test_an_offset_inside_a_batch_gives_the_batch(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), batch(5))
    info = log.read(7, 10_000, Isolation.LOG_END)
    assert info.first_offset == 5
    assert info.slice is not None
    assert info.slice.read() == log.read(5, 10_000, Isolation.LOG_END).slice.read()  # type: ignore[union-attr]


def test_every_offset_is_found_through_sparse_indexes(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"index_interval_bytes": 500, "segment_bytes": 4000})
    append(log, *(batch(3) for _ in range(150)))
    assert len(log.segments) > 3
    for offset in range(450):
        assert log.read(offset, 1, Isolation.LOG_END).first_offset == offset - offset % 3


def test_offsets_that_compaction_removed_lead_to_the_next_batch(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    log.append_as_follower(batch(base_offset=5).buffer)
    log.roll()
    log.append_as_follower(batch(base_offset=90).buffer)
    assert log.read(0, 1, Isolation.LOG_END).first_offset == 5
    assert log.read(6, 1, Isolation.LOG_END).first_offset == 90


def test_a_slice_is_readable_after_its_segment_is_deleted(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"retention_ms": 1, "file_delete_delay_ms": 0})
    append(log, batch(2))
    kept = log.read(0, 1000, Isolation.LOG_END).slice
    assert kept is not None
    before = kept.read()
    runtime.clock.ms += 10
    assert log.retain(runtime.clock.ms) == 1
    log.purge_deleted(runtime.clock.ms)
    assert kept.read() == before
    assert log.log_start_offset == 2


def test_committed_reads_end_where_the_first_open_transaction_begins(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(2))
    append(log, transactional(0, 2))
    append(log, batch(1))
    assert log.last_stable_offset == 2
    assert log.read(2, 1000, Isolation.TXN_COMMITTED).slice is None
    append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == log.high_watermark == 6


def test_a_decided_transaction_stays_unstable_until_its_marker_is_replicated(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2))
    log.append_as_leader([marker(committed=True)], 0, AppendOrigin.COORDINATOR)
    assert log.last_stable_offset == 0
    log.advance_high_watermark(3)
    assert log.last_stable_offset == 3


def test_aborted_transactions_are_listed_with_the_data_they_touch(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2, producer_id=1))
    append(log, transactional(0, 2, producer_id=2))
    append(log, marker(committed=False, producer_id=1), origin=AppendOrigin.COORDINATOR)
    append(log, marker(committed=True, producer_id=2), origin=AppendOrigin.COORDINATOR)
    log.roll()
    append(log, transactional(0, 1, producer_id=3))
    append(log, marker(committed=False, producer_id=3), origin=AppendOrigin.COORDINATOR)
    assert log.read(0, 10_000, Isolation.TXN_COMMITTED).aborted == [(1, 0)]
    assert log.read(5, 10_000, Isolation.TXN_COMMITTED).aborted == []
    assert log.read(6, 10_000, Isolation.TXN_COMMITTED).aborted == [(3, 6)]
    assert log.read(0, 10_000, Isolation.HIGH_WATERMARK).aborted is None


def test_an_abort_in_a_later_segment_is_listed_with_the_earlier_data(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2, producer_id=1))
    log.roll()
    append(log, batch())
    log.roll()
    append(log, marker(committed=False, producer_id=1), origin=AppendOrigin.COORDINATOR)
    assert log.read(0, 10_000, Isolation.TXN_COMMITTED).aborted == [(1, 0)]


def test_the_high_watermark_never_goes_back(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    log.append_as_leader([batch(5)], 0)
    assert log.advance_high_watermark(4)
    assert not log.advance_high_watermark(3)
    assert log.high_watermark == 4
    with pytest.raises(AssertionError):
        log.advance_high_watermark(6)


def test_descriptors_are_bounded_and_reopened(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": SIZE})
    log.partition_dir.pool.max_descriptors = 4
    append(log, *(batch() for _ in range(30)))
    assert offsets(log) == list(range(30))
    open_files = [s for s in log.segments.all() if s.file.handle is not None]
    assert len(open_files) <= 4
