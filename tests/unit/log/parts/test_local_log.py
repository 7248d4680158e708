"""The files of segments: what a new one finds, when those set aside go, by how much rolls spread."""

import random
from pathlib import Path

from odradek.log.parts.log_config import roll_after_ms
from tests.unit.log.parts.support import Parts
from tests.unit.log.support import NOW_MS, LogRuntime, config, open_log


def test_a_new_segment_begins_without_the_files_that_bore_its_name(parts: Parts) -> None:
    for suffix in (".txnindex", ".index", ".log"):
        (parts.path / f"{3:020}{suffix}").write_bytes(b"stale" * 10)
    changes = parts.dir.changes
    segment = parts.local_log.new_segment(3)
    assert (segment.base_offset, segment.size) == (3, 0)
    assert f"{3:020}.txnindex" not in parts.files()
    assert (parts.path / f"{3:020}.log").stat().st_size == 0
    assert parts.dir.changes > changes


def test_files_set_aside_go_after_their_delay(parts: Parts) -> None:
    delay_ms = parts.config.topic.file_delete_delay_ms
    for end in (1, 2):
        parts.write()
        parts.roller.roll_at(end)
    first, second, _ = parts.segments.all()
    parts.local_log.remove([first])
    parts.runtime.clock.ms += 10
    parts.local_log.remove([second])
    assert parts.local_log.take_deleted(NOW_MS + delay_ms - 1) == []
    taken = parts.local_log.take_deleted(NOW_MS + delay_ms)
    assert taken == first.deleted_paths()
    parts.local_log.give_back_deleted(taken)
    assert parts.local_log.take_deleted(parts.runtime.clock.ms) == taken, "they are due already"
    parts.local_log.purge_deleted(NOW_MS + 10 + delay_ms)
    assert f"{1:020}.log.deleted" not in parts.files()


def test_segments_of_many_partitions_are_not_rolled_at_once(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_jitter_ms": 1_000})
    assert log.segments.active.roll_jitter_ms == random.Random(1).randrange(1_000)


def test_a_compacted_log_is_rolled_before_its_records_are_over_their_lag() -> None:
    def after_ms(lag_ms: int, policy: tuple[str, ...] = ("compact",)) -> int:
        return roll_after_ms(config(cleanup_policy=policy, segment_ms=1_000, max_compaction_lag_ms=lag_ms))

    assert after_ms(400) == 400
    assert after_ms(5_000) == 1_000
    assert after_ms(0) == 1_000
    assert after_ms(400, ("delete",)) == 1_000
