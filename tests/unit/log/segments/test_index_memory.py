"""Indexes take memory only while they are used: they go with the descriptor that the pool takes back."""

import random
from pathlib import Path

from odradek.log.files import FilePool
from odradek.log.log import Log
from tests.unit.log.support import LogRuntime, append, batch, offsets, open_log

SEGMENTS = 40
FILES = 8
CHANGES = {"index_interval_bytes": 50, "segment_bytes": 10 * len(batch().buffer)}


def filled(runtime: LogRuntime, path: Path, files: int = FILES) -> Log:
    pool = FilePool(runtime.disk, files)
    log = open_log(runtime, path, changes=CHANGES, pool=pool)
    for _ in range(10 * SEGMENTS):
        append(log, batch())
    return log


def in_memory(log: Log) -> int:
    return sum(
        index is not None for s in log.segments.all() for index in (s._indexes.offsets, s._indexes.times)
    )


def test_indexes_of_segments_that_were_read_are_given_up(runtime: LogRuntime, tmp_path: Path) -> None:
    filled(runtime, tmp_path).close()
    log = open_log(
        runtime, tmp_path, changes=CHANGES, pool=FilePool(runtime.disk, FILES), clean_shutdown=True
    )
    log.advance_high_watermark(log.log_end_offset)
    assert in_memory(log) <= 2, "sealed segments are not opened by a clean start"
    assert offsets(log) == list(range(10 * SEGMENTS))
    for segment in log.segments.all():
        assert segment.largest_timestamp_ms() > 0
    assert in_memory(log) <= FILES
    rng = random.Random(5)
    for _ in range(200):
        offset = rng.randrange(10 * SEGMENTS)
        assert offsets(log, offset)[:1] == [offset]
    assert in_memory(log) <= FILES


def test_indexes_of_segments_that_were_written_are_given_up(runtime: LogRuntime, tmp_path: Path) -> None:
    assert in_memory(filled(runtime, tmp_path)) <= FILES + 2


def test_an_active_segment_keeps_its_indexes(runtime: LogRuntime, tmp_path: Path) -> None:
    log = filled(runtime, tmp_path)
    append(log, batch(), batch(), batch())
    active = log.segments.active
    index = active._indexes.offsets
    assert index is not None and index.entries
    offsets(log)
    assert active._indexes.offsets is index
    append(log, batch())
    log.close()
    again = open_log(runtime, tmp_path, changes=CHANGES, clean_shutdown=True)
    assert again.segments.active.offset_index.entries == index.entries


def test_an_index_that_was_given_up_is_still_synced(runtime: LogRuntime, tmp_path: Path) -> None:
    log = filled(runtime, tmp_path)
    for segment in log.segments.all()[:-1]:
        assert len(segment.flush_indexes()) == 2
