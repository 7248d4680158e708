"""One segment by itself: which batches are indexed, when it must end, and what of its indexes is believed."""

import os
from pathlib import Path

import pytest

from odradek.log.files import FilePool
from odradek.log.segments.segment import Segment
from odradek.records.header import MAX_INT32
from tests.unit.log.support import NOW_MS, LogRuntime, batch, config

BASE = 1000
SIZE = len(batch().buffer)
FOREVER = 1 << 60
ASK = (-1, -1, -1)


class Sample:
    """A segment with batches of one record, a millisecond apart."""

    def __init__(self, runtime: LogRuntime, path: Path, *, jitter_ms: int = 0, interval: int = SIZE) -> None:
        self.runtime, self.path = runtime, path
        self.config = config(index_interval_bytes=interval, segment_index_bytes=1_200)
        self.pool = FilePool(runtime.disk)
        self.segment = Segment.create(
            self.pool, str(path), BASE, self.config, NOW_MS, roll_jitter_ms=jitter_ms
        )
        self.next_offset = BASE

    def put(self, *timestamps: int) -> None:
        for timestamp in timestamps:
            self.should_roll(0, timestamp)
            data = batch(base_offset=self.next_offset, timestamp=timestamp).buffer
            self.segment.write([data], len(data))
            self.segment.index_batch(self.next_offset, timestamp, len(data))
            self.next_offset += 1

    def should_roll(
        self,
        size: int,
        timestamp: int = NOW_MS,
        offset: int = BASE,
        *,
        most: int = 1 << 30,
        after: int = FOREVER,
    ) -> bool:
        return self.segment.should_roll(most, after, size, timestamp, offset, self.runtime.clock)

    def reopened(self) -> Segment:
        self.segment.seal()
        self.segment.close()
        size = os.path.getsize(self.path / f"{BASE:020}.log")
        self.segment = Segment(self.pool, str(self.path), BASE, self.config, NOW_MS, size=size)
        return self.segment

    def file(self, suffix: str) -> Path:
        return self.path / f"{BASE:020}{suffix}"


@pytest.fixture
def sample(runtime: LogRuntime, tmp_path: Path) -> Sample:
    return Sample(runtime, tmp_path)


# --- what is indexed --------------------------------------------------------------------------------------


def test_a_batch_is_indexed_after_more_bytes_than_the_interval(sample: Sample) -> None:
    sample.put(*range(NOW_MS, NOW_MS + 7))
    index = sample.segment.offset_index
    assert index.entries == 3, "the third batch, the fifth, the seventh"
    assert [index.lookup(BASE + i) for i in (1, 2, 3, 4, 6)] == [
        (BASE, 0),
        (BASE + 2, 2 * SIZE),
        (BASE + 2, 2 * SIZE),
        (BASE + 4, 4 * SIZE),
        (BASE + 6, 6 * SIZE),
    ]


def test_the_time_index_names_the_first_batch_of_the_largest_time(sample: Sample) -> None:
    sample.put(NOW_MS, NOW_MS + 9, NOW_MS + 9, NOW_MS + 3, NOW_MS + 4)
    assert sample.segment.max_timestamp == (NOW_MS + 9, BASE + 1)
    assert sample.segment.time_index.last_entry == (NOW_MS + 9, BASE + 1)
    assert sample.segment.time_index.entries == 1


def test_an_empty_segment_has_no_time(sample: Sample) -> None:
    assert sample.segment.max_timestamp == (-1, BASE)
    assert sample.segment.first_timestamp is None


# --- when it ends -----------------------------------------------------------------------------------------


def test_a_segment_ends_when_the_next_batch_does_not_fit(sample: Sample) -> None:
    sample.put(NOW_MS)
    assert not sample.should_roll(100, most=SIZE + 100)
    assert sample.should_roll(101, most=SIZE + 100)


def test_a_segment_ends_before_an_offset_that_its_indexes_cannot_address(sample: Sample) -> None:
    assert not sample.should_roll(1, offset=BASE + MAX_INT32)
    assert sample.should_roll(1, offset=BASE + MAX_INT32 + 1)


def test_a_segment_ends_by_the_time_of_its_records(runtime: LogRuntime, tmp_path: Path) -> None:
    sample = Sample(runtime, tmp_path, jitter_ms=30)
    assert not sample.should_roll(1, NOW_MS + 5_000, after=100), "it is empty"
    sample.put(NOW_MS)
    assert not sample.should_roll(1, NOW_MS + 70, after=100)
    assert sample.should_roll(1, NOW_MS + 71, after=100)


def test_a_segment_without_times_ends_by_the_clock(sample: Sample) -> None:
    sample.put(-1)
    sample.runtime.clock.ms += 100
    assert not sample.should_roll(1, -1, after=100)
    sample.runtime.clock.ms += 1
    assert sample.should_roll(1, -1, after=100)


def test_a_segment_ends_when_an_index_is_full(runtime: LogRuntime, tmp_path: Path) -> None:
    sample = Sample(runtime, tmp_path, interval=0)
    times = sample.segment.time_index.max_entries
    sample.put(*range(NOW_MS, NOW_MS + times - 1))
    assert not sample.should_roll(1)
    sample.put(NOW_MS + times)
    assert sample.should_roll(1), "the last slot is for the largest time"


def test_up_to_its_bounds_nobody_needs_to_ask(runtime: LogRuntime, tmp_path: Path) -> None:
    sample = Sample(runtime, tmp_path, jitter_ms=30)
    assert sample.segment.free_bounds(5_000, 100, 1) == ASK, "it has no first time yet"
    sample.put(NOW_MS)
    assert sample.segment.free_bounds(5_000, 100, 1) == (5_000, NOW_MS + 70, BASE + MAX_INT32)
    room = sample.segment.time_index.max_entries
    assert sample.segment.free_bounds(5_000, 100, room - 2) != ASK
    assert sample.segment.free_bounds(5_000, 100, room - 1) == ASK


def test_a_segment_that_was_opened_again_has_to_be_asked_once(sample: Sample) -> None:
    sample.put(NOW_MS, NOW_MS + 1)
    segment = sample.reopened()
    assert segment.free_bounds(5_000, 100, 1) == ASK
    assert not sample.should_roll(1)
    assert segment.first_timestamp == NOW_MS
    assert segment.free_bounds(5_000, 100, 1) == (5_000, NOW_MS + 100, BASE + MAX_INT32)


def test_a_segment_is_sealed_once(sample: Sample) -> None:
    assert not sample.segment.seal_if_open(), "it is empty"
    sample.put(NOW_MS)
    assert sample.segment.seal_if_open()
    assert not sample.reopened().seal_if_open(), "nothing can have been appended"


def test_an_empty_segment_gives_back_what_was_preallocated(runtime: LogRuntime, tmp_path: Path) -> None:
    options = config(preallocate=True, segment_bytes=1 << 20)
    segment = Segment.create(FilePool(runtime.disk), str(tmp_path), BASE, options, NOW_MS)
    assert os.path.getsize(tmp_path / f"{BASE:020}.log") == 1 << 20
    assert not segment.seal_if_open()
    assert os.path.getsize(tmp_path / f"{BASE:020}.log") == 0


# --- what of an index is believed -------------------------------------------------------------------------


def filled(sample: Sample) -> Segment:
    sample.put(*range(NOW_MS, NOW_MS + 9))
    return sample.reopened()


def test_indexes_that_are_right_are_not_rebuilt(sample: Sample) -> None:
    segment = filled(sample)
    written = {suffix: sample.file(suffix).stat().st_mtime_ns for suffix in (".index", ".timeindex")}
    assert segment.offset_index.entries == 4
    assert segment.time_index.last_entry == (NOW_MS + 8, BASE + 8)
    assert {suffix: sample.file(suffix).stat().st_mtime_ns for suffix in written} == written


def test_an_empty_time_index_of_records_with_times_is_rebuilt(sample: Sample) -> None:
    segment = filled(sample)
    sample.file(".timeindex").write_bytes(b"")
    assert segment.time_index.last_entry == (NOW_MS + 8, BASE + 8)
    assert segment.largest_timestamp_ms() == NOW_MS + 8


def test_an_empty_time_index_of_records_without_times_is_right(sample: Sample) -> None:
    sample.put(*[-1] * 5)
    segment = sample.reopened()
    written = sample.file(".index").stat().st_mtime_ns
    assert segment.time_index.entries == 0
    assert sample.file(".index").stat().st_mtime_ns == written


@pytest.mark.parametrize(
    ("suffix", "entry"),
    [
        (".timeindex", (NOW_MS + 99).to_bytes(8, "big") + (8).to_bytes(4, "big")),
        (".timeindex", (NOW_MS + 8).to_bytes(8, "big") + (7).to_bytes(4, "big")),
        (".index", (8).to_bytes(4, "big") + (7 * SIZE).to_bytes(4, "big")),
        (".index", (9).to_bytes(4, "big") + (9 * SIZE).to_bytes(4, "big")),
    ],
    ids=["another time", "another offset", "another batch", "beyond the end"],
)
def test_an_index_whose_last_entry_is_wrong_is_rebuilt(sample: Sample, suffix: str, entry: bytes) -> None:
    segment = filled(sample)
    data = sample.file(suffix).read_bytes()
    sample.file(suffix).write_bytes(data[: -len(entry)] + entry)
    assert segment.time_index.last_entry == (NOW_MS + 8, BASE + 8)
    assert segment.offset_index.last_entry == (BASE + 8, 8 * SIZE)
    assert segment.size == 9 * SIZE
    assert [segment.translate(BASE + i) for i in range(9)] == [(BASE + i, i * SIZE, SIZE) for i in range(9)]


def test_where_the_batches_are_damaged_nothing_speaks_against_an_index(sample: Sample) -> None:
    segment = filled(sample)
    with sample.file(".log").open("r+b") as file:
        file.seek(8 * SIZE + 16)
        file.write(b"\x07")
    assert segment.is_time_of_batch(NOW_MS + 8, BASE + 8)
    assert not segment.is_time_of_batch(NOW_MS + 99, BASE + 7)
    assert segment.is_time_of_batch(NOW_MS + 7, BASE + 7)


def test_a_rebuilt_segment_goes_on_where_it_was(sample: Sample) -> None:
    sample.put(*range(NOW_MS, NOW_MS + 5))
    sample.segment.rebuild_indexes()
    sample.put(*range(NOW_MS + 5, NOW_MS + 9))
    assert sample.segment.size == 9 * SIZE
    assert sample.segment.max_timestamp == (NOW_MS + 8, BASE + 8)
    assert [sample.segment.translate(BASE + i) for i in range(9)] == [
        (BASE + i, i * SIZE, SIZE) for i in range(9)
    ]


def test_a_truncated_segment_knows_its_largest_time(sample: Sample) -> None:
    sample.put(NOW_MS, NOW_MS + 1, NOW_MS + 9, NOW_MS + 5, NOW_MS + 6)
    assert sample.segment.end_if_truncated_to(BASE + 2) == BASE + 2
    assert sample.segment.truncate_to(BASE + 2, NOW_MS + 50)[0] is sample.segment.file.handle
    assert sample.segment.max_timestamp == (NOW_MS + 1, BASE + 1)
    assert sample.segment.created_ms == NOW_MS
    assert sample.segment.truncate_to(BASE + 2, NOW_MS + 50) == [], "nothing to sync"
    sample.segment.truncate_to(BASE, NOW_MS + 50)
    assert sample.segment.max_timestamp == (-1, BASE)
    assert (sample.segment.size, sample.segment.created_ms) == (0, NOW_MS + 50)
