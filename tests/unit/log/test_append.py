"""Appending: offsets given, segments rolled, duplicates answered, failures undone."""

import errno
import os
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.log.log import AppendInfo
from odradek.log.producers.rules import AppendOrigin
from odradek.log.segments.segment import Segment
from odradek.records.batch import iter_batches
from odradek.records.header import MAX_INT32, crc_matches
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    batch,
    files,
    idempotent,
    marker,
    merged,
    offsets,
    open_log,
    records,
    transactional,
)


def test_offsets_and_epoch_are_stamped_outside_the_crc(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    first, second = append(log, batch(3), batch(2), epoch=6)
    assert first == AppendInfo(0, 2, -1, 0, duplicate=False)
    assert second == AppendInfo(3, 4, -1, 0, duplicate=False)
    data = (tmp_path / "orders-0" / "00000000000000000000.log").read_bytes()
    stored = list(iter_batches(data))
    assert [(b.base_offset, b.partition_leader_epoch) for b in stored] == [(0, 6), (3, 6)]
    assert all(crc_matches(data, b) for b in stored)
    assert log.epochs.entries == [(6, 0)]


def test_a_set_of_several_batches_is_placed_in_order(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(1))
    (info,) = append(log, merged(batch(2), batch(3)))
    assert (info.first_offset, info.last_offset) == (1, 5)
    assert offsets(log) == [0, 1, 2, 3, 4, 5]


def test_log_append_time_is_told(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"message_timestamp_type": "LogAppendTime"})
    (info,) = append(log, batch(2, timestamp=NOW_MS + 5))
    assert info.log_append_time_ms == NOW_MS + 5


def test_a_duplicate_is_answered_with_the_first_append(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 2), idempotent(2))
    (again,) = append(log, idempotent(0, 2))
    assert again == AppendInfo(0, 1, NOW_MS, 0, duplicate=True)
    assert log.log_end_offset == 3


def test_a_duplicate_within_one_call_is_known(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    first, second = append(log, idempotent(0, 2), idempotent(0, 2))
    assert (first.duplicate, second.duplicate, second.first_offset) == (False, True, 0)
    assert log.log_end_offset == 2


def test_a_refused_set_leaves_the_others_alone(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    results = log.append_as_leader([idempotent(0), idempotent(5), idempotent(1)], 0)
    assert isinstance(results[1], KafkaError)
    assert results[1].code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert [r.first_offset for r in (results[0], results[2]) if isinstance(r, AppendInfo)] == [0, 1]


def test_a_set_whose_second_batch_is_refused_leaves_no_trace(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    (result,) = log.append_as_leader([merged(idempotent(0), idempotent(5))], 0)
    assert isinstance(result, KafkaError)
    assert log.log_end_offset == 0
    append(log, idempotent(0))


def test_a_set_larger_than_a_segment_is_refused(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 100})
    (result,) = log.append_as_leader([batch(value=b"x" * 100)], 0)
    assert isinstance(result, KafkaError)
    assert result.code == ErrorCode.RECORD_LIST_TOO_LARGE


def segment_names(log_files: list[str]) -> list[int]:
    return [int(name[:20]) for name in log_files if name.endswith(".log")]


def test_a_segment_that_would_grow_too_large_is_rolled(runtime: LogRuntime, tmp_path: Path) -> None:
    size = len(batch(2).buffer)
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 3 * size})
    append(log, *(batch(2) for _ in range(7)))
    assert segment_names(files(log)) == [0, 6, 12]
    assert offsets(log) == list(range(14))


def test_a_segment_is_rolled_by_the_time_of_its_records(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_ms": 1000})
    append(log, batch(timestamp=NOW_MS))
    append(log, batch(timestamp=NOW_MS + 1000))
    append(log, batch(timestamp=NOW_MS + 1001))
    assert segment_names(files(log)) == [0, 2]


def test_a_segment_of_records_without_time_is_rolled_by_the_clock(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_ms": 1000})
    append(log, batch(timestamp=-1))
    runtime.clock.ms += 1001
    append(log, batch(timestamp=-1))
    assert segment_names(files(log)) == [0, 1]


def test_jitter_rolls_earlier(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_ms": 1000, "segment_jitter_ms": 900})
    log.roll()  # an empty segment is not rolled
    append(log, batch())
    log.roll()
    jitter_ms = log.segments.active.roll_jitter_ms
    assert 0 < jitter_ms < 900
    append(log, batch())
    append(log, batch(timestamp=NOW_MS + 1000 - jitter_ms))
    append(log, batch(timestamp=NOW_MS + 1001 - jitter_ms))
    assert segment_names(files(log)) == [0, 1, 3]


def test_a_compacted_topic_is_rolled_after_its_maximum_lag(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {"cleanup_policy": ("compact",), "max_compaction_lag_ms": 500, "segment_ms": 1000}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, batch(timestamp=NOW_MS))
    append(log, batch(timestamp=NOW_MS + 501))
    assert segment_names(files(log)) == [0, 1]


def test_a_full_index_rolls_the_segment(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_index_bytes": 48, "index_interval_bytes": 1})
    for _ in range(8):
        append(log, batch())
    assert segment_names(files(log)) == [0, 7]


def test_a_full_time_index_rolls_the_segment_before_the_offset_index_is_full(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_index_bytes": 24, "index_interval_bytes": 1})
    for i in range(4):
        append(log, batch(timestamp=NOW_MS + i))
    assert segment_names(files(log)) == [0, 2]


def test_the_room_in_the_indexes_is_asked_for_by_batches(
    runtime: LogRuntime, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = open_log(runtime, tmp_path)
    asked: list[int] = []
    free_bounds = Segment.free_bounds

    def spy(segment: Segment, segment_bytes: int, roll_after_ms: int, batches: int) -> tuple[int, int, int]:
        asked.append(batches)
        return free_bounds(segment, segment_bytes, roll_after_ms, batches)

    monkeypatch.setattr(Segment, "free_bounds", spy)
    log.append_as_leader([merged(batch(), batch(), batch()), batch()], 0, AppendOrigin.COORDINATOR)
    assert asked == [4]
    assert log.log_end_offset == 4


def test_an_index_too_small_for_one_entry_gives_every_append_its_segment(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_index_bytes": 4})
    for _ in range(3):
        append(log, batch())
    assert segment_names(files(log)) == [0, 1, 2]
    assert offsets(log) == [0, 1, 2]


def test_an_offset_out_of_reach_of_the_index_rolls_the_segment(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch())
    far = batch(base_offset=1 << 32)
    log.append_as_follower(far.buffer)
    assert segment_names(files(log)) == [0, 1 << 32]
    log.advance_high_watermark(log.log_end_offset)
    assert offsets(log) == [0, 1 << 32]


@pytest.mark.parametrize("far", [MAX_INT32, MAX_INT32 + 1, 1 << 31, (1 << 32) - 1, 1 << 32, 5 << 32])
@pytest.mark.parametrize("is_empty", [True, False], ids=["empty", "not empty"])
@pytest.mark.parametrize("is_clean", [True, False], ids=["stopped", "killed"])
def test_a_follower_ends_a_segment_before_offsets_that_its_indexes_cannot_address(
    runtime: LogRuntime, tmp_path: Path, far: int, is_empty: bool, is_clean: bool
) -> None:
    """They come with others in one fetch, from a leader that has compacted what lay between them."""
    log = open_log(runtime, tmp_path, changes={"index_interval_bytes": 1})
    expected = [2, 3, 2 + far, 3 + far, 2 + 3 * far]
    if not is_empty:
        append(log, batch())
        expected.insert(0, 0)
    data = b"".join(bytes(batch(base_offset=offset).buffer) for offset in expected[not is_empty :])
    info = log.append_as_follower(data)
    assert (info.first_offset, info.last_offset, log.log_end_offset) == (2, 2 + 3 * far, 3 + 3 * far)
    log.advance_high_watermark(log.log_end_offset)
    for segment in log.segments.all():
        index = segment.offset_index
        assert all(0 <= offset <= MAX_INT32 for offset in index._offsets)
        assert index.last_offset - segment.base_offset <= MAX_INT32
    for at, offset in enumerate(expected):
        assert offsets(log, offset) == expected[at:]
    append(log, batch())
    expected.append(3 + 3 * far)
    log.close(clean=is_clean)
    log = open_log(runtime, tmp_path)
    log.advance_high_watermark(log.log_end_offset)
    assert offsets(log) == expected


def test_rolling_takes_a_snapshot_of_the_producers(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 3))
    log.roll()
    assert "00000000000000000003.snapshot" in files(log)


def test_sealed_indexes_are_trimmed_and_know_the_largest_timestamp(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"index_interval_bytes": 1})
    append(log, batch(timestamp=NOW_MS))
    append(log, batch(timestamp=NOW_MS + 9))
    append(log, batch(timestamp=NOW_MS + 3))
    log.roll()
    directory = tmp_path / "orders-0"
    assert os.path.getsize(directory / "00000000000000000000.index") == 16
    times = (directory / "00000000000000000000.timeindex").read_bytes()
    assert times == (NOW_MS + 9).to_bytes(8, "big") + bytes([0, 0, 0, 1])


def test_preallocation_gives_the_file_its_full_size_until_it_is_sealed(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"preallocate": True, "segment_bytes": 4096})
    append(log, batch())
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    assert path.stat().st_size == 4096
    log.roll()
    assert path.stat().st_size == len(batch().buffer)
    assert offsets(log) == [0]


def test_a_failed_write_is_undone_and_takes_the_log_offline(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0))
    size = log.size_bytes
    runtime.disk.fail["pwritev"] = errno.ENOSPC
    with pytest.raises(StorageError, match="No space left"):
        append(log, idempotent(1), idempotent(2))
    assert (log.log_end_offset, log.size_bytes) == (1, size)
    assert log.producers.entries[7].last_sequence == 0
    assert os.path.getsize(tmp_path / "orders-0" / "00000000000000000000.log") == size
    runtime.disk.fail.clear()
    for attempt in (lambda: append(log, idempotent(1)), lambda: log.read(0, 100, 0), log.flush):  # type: ignore
        with pytest.raises(StorageError):
            attempt()


def test_a_short_write_is_continued(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    runtime.disk.short = 50
    append(log, batch(2), batch(3), batch(1))
    runtime.disk.short = 0
    assert [r.value for r in records(log)] == [b"value"] * 6


def test_a_short_write_that_then_fails_is_undone(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch())
    size = log.size_bytes
    runtime.disk.short = 50
    runtime.disk.fail["pwrite"] = errno.EIO
    with pytest.raises(StorageError):
        append(log, batch(), batch())
    assert os.path.getsize(tmp_path / "orders-0" / "00000000000000000000.log") == size


def test_more_sets_than_one_call_takes_are_written(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    infos = append(log, *(batch() for _ in range(1500)))
    assert infos[-1].last_offset == 1499
    assert offsets(log) == list(range(1500))


def test_a_follower_takes_over_offsets_epochs_and_producers(runtime: LogRuntime, tmp_path: Path) -> None:
    for name in ("leader", "follower"):
        (tmp_path / name).mkdir()
    leader = open_log(runtime, tmp_path / "leader")
    append(leader, idempotent(0, 2), epoch=3)
    append(leader, transactional(2, 2), epoch=5)
    data = leader.read(0, 10_000, 0).slice.read()  # type: ignore[arg-type, union-attr]
    follower = open_log(runtime, tmp_path / "follower")
    info = follower.append_as_follower(data + b"\0\0\0partial")
    assert (info.first_offset, info.last_offset) == (0, 3)
    assert follower.epochs.entries == [(3, 0), (5, 2)]
    assert follower.producers.entries == leader.producers.entries
    assert follower.high_watermark == 0


def test_a_follower_refuses_what_does_not_follow_its_end(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(3))
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.OFFSET_OUT_OF_RANGE):
        log.append_as_follower(batch(base_offset=2).buffer)
    broken = batch(base_offset=3).buffer
    broken[70] ^= 1
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.CORRUPT_MESSAGE):
        log.append_as_follower(broken)
    assert log.log_end_offset == 3


def test_an_aborted_transaction_is_indexed(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    assert "00000000000000000000.txnindex" in files(log)
    assert log.segments.active.txn_index.entries == [(7, 0, 2, 3)]


@pytest.mark.parametrize(("byte", "bit"), [(8, 0x80), (8, 0x40)], ids=["negative", "beyond the file"])
def test_a_damaged_first_batch_keeps_nobody_from_appending(
    runtime: LogRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture, byte: int, bit: int
) -> None:
    """Its length is what is damaged: the time that the segment began cannot be read any more."""
    changes = {"index_interval_bytes": 100}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(batch() for _ in range(9)))
    log.close()
    path = tmp_path / "orders-0" / "00000000000000000000.log"
    data = bytearray(path.read_bytes())
    data[byte] ^= bit
    path.write_bytes(data)

    log = open_log(runtime, tmp_path, changes=changes, clean_shutdown=True, recovery_point=9)
    (first,) = append(log, batch())
    (second,) = append(log, batch())
    assert (first.first_offset, second.first_offset) == (9, 10)
    told = [record.message for record in caplog.records if str(path) in record.message]
    assert len(told) == 1
    assert "at byte offset 0" in told[0]
    assert offsets(log, 9) == [9, 10]
    with pytest.raises(KafkaError, check=lambda e: e.code == ErrorCode.CORRUPT_MESSAGE):
        offsets(log)


def test_producer_0_is_a_producer(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    (first,) = append(log, idempotent(0, producer_id=0, epoch=5))
    (again,) = append(log, idempotent(0, producer_id=0, epoch=5))
    assert (again.first_offset, again.duplicate) == (first.first_offset, True)
    several = merged(batch(), idempotent(1, producer_id=0, epoch=4))
    (refused,) = log.append_as_leader([several], 0, AppendOrigin.COORDINATOR)
    assert isinstance(refused, KafkaError)
    assert refused.code == ErrorCode.INVALID_PRODUCER_EPOCH


def test_the_latest_batch_of_a_set_decides_whether_a_segment_is_too_old(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_ms": 1_000})
    append(log, batch())
    append(log, merged(batch(), batch(timestamp=NOW_MS + 1_000)), origin=AppendOrigin.COORDINATOR)
    assert [segment.base_offset for segment in log.segments.all()] == [0]
    append(log, merged(batch(), batch(timestamp=NOW_MS + 1_001)), origin=AppendOrigin.COORDINATOR)
    assert [segment.base_offset for segment in log.segments.all()] == [0, 3]
