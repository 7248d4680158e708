"""Opening a log after a stop: clean ones as they are, torn ones up to their last good batch."""

import logging
import os
import shutil
import zlib
from pathlib import Path
from typing import Any

import pytest

from odradek.log.log import Isolation, Log
from odradek.log.lookup import TimestampOffset
from odradek.log.producers.rules import AppendOrigin
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    batch,
    files,
    idempotent,
    marker,
    offsets,
    open_log,
    transactional,
)

SIZE = len(batch().buffer)


def segment(path: Path, base: int = 0, suffix: str = ".log") -> Path:
    return path / "orders-0" / f"{base:020d}{suffix}"


def reopened(runtime: LogRuntime, path: Path, **options: Any) -> Log:
    log = open_log(runtime, path, **options)
    log.advance_high_watermark(log.log_end_offset)
    return log


def crashed(log: Log) -> None:
    """The process is gone; what it wrote is in the files, what it only held in memory is not."""
    log.close(clean=False)


def test_a_torn_tail_is_cut_at_every_byte_of_the_last_batch(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(2), batch(3))
    crashed(log)
    data = segment(tmp_path).read_bytes()
    first = len(batch(2).buffer)
    for size in range(first, len(data)):
        segment(tmp_path).write_bytes(data[:size])
        log = reopened(runtime, tmp_path)
        assert (log.log_end_offset, log.size_bytes) == (2, first), size
        assert offsets(log) == [0, 1]
        assert segment(tmp_path).stat().st_size == first
        crashed(log)


def test_a_flipped_bit_ends_the_log_before_its_batch(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch(), batch())
    crashed(log)
    data = segment(tmp_path).read_bytes()
    # Base offset and leader epoch lie outside the CRC; of the offset at least the order is checked.
    for position in [*range(8, 12), *range(16, SIZE)]:
        broken = bytearray(data)
        broken[SIZE + position] ^= 1
        segment(tmp_path).write_bytes(broken)
        log = reopened(runtime, tmp_path)
        assert offsets(log) == [0], position
        crashed(log)


@pytest.mark.parametrize(
    "tail",
    [bytes(10), bytes(10_000), b"\xff" * 10_000, b"nonsense", os.urandom(5000)],
    ids=["few zeros", "zeros", "ones", "nonsense", "noise"],
)
def test_what_is_not_a_batch_behind_the_last_one_is_cut_off(
    runtime: LogRuntime, tmp_path: Path, tail: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch())
    crashed(log)
    with segment(tmp_path).open("ab") as file:
        file.write(tail)
    with caplog.at_level(logging.WARNING):
        log = reopened(runtime, tmp_path)
    assert offsets(log) == [0, 1]
    assert f"{segment(tmp_path)} at byte offset {2 * SIZE}" in caplog.text
    append(log, batch())
    assert offsets(log) == [0, 1, 2]


def test_offsets_that_go_back_end_the_log(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch())
    crashed(log)
    data = segment(tmp_path).read_bytes()
    segment(tmp_path).write_bytes(data + data[:SIZE])
    assert offsets(reopened(runtime, tmp_path)) == [0, 1]


def test_segments_after_a_torn_one_are_dropped(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE})
    append(log, *(batch() for _ in range(6)))
    crashed(log)
    with segment(tmp_path, 2).open("r+b") as file:
        file.truncate(2 * SIZE - 1)
    log = reopened(runtime, tmp_path)
    assert offsets(log) == [0, 1, 2]
    assert not segment(tmp_path, 4).exists()
    append(log, batch())
    assert offsets(log) == [0, 1, 2, 3]


def test_segments_behind_a_gap_are_dropped(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE})
    append(log, *(batch() for _ in range(6)))
    crashed(log)
    with segment(tmp_path, 2).open("r+b") as file:
        file.truncate(SIZE)
    assert offsets(reopened(runtime, tmp_path)) == [0, 1, 2]


def test_below_the_recovery_point_nothing_is_looked_at(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE})
    append(log, *(batch() for _ in range(6)))
    crashed(log)
    with segment(tmp_path).open("r+b") as file:
        file.seek(SIZE - 1)
        file.write(b"!")
    log = reopened(runtime, tmp_path, recovery_point=2)
    assert offsets(log, 2) == [2, 3, 4, 5]
    assert log.recovery_point == 2


def test_indexes_are_rebuilt_as_they_were(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {"index_interval_bytes": 300}
    log = open_log(runtime, tmp_path, changes=changes)
    for i in range(50):
        append(log, batch(timestamp=1000 + i % 7))
    log.close()
    before = [segment(tmp_path, 0, suffix).read_bytes() for suffix in (".index", ".timeindex")]
    for damage in (b"", b"\0" * 8000, os.urandom(96)):
        for suffix in (".index", ".timeindex"):
            segment(tmp_path, 0, suffix).write_bytes(damage)
        log = reopened(runtime, tmp_path, changes=changes)
        assert offsets(log) == list(range(50))
        log.close()
        assert [segment(tmp_path, 0, suffix).read_bytes() for suffix in (".index", ".timeindex")] == before


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_index_is_rebuilt_even_after_a_clean_stop(
    runtime: LogRuntime, tmp_path: Path, suffix: str
) -> None:
    changes = {"index_interval_bytes": 300, "segment_bytes": 2000}
    log = open_log(runtime, tmp_path, changes=changes)
    for i in range(80):
        append(log, batch(timestamp=1000 + i))
    log.close()
    before = segment(tmp_path, 0, suffix).read_bytes()
    segment(tmp_path, 0, suffix).unlink()
    log = reopened(runtime, tmp_path, changes=changes, clean_shutdown=True)
    assert offsets(log) == list(range(80))
    found = log.offset_for_timestamp(1009)
    assert isinstance(found, TimestampOffset)
    assert found.offset == 9
    assert segment(tmp_path, 0, suffix).read_bytes() == before


def test_an_index_that_points_astray_is_noticed_and_rebuilt(runtime: LogRuntime, tmp_path: Path) -> None:
    changes = {"index_interval_bytes": 300, "segment_bytes": 2000}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(batch() for _ in range(80)))
    log.close()
    good = segment(tmp_path, 0, ".index").read_bytes()
    for position in range(len(good)):
        broken = bytearray(good)
        broken[position] ^= 1
        segment(tmp_path, 0, ".index").write_bytes(broken)
        log = reopened(runtime, tmp_path, changes=changes, clean_shutdown=True)
        assert offsets(log) == list(range(80)), position
        for offset in range(25):
            assert log.read(offset, 1, Isolation.LOG_END).first_offset == offset, (position, offset)
        log.close()


def test_an_index_without_a_log_is_removed(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch())
    log.close()
    segment(tmp_path, 77, ".index").write_bytes(bytes(8))
    log = reopened(runtime, tmp_path, clean_shutdown=True)
    assert not segment(tmp_path, 77, ".index").exists()


def test_producers_and_transactions_are_rebuilt(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 3, producer_id=1))
    append(log, transactional(0, 2, producer_id=2))
    append(log, marker(committed=False, producer_id=2), origin=AppendOrigin.COORDINATOR)
    log.roll()
    append(log, transactional(0, 2, producer_id=3))
    append(log, idempotent(3, 2, producer_id=1))
    entries, unstable = dict(log.producers.entries), log.last_stable_offset
    aborted = log.segments.all()[0].txn_index.entries
    crashed(log)
    for path in (tmp_path / "orders-0").glob("*.snapshot"):
        path.unlink()
    segment(tmp_path, 0, ".txnindex").write_bytes(b"torn")
    log = reopened(runtime, tmp_path)
    assert log.producers.entries == entries
    assert log.last_stable_offset == unstable == 6
    assert log.segments.all()[0].txn_index.entries == aborted


def test_a_broken_transaction_index_is_rebuilt_after_a_clean_stop_too(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, transactional(0, 2))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    log.close()
    good = segment(tmp_path, 0, ".txnindex").read_bytes()
    segment(tmp_path, 0, ".txnindex").write_bytes(good[:-1])
    log = reopened(runtime, tmp_path, clean_shutdown=True)
    assert log.read(0, 1000, Isolation.TXN_COMMITTED).aborted == [(7, 0)]
    assert segment(tmp_path, 0, ".txnindex").read_bytes() == good


def test_snapshots_spare_the_replay_and_a_broken_one_costs_only_time(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    for i in range(4):
        append(log, idempotent(i))
        log.roll()
    log.close()
    newest = segment(tmp_path, 4, ".snapshot")
    newest.write_bytes(newest.read_bytes()[:-1] + b"?")
    log = reopened(runtime, tmp_path, clean_shutdown=True)
    assert log.producers.entries[7].last_sequence == 3
    (again,) = append(log, idempotent(3))
    assert again.duplicate


def test_a_recovery_that_finds_all_as_it_was_writes_next_to_nothing(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    """Removing and emptying files that were synced is what makes the restart of many small logs long."""
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 2))
    log.close()
    before = {
        path.name: (path.stat().st_ino, path.read_bytes()) for path in (tmp_path / "orders-0").iterdir()
    }
    log = reopened(runtime, tmp_path, clean_shutdown=False)
    crashed(log)
    after = {path.name: (path.stat().st_ino, path.read_bytes()) for path in (tmp_path / "orders-0").iterdir()}
    assert after == before
    assert log.producers.entries[7].last_sequence == 1


def test_an_index_that_is_begun_anew_keeps_nothing_of_the_old_one(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    changes = {"index_interval_bytes": 1, "segment_index_bytes": 4800}
    log = open_log(runtime, tmp_path, changes=changes)
    append(log, *(batch(timestamp=NOW_MS + i) for i in range(90)))
    log.close()
    data = segment(tmp_path).read_bytes()
    for left in (0, 1, 5, 80):
        segment(tmp_path).write_bytes(data[: left * SIZE])
        log = reopened(runtime, tmp_path, changes=changes, clean_shutdown=False)
        log.close()
        assert segment(tmp_path, 0, ".index").stat().st_size == 8 * max(0, left - 1)
        assert offsets(reopened(runtime, tmp_path, changes=changes)) == list(range(left))
        append(log, *(batch(timestamp=NOW_MS + i) for i in range(left, 90)))
        log.flush()
        live = segment(tmp_path, 0, ".index").read_bytes()
        assert len(live) in (4800, 8 * max(0, left - 1))
        assert not any(live[8 * 89 :]), "beyond the last entry there are only zeros"
        log.close()


def test_a_snapshot_of_records_that_were_lost_is_not_believed(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0))
    append(log, idempotent(1))
    log.close()
    with segment(tmp_path).open("r+b") as file:
        file.truncate(SIZE)
    log = reopened(runtime, tmp_path)
    assert log.producers.entries[7].last_sequence == 0
    assert [name for name in files(log) if name.endswith(".snapshot")] == ["00000000000000000001.snapshot"]


def test_epochs_are_rebuilt_from_the_batches(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), epoch=1)
    append(log, batch(), epoch=4)
    crashed(log)
    log = reopened(runtime, tmp_path)
    assert log.epochs.entries == [(1, 0), (4, 1)]
    log.close()
    (tmp_path / "orders-0" / "leader-epoch-checkpoint").write_bytes(b"\0garbage")
    log = reopened(runtime, tmp_path, clean_shutdown=True)
    assert log.epochs.entries == [(1, 0), (4, 1)]


def test_an_epoch_beyond_the_log_end_is_forgotten(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), epoch=1)
    log.assign_epoch_start_offset(2, 1)
    log.close()
    assert reopened(runtime, tmp_path, clean_shutdown=True).epochs.entries == [(1, 0)]


def test_a_log_start_beyond_the_end_empties_the_log(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 5))
    log.close()
    log = reopened(runtime, tmp_path, log_start_offset=9, clean_shutdown=True)
    assert (log.log_start_offset, log.log_end_offset, log.producers.entries) == (9, 9, {})
    (info,) = append(log, batch())
    assert info.first_offset == 9


def test_a_clean_stop_with_a_torn_tail_is_recovered_after_all(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch())
    log.close()
    with segment(tmp_path).open("r+b") as file:
        file.truncate(2 * SIZE - 5)
    assert offsets(reopened(runtime, tmp_path, clean_shutdown=True)) == [0]


def test_a_clean_stop_changes_nothing_when_nothing_happens(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, idempotent(0, 5))
    log.close()
    before = {p.name: p.read_bytes() for p in (tmp_path / "orders-0").iterdir()}
    log = reopened(runtime, tmp_path, clean_shutdown=True, recovery_point=5)
    assert log.recovery_point == 5
    log.close()
    assert {p.name: p.read_bytes() for p in (tmp_path / "orders-0").iterdir()} == before


def test_deleted_and_temporary_files_are_removed(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch())
    log.close()
    for name in ("00000000000000000000.log.deleted", "00000000000000000000.log.cleaned", "x.tmp"):
        (tmp_path / "orders-0" / name).write_bytes(b"?")
    log = reopened(runtime, tmp_path, clean_shutdown=True)
    assert not [name for name in files(log) if name.endswith((".deleted", ".cleaned", ".tmp"))]
    assert offsets(log) == [0]


def _segments_of_two(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE})
    append(log, *(batch() for _ in range(6)))
    log.close()


def test_a_swapped_segment_replaces_those_in_its_range(runtime: LogRuntime, tmp_path: Path) -> None:
    _segments_of_two(runtime, tmp_path)
    merged = segment(tmp_path, 0).read_bytes()[:SIZE] + segment(tmp_path, 2).read_bytes()
    (tmp_path / "orders-0" / "00000000000000000000.log.swap").write_bytes(merged)
    log = reopened(runtime, tmp_path, changes={"cleanup_policy": ("compact",)})
    assert offsets(log) == [0, 2, 3, 4, 5]
    assert not segment(tmp_path, 2).exists()


def test_a_swap_of_an_unfinished_operation_is_removed(runtime: LogRuntime, tmp_path: Path) -> None:
    _segments_of_two(runtime, tmp_path)
    shutil.copy(segment(tmp_path, 2), tmp_path / "orders-0" / "00000000000000000002.log.swap")
    (tmp_path / "orders-0" / "00000000000000000002.log.cleaned").write_bytes(b"")
    assert offsets(reopened(runtime, tmp_path)) == [0, 1, 2, 3, 4, 5]


def test_a_torn_topic_id_is_written_again(runtime: LogRuntime, tmp_path: Path) -> None:
    import uuid

    log = open_log(runtime, tmp_path)
    topic_id = uuid.UUID(int=99)
    log.metadata.write(topic_id)
    crashed(log)
    assert reopened(runtime, tmp_path).topic_id == topic_id
    (tmp_path / "orders-0" / "partition.metadata").write_bytes(b"")
    log = open_log(runtime, tmp_path)
    assert log.topic_id is None
    log.metadata.write(topic_id)
    assert reopened(runtime, tmp_path).topic_id == topic_id


@pytest.mark.parametrize("recovery_point", [0, 2, 3, 6])
def test_missing_offsets_are_no_damage(runtime: LogRuntime, tmp_path: Path, recovery_point: int) -> None:
    """A cleaner took them out inside a segment, at its beginning or at its end; who it was is not told."""
    log = open_log(runtime, tmp_path, changes={"segment_bytes": 3 * SIZE})
    append(log, *(batch() for _ in range(12)))
    log.flush()
    crashed(log)
    for base, kept in ((0, (0, 2)), (3, (2,)), (6, (0,)), (9, (0, 2))):
        data = segment(tmp_path, base).read_bytes()
        segment(tmp_path, base).write_bytes(b"".join(data[i * SIZE : (i + 1) * SIZE] for i in kept))
    log = reopened(runtime, tmp_path, recovery_point=recovery_point)
    assert offsets(log) == [0, 2, 5, 6, 9, 11]
    assert log.log_end_offset == 12
    for suffix in (".index", ".timeindex", ".snapshot"):
        for file in (tmp_path / "orders-0").glob(f"*{suffix}"):
            file.unlink()
    assert offsets(reopened(runtime, tmp_path)) == [0, 2, 5, 6, 9, 11]


def test_bytes_that_are_no_batch_are_cut_behind_missing_offsets_too(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, *(batch() for _ in range(6)))
    log.flush()
    crashed(log)
    data = bytearray(segment(tmp_path).read_bytes())
    data[4 * SIZE + 40] ^= 1
    segment(tmp_path).write_bytes(data[:SIZE] + data[3 * SIZE :])
    assert offsets(reopened(runtime, tmp_path)) == [0, 3]


def test_the_mark_of_a_segment_that_is_not_durable_goes_with_the_flush(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    def marks() -> list[str]:
        return sorted(file.name for file in (tmp_path / "orders-0").glob("*.unflushed"))

    log = open_log(runtime, tmp_path, changes={"segment_bytes": 2 * SIZE})
    append(log, *(batch() for _ in range(6)))
    assert marks() == ["00000000000000000002.unflushed", "00000000000000000004.unflushed"]
    crashed(log)
    log = reopened(runtime, tmp_path)
    assert len(marks()) == 2, "a kill made nothing durable"
    log.flush(2)
    assert marks() == ["00000000000000000004.unflushed"]
    log.truncate_to(3)
    assert marks() == []
    append(log, *(batch() for _ in range(4)))
    log.close()
    assert marks() == []


def test_batches_from_before_epochs_end_what_is_known_of_epochs(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), epoch=3)
    log.close()
    body = b"\x01\x00" + (1_700_000_000_000).to_bytes(8, "big") + b"\xff\xff\xff\xff" + b"\x00\x00\x00\x01v"
    entry = zlib.crc32(body).to_bytes(4, "big") + body
    with segment(tmp_path).open("ab") as file:
        file.write((1).to_bytes(8, "big") + len(entry).to_bytes(4, "big") + entry)
    log = reopened(runtime, tmp_path)
    assert log.log_end_offset == 2
    assert log.epochs.entries == []


def test_a_log_that_begins_anew_beyond_its_end_has_no_epochs(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=5)
    log.close()
    log = open_log(runtime, tmp_path, clean_shutdown=True, recovery_point=5, log_start_offset=500)
    log.close()
    log = open_log(runtime, tmp_path, clean_shutdown=True, recovery_point=500, log_start_offset=500)
    assert log.epochs.entries == []


def test_the_epochs_of_removed_segments_are_not_those_of_what_comes_next(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=3)
    append(log, batch(3), epoch=5)
    log.close()
    for path in (tmp_path / "orders-0").glob("0*"):
        path.unlink()
    log = open_log(runtime, tmp_path, clean_shutdown=True, recovery_point=8)
    append(log, batch(8), epoch=5)
    log.close(clean=False)
    assert open_log(runtime, tmp_path).epochs.entries == [(5, 0)]


def test_epochs_of_records_that_recovery_cut_off_do_not_come_back_after_a_kill(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=0)
    append(log, batch(5), epoch=5)
    log.flush()
    log.close(clean=False)
    os.truncate(tmp_path / "orders-0" / "00000000000000000000.log", len(batch(5).buffer) + 20)
    log = open_log(runtime, tmp_path)
    append(log, batch(5), epoch=3)
    log.close(clean=False)
    assert open_log(runtime, tmp_path).epochs.entries == [(0, 0), (3, 5)]


@pytest.mark.parametrize("clean", [True, False])
def test_records_that_come_back_with_an_older_log_start_have_their_epochs(
    runtime: LogRuntime, tmp_path: Path, clean: bool
) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(2), epoch=1)
    append(log, batch(2), epoch=2)
    log.increment_log_start_offset(4)
    log.flush()
    log.close(clean=clean)
    log = open_log(runtime, tmp_path, clean_shutdown=clean, recovery_point=4)
    assert (log.log_start_offset, log.epochs.entries) == (0, [(1, 0), (2, 2)])


def test_a_snapshot_that_belongs_to_no_segment_is_removed(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, *(idempotent(i) for i in range(4)))
    log.roll()
    append(log, idempotent(4))
    log.close()
    shutil.copy(segment(tmp_path, 4, ".snapshot"), segment(tmp_path, 3, ".snapshot"))
    log = reopened(runtime, tmp_path, clean_shutdown=True, recovery_point=5)
    assert log.snapshots.offsets == [4, 5]
    assert not segment(tmp_path, 3, ".snapshot").exists()


def test_a_clean_start_without_a_snapshot_takes_a_fresh_one(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, *(idempotent(i) for i in range(4)))
    log.close()
    path = segment(tmp_path, 4, ".snapshot")
    content = path.read_bytes()
    path.unlink()
    log = reopened(runtime, tmp_path, clean_shutdown=True, recovery_point=4)
    assert path.read_bytes() == content
    assert log.producers.entries[7].last_sequence == 3


def test_epochs_that_no_flush_has_written_yet_are_found_in_the_batches(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    path = tmp_path / "orders-0" / "leader-epoch-checkpoint"
    log = open_log(runtime, tmp_path)
    append(log, batch(), batch(), epoch=3)
    assert not path.exists()
    crashed(log)
    log = reopened(runtime, tmp_path)
    assert log.epochs.entries == [(3, 0)]
    append(log, batch(), epoch=5)
    log.flush()
    assert path.read_bytes() == b"0\n2\n3 0\n5 2\n"
    append(log, batch(), epoch=8)
    log.assign_epoch_start_offset(9, log.log_end_offset)
    assert path.read_bytes() == b"0\n2\n3 0\n5 2\n"
    crashed(log)
    log = reopened(runtime, tmp_path, recovery_point=3)
    assert log.epochs.entries == [(3, 0), (5, 2), (8, 3)]
    log.assign_epoch_start_offset(10, log.log_end_offset)
    log.close()
    assert path.read_bytes() == b"0\n4\n3 0\n5 2\n8 3\n10 4\n"
