"""Reads by offset: up to which bound, and from which of the positions that are known."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.log.parts.bounds import Isolation
from odradek.log.parts.reading import FetchInfo, Position
from odradek.records.batch import iter_batches
from tests.unit.log.parts.support import Parts


def base_offsets(info: FetchInfo) -> list[int]:
    return [] if info.slice is None else [batch.base_offset for batch in iter_batches(info.slice.read())]


def read(parts: Parts, offset: int, isolation: Isolation, max_bytes: int = 1 << 20) -> list[int]:
    return base_offsets(parts.reader.read(offset, max_bytes, isolation, True))


def test_a_read_ends_at_the_bound_of_its_isolation(parts: Parts) -> None:
    for _ in range(4):
        parts.write()
    parts.bounds.advance_high_watermark(2)
    assert read(parts, 0, Isolation.LOG_END) == [0, 1, 2, 3]
    assert read(parts, 0, Isolation.HIGH_WATERMARK) == [0, 1]
    assert read(parts, 2, Isolation.HIGH_WATERMARK) == []
    parts.bounds.advance_high_watermark(3)
    assert read(parts, 0, Isolation.HIGH_WATERMARK) == [0, 1, 2], "the known position is of another bound"


def test_a_read_stays_within_a_segment(parts: Parts) -> None:
    parts.write()
    parts.roller.roll_at(1)
    parts.write()
    assert read(parts, 0, Isolation.LOG_END) == [0]
    assert read(parts, 1, Isolation.LOG_END) == [1]


def test_one_batch_is_read_whole_where_that_is_asked_for(parts: Parts) -> None:
    parts.write()
    parts.write()
    assert read(parts, 0, Isolation.LOG_END, max_bytes=1) == [0]
    assert parts.reader.read(0, 1, Isolation.LOG_END, False).size == 1


@pytest.mark.parametrize("offset", [-1, 3])
def test_an_offset_outside_of_the_log_is_refused(parts: Parts, offset: int) -> None:
    parts.write(2)
    with pytest.raises(KafkaError, match="in the range 0 to 2") as refusal:
        parts.reader.read(offset, 100, Isolation.LOG_END, True)
    assert refusal.value.code is ErrorCode.OFFSET_OUT_OF_RANGE


def test_the_newest_position_is_taken_unseen_until_it_is_forgotten(parts: Parts) -> None:
    parts.write()
    parts.write()
    # It lies: a read that finds the second batch at offset 0 went by it.
    size = parts.segments.active.size // 2
    parts.reader.newest = Position(parts.segments.active, 0, size, size)
    assert read(parts, 0, Isolation.LOG_END) == [1]
    parts.reader.forget_positions()
    assert read(parts, 0, Isolation.LOG_END) == [0, 1]


def test_a_gap_is_passed_over(parts: Parts, caplog: pytest.LogCaptureFixture) -> None:
    for offset in (1, 2):
        parts.write()
        parts.roller.roll_at(offset)
    parts.write()
    parts.local_log.remove([parts.segments.all()[1]])
    for _ in range(2):
        assert read(parts, 1, Isolation.LOG_END) == [2]
    assert caplog.text.count("are missing: reads skip the gap") == 1
