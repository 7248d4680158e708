"""Which logs are cleaned: how dirty, up to where, which first."""

import logging
from pathlib import Path
from typing import Any

import pytest

from odradek.log.cleaning.candidates import LogToClean, dirtiest, examine, first_dirty_offset
from odradek.log.log import Log
from odradek.log.producers.rules import AppendOrigin
from tests.support.cleaning import keyed
from tests.unit.log.support import NOW_MS, LogRuntime, append, config, marker, open_log

COMPACT = {"cleanup_policy": ("compact",), "segment_bytes": 1 << 20}
SIZE = len(keyed([(b"k", b"v")]).buffer)


def segments_of(runtime: LogRuntime, path: Path, count: int, *, step_ms: int = 1000, **changes: Any) -> Log:
    """A log of complete segments with one record each, and an empty active one."""
    log = open_log(runtime, path, changes={**COMPACT, **changes})
    for i in range(count):
        append(log, keyed([(b"k", b"v")], timestamp=NOW_MS + i * step_ms))
        log.roll()
    return log


def bounds(candidate: LogToClean) -> tuple[int, int, int, int]:
    return (
        candidate.first_dirty_offset,
        candidate.first_uncleanable_offset,
        candidate.clean_bytes,
        candidate.cleanable_bytes,
    )


def test_all_but_the_active_segment_is_cleanable(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 4)
    append(log, keyed([(b"k", b"v")]))
    assert bounds(examine(log, NOW_MS)) == (0, 4, 0, 4 * SIZE)
    log.compaction.cleaned_offset = 3
    candidate = examine(log, NOW_MS)
    assert bounds(candidate) == (3, 4, 3 * SIZE, SIZE)
    assert candidate.dirty_ratio == 0.25


def test_a_log_of_one_segment_has_nothing_to_clean(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes=COMPACT)
    append(log, keyed([(b"k", b"v")]))
    candidate = examine(log, NOW_MS)
    assert bounds(candidate) == (0, 0, 0, 0)
    assert not candidate.is_due


def test_nothing_beyond_the_last_stable_offset_is_cleanable(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 2)
    fields = {"producer_id": 7, "producer_epoch": 0, "transactional": True}
    append(log, keyed([(b"k", b"v")], base_sequence=0, **fields))
    log.roll()
    append(log, keyed([(b"k", b"v")]))
    log.roll()
    assert examine(log, NOW_MS).first_uncleanable_offset == 2
    append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
    assert examine(log, NOW_MS).first_uncleanable_offset == 4


def test_the_high_watermark_bounds_it_too(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes=COMPACT)
    for _ in range(3):
        log.append_as_leader([keyed([(b"k", b"v")])], 0)
        log.roll()
    log.advance_high_watermark(1)
    assert examine(log, NOW_MS).first_uncleanable_offset == 1


def test_min_compaction_lag_keeps_young_segments(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 4, min_compaction_lag_ms=1500)
    now_ms = NOW_MS + 3000
    assert examine(log, now_ms).first_uncleanable_offset == 2
    log.update_config(config(**COMPACT, min_compaction_lag_ms=0))
    assert examine(log, now_ms).first_uncleanable_offset == 4


def test_max_compaction_lag_makes_a_log_due_that_is_hardly_dirty(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 4)
    log.compaction.cleaned_offset = 3
    assert not examine(log, NOW_MS + 10_000).is_due
    log.update_config(config(**COMPACT, max_compaction_lag_ms=5000))
    assert not examine(log, NOW_MS + 3000 + 5000).is_due
    assert examine(log, NOW_MS + 3000 + 5001).is_due
    log.compaction.cleaned_offset = 4
    assert not examine(log, NOW_MS + 100_000).is_due


def test_the_dirty_ratio_must_exceed_its_minimum(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 4)
    log.compaction.cleaned_offset = 2
    assert not examine(log, NOW_MS).is_due
    log.compaction.cleaned_offset = 1
    assert examine(log, NOW_MS).is_due
    log.update_config(config(**COMPACT, min_cleanable_dirty_ratio=0.8))
    assert not examine(log, NOW_MS).is_due
    log.compaction.cleaned_offset = 4
    log.update_config(config(**COMPACT, min_cleanable_dirty_ratio=0.0))
    assert not examine(log, NOW_MS).is_due


def test_a_checkpoint_that_cannot_be_makes_all_of_the_log_dirty(
    runtime: LogRuntime, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = segments_of(runtime, tmp_path, 4)
    log.compaction.cleaned_offset = 99
    assert first_dirty_offset(log) == 0
    log.increment_log_start_offset(2)
    log.compaction.cleaned_offset = 1
    assert first_dirty_offset(log) == 2
    assert len(caplog.records) == 2
    # Where old records are deleted as well, the log start overtakes the cleaner as a matter of course.
    log.update_config(config(**{**COMPACT, "cleanup_policy": ("compact", "delete")}))
    with caplog.at_level(logging.WARNING):
        assert first_dirty_offset(log) == 2
    assert len(caplog.records) == 2


def test_a_truncation_takes_the_checkpoint_back(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 4)
    log.compaction.cleaned_offset = 4
    log.truncate_to(2)
    assert log.cleaned_offset == 2
    log.truncate_fully_and_start_at(0)
    assert log.cleaned_offset == 0


def test_the_dirtiest_that_is_due_comes_first(runtime: LogRuntime, tmp_path: Path) -> None:
    log = segments_of(runtime, tmp_path, 1)

    def candidate(clean: int, cleanable: int, *, overdue: bool = False) -> LogToClean:
        return LogToClean(log, 0, 1, clean, cleanable, overdue)

    low, high, late = candidate(40, 60), candidate(20, 80), candidate(99, 1, overdue=True)
    assert dirtiest([low, high, late]) is high
    assert dirtiest([late, candidate(60, 40)]) is late
    assert dirtiest([candidate(60, 40), candidate(100, 0, overdue=True)]) is None
    assert dirtiest([]) is None
