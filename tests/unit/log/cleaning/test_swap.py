"""Cleaned segments take the place of others: under readers, into the indexes, over a restart."""

from pathlib import Path
from typing import Any

import pytest

from odradek.log.cleaning.candidates import examine
from odradek.log.cleaning.job import CleaningJob, Replacement
from odradek.log.cleaning.planning import prepare
from odradek.log.log import Log
from odradek.log.lookup import TimestampOffset
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import iter_batches, iter_records
from tests.support.cleaning import SETTINGS, batches, clean, clean_all, keyed, pairs
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    config,
    files,
    marker,
    open_log,
    records,
)

COMPACT: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 4000,
    "index_interval_bytes": 200,
    "delete_retention_ms": 1000,
}


@pytest.fixture
def log(runtime: LogRuntime, tmp_path: Path) -> Log:
    return open_log(runtime, tmp_path, changes=COMPACT)


def fill(log: Log, count: int = 200, keys: int = 60) -> None:
    for i in range(count):
        append(log, keyed([(b"key-%d" % (i * 7 % keys), b"%d" % i * 20)], timestamp=NOW_MS + i * 10))


def job_of(log: Log, runtime: LogRuntime) -> CleaningJob:
    candidate = examine(log, runtime.clock.now_ms())
    return CleaningJob(runtime.disk, prepare(candidate, SETTINGS, runtime.clock.now_ms(), runtime.rng))


def first_replacement(job: CleaningJob) -> Replacement:
    while True:
        progress = job.advance(1)
        assert progress is not None
        if progress.replacement is not None:
            return progress.replacement


def test_small_segments_become_few_and_every_lookup_still_works(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    before, size = len(log.segments), log.size_bytes
    clean(log, runtime)
    clean_all(log, runtime)
    assert len(log.segments) < before
    assert log.size_bytes < size / 2
    kept = {offset: key for offset, key, _ in pairs(log)}
    for offset in range(log.log_end_offset):
        (found,) = records(log, offset)[:1]
        assert found.offset == min(o for o in kept if o >= offset)
    for offset in kept:
        found_at = log.offset_for_timestamp(NOW_MS + offset * 10)
        assert isinstance(found_at, TimestampOffset)
        assert found_at.offset == offset
        before_it = [o for o in kept if o < offset]
        asked = NOW_MS + before_it[-1] * 10 + 1 if before_it else 0
        found_at = log.offset_for_timestamp(asked)
        assert isinstance(found_at, TimestampOffset)
        assert found_at.offset == offset


def test_indexes_are_what_a_rebuild_would_make_of_them(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    clean(log, runtime)
    sealed = [segment for segment in log.segments.all() if segment is not log.segments.active]
    paths = [Path(s.file.path).with_suffix(suffix) for s in sealed for suffix in (".index", ".timeindex")]
    written = [path.read_bytes() for path in paths]
    assert any(written)
    for segment in sealed:
        segment.rebuild_indexes()
    assert [path.read_bytes() for path in paths] == written


def test_who_reads_while_segments_are_swapped_reads_on(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    expected = pairs(log)
    slices = []
    offset = 0
    while offset < log.log_end_offset:
        info = log.read(offset, 500, 1)  # type: ignore[arg-type]
        assert info.slice is not None
        slices.append(info.slice)
        offset = max(b.last_offset for b in iter_batches(info.slice.read())) + 1
    clean(log, runtime)
    runtime.clock.ms += 100_000
    log.purge_deleted(runtime.clock.ms)
    data = [s.read() for s in slices]
    assert [
        (r.offset, r.key, r.value)
        for piece in data
        for b in iter_batches(piece)
        for r in iter_records(piece, b)
    ] == expected


def test_readers_and_writers_go_on_between_the_steps_of_a_swap(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    values = {key: value for _, key, value in pairs(log)}
    job = job_of(log, runtime)
    swapped = None
    while (progress := job.advance(1)) is not None:
        assert {r.key: r.value for r in records(log)} == values
        append(log, keyed([(b"key-1", b"during")]))
        values[b"key-1"] = b"during"
        if progress.replacement is not None:
            swapped = log.compaction.begin_swap(progress.replacement)
            assert swapped is not None
            job.taken()
            assert {r.key: r.value for r in records(log)} == values
            log.flush()
            log.compaction.finish_swap(swapped)
            assert {r.key: r.value for r in records(log)} == values
    assert swapped is not None


def test_old_files_go_after_their_delay_and_nothing_else_is_left(
    log: Log, runtime: LogRuntime, tmp_path: Path
) -> None:
    fill(log)
    clean(log, runtime)
    assert any(name.endswith(".deleted") for name in files(log))
    log.purge_deleted(runtime.clock.ms + log.config.file_delete_delay_ms)
    stems = {f"{base:020d}" for base in log.segments.base_offsets}
    assert {name.partition(".")[0] for name in files(log) if name[0] == "0"} == stems
    assert {name.partition(".")[2] for name in files(log) if name[0] == "0"} == {
        "log",
        "index",
        "timeindex",
        "snapshot",
    }


def test_a_replacement_is_refused_once_its_segments_are_gone(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    job = job_of(log, runtime)
    replacement = first_replacement(job)
    assert any(name.endswith(".swap") for name in files(log))
    log.update_config(config(**{**COMPACT, "cleanup_policy": ("delete",), "retention_bytes": 5000}))
    assert log.retain(runtime.clock.ms) > 0
    assert log.compaction.begin_swap(replacement) is None
    job.discard()
    assert not any(name.endswith((".swap", ".cleaned")) for name in files(log))


def test_a_job_that_is_discarded_leaves_no_file(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    before = files(log)
    job = job_of(log, runtime)
    while not any(name.endswith(".cleaned") for name in files(log)):
        assert job.advance(1) is not None
    job.discard()
    assert files(log) == before


def test_a_swapped_segment_keeps_its_place_while_it_has_its_first_names(
    log: Log, runtime: LogRuntime, tmp_path: Path
) -> None:
    """Truncated, moved and restarted with .swap files: they are the segment."""
    fill(log)
    job = job_of(log, runtime)
    replacement = first_replacement(job)
    segment = log.compaction.begin_swap(replacement)
    assert segment is not None
    log.close()
    log.move(str(tmp_path / "orders-0-moved"))
    log.move(str(tmp_path / "orders-0"))
    expected = [(r.offset, r.key) for r in records(log)]
    log.close()
    again = open_log(runtime, tmp_path, changes=COMPACT, clean_shutdown=True)
    again.advance_high_watermark(again.log_end_offset)
    assert [(r.offset, r.key) for r in records(again)] == expected
    assert not any(name.endswith((".swap", ".deleted")) for name in files(again))


def test_the_time_of_the_files_is_that_of_what_they_replace(log: Log, runtime: LogRuntime) -> None:
    fill(log)
    for segment in log.segments.all():
        runtime.disk.set_mtime(segment.file.path, NOW_MS - 10_000 + segment.base_offset)
    last = [segment.base_offset for segment in log.segments.all()][-2]
    clean(log, runtime)
    stat = runtime.disk.stat(log.segments.all()[-2].file.path)
    assert stat.mtime_ms == NOW_MS - 10_000 + last


@pytest.mark.parametrize("policy", [("compact",), ("delete",), ("compact", "delete")])
def test_a_restart_without_a_clean_stop_keeps_what_lies_behind_gaps(
    log: Log, runtime: LogRuntime, tmp_path: Path, policy: tuple[str, ...]
) -> None:
    """Also of a topic that is not compacted any more."""
    fill(log)
    clean(log, runtime)
    fill(log, 10)
    log.segments.active.trim_indexes()
    expected = pairs(log)
    changes = {**COMPACT, "cleanup_policy": policy}
    again = open_log(runtime, tmp_path, changes=changes, cleaned_offset=log.cleaned_offset)
    assert pairs(again) == expected
    assert again.log_end_offset == log.log_end_offset


def test_what_was_cleaned_stays_where_nothing_tells_of_a_cleaner(
    log: Log, runtime: LogRuntime, tmp_path: Path
) -> None:
    """The topic is compacted no more, and both checkpoints are lost."""
    fill(log)
    clean(log, runtime)
    log.flush()
    known = pairs(log)
    again = open_log(runtime, tmp_path, changes={**COMPACT, "cleanup_policy": ("delete",)})
    again.advance_high_watermark(again.log_end_offset)
    assert again.log_end_offset == log.log_end_offset
    assert pairs(again) == known


def test_transactions_survive_the_swap_of_their_index(log: Log, runtime: LogRuntime) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    append(log, keyed([(b"a", b"1")]))
    append(log, keyed([(b"a", b"2")], base_sequence=0, **producer))
    log.roll()
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    append(log, keyed([(b"z", b"2")], base_sequence=1, **producer))
    append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
    log.roll()
    clean(log, runtime)
    (segment, _) = log.segments.all()
    assert segment.has_txn_index
    assert [txn.last_offset for txn in segment.txn_index.entries] == [2]
    assert pairs(log) == [(0, b"a", b"1"), (3, b"z", b"2")]


def test_compact_and_delete_do_both(runtime: LogRuntime, tmp_path: Path) -> None:
    both = {**COMPACT, "cleanup_policy": ("compact", "delete"), "retention_ms": 300, "segment_bytes": 600}
    log = open_log(runtime, tmp_path, changes=both)
    fill(log, 200)
    for segment in log.segments.all():
        runtime.disk.set_mtime(segment.file.path, NOW_MS)
    clean(log, runtime)
    left = pairs(log)
    assert len({key for _, key, _ in left}) == 60
    assert log.retain(NOW_MS + 199 * 10) > 0
    assert 0 < len(pairs(log)) < len(left)
    assert log.log_start_offset == log.segments.first.base_offset
    assert examine(log, runtime.clock.ms).first_dirty_offset >= log.log_start_offset


def test_an_emptied_group_leaves_a_segment_that_holds_its_place(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={**COMPACT, "segment_bytes": 200})
    for value in (b"1", b"2", b"3"):
        append(log, keyed([(b"a", value * 100)]))
    log.roll()
    clean(log, runtime)
    assert log.segments.first.base_offset == 0
    assert log.segments.first.size == 0
    assert [(r.offset, r.value) for r in records(log, 0)] == [(2, b"3" * 100)]
    assert [meta.base_offset for meta, _ in batches(log)] == [2]
