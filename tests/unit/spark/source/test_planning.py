"""Which offsets a micro-batch takes, and how they are split."""

import pytest

from odradek.core.types import TopicPartition
from odradek.spark.source.planning import (
    OffsetRange,
    from_json,
    is_same_place,
    limit_to,
    pack,
    split,
    starts_of,
    to_json,
)

A, B, C = (TopicPartition("t", p) for p in range(3))


def test_offsets_are_written_as_the_official_connector_does() -> None:
    written = to_json({B: 7, A: 5}, None)
    assert written == {"t": {"0": 5, "1": 7}}
    assert from_json(written) == ({A: 5, B: 7}, None)


def test_offsets_tell_whose_they_are() -> None:
    assert from_json(to_json({A: 5}, "cluster")) == ({A: 5}, "cluster")


def test_offsets_tell_where_new_partitions_begin() -> None:
    written = to_json({A: 5, B: 7}, "cluster", None, {A: 0, B: 3})
    assert starts_of(written) == {A: 0, B: 3}
    assert from_json(written) == ({A: 5, B: 7}, "cluster")
    plain = to_json({A: 5, B: 7}, "cluster")
    assert starts_of(plain) == {}
    assert is_same_place(written, plain)
    assert not is_same_place(written, to_json({A: 5, B: 8}, "cluster"))


def test_a_limit_is_shared_in_proportion() -> None:
    start, end = {A: 0, B: 0, C: 10}, {A: 900, B: 100, C: 10}
    limited = limit_to(100, start, end)
    assert limited == {A: 90, B: 10, C: 10}


def test_a_limit_above_what_there_is_changes_nothing() -> None:
    end = {A: 9, B: 3}
    assert limit_to(12, {A: 0, B: 0}, end) == end


def test_a_small_limit_moves_every_partition() -> None:
    """Else one that has little beside others that have a lot would never be read."""
    limited = limit_to(1, {A: 0, B: 5}, {A: 1_000_000, B: 6})
    assert limited[B] == 6
    assert 0 < limited[A] < 10


@pytest.mark.parametrize("rows", [1, 3, 10, 99])
def test_limited_batches_reach_the_end(rows: int) -> None:
    start, end, steps = {A: 0, B: 50}, {A: 100, B: 57}, 0
    while start != end:
        following = limit_to(rows, start, end)
        assert all(start[tp] <= following[tp] <= end[tp] for tp in end)
        assert following != start
        start, steps = following, steps + 1
    assert steps >= 107 // (rows + 2)


def test_a_partition_is_a_task_and_an_empty_one_is_none() -> None:
    ranges = [OffsetRange(A, 0, 10), OffsetRange(B, 5, 5), OffsetRange(C, 3, 4)]
    assert split(ranges, None, None) == [ranges[0], ranges[2]]


@pytest.mark.parametrize(("least", "most"), [(7, None), (None, 3), (5, 4), (1, None), (None, 1_000)])
def test_pieces_cover_everything_once(least: int | None, most: int | None) -> None:
    ranges = [OffsetRange(A, 10, 30), OffsetRange(B, 0, 2)]
    pieces = split(ranges, least, most)
    assert sorted((p.tp, o) for p in pieces for o in range(p.start, p.end)) == sorted(
        (r.tp, o) for r in ranges for o in range(r.start, r.end)
    )
    assert all(p.size for p in pieces)
    if most is not None:
        assert max(p.size for p in pieces) <= most
    if least is not None:
        assert len(pieces) >= least


def test_there_are_no_more_pieces_than_records() -> None:
    assert len(split([OffsetRange(A, 0, 2)], 50, None)) == 2
    assert split([], 50, None) == []


def test_small_ranges_share_a_task_and_large_ones_have_their_own() -> None:
    few, some, many = OffsetRange(A, 0, 10), OffsetRange(B, 0, 95), OffsetRange(C, 0, 100)
    assert pack([few, some, many], 100) == [(few, some), (many,)]
    assert pack([many, few], 100) == [(many,), (few,)]
    assert pack([few, some, many], 1) == [(few,), (some,), (many,)]
    assert pack([few, some], 1_000) == [(few, some)]
    assert pack([], 100) == []
