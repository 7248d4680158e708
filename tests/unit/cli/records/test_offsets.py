"""The offset syntax of -o, and the partitions of -p."""

import pytest

from odradek.cli.records.offsets import At, Bound, RequestedRange, parse_offsets, parse_partitions

NOW_MS = 10_000_000


def resolved(text: str, start: int = 10, end: int = 100) -> tuple[int, int | None]:
    times = {5_000_000: 40, 6_000_000: 60}
    offsets = parse_offsets(text, NOW_MS)
    first = offsets.first.resolve(start, end, times.get)
    return first, None if offsets.stop is None else offsets.stop.resolve(start, end, times.get)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("start", (10, None)),
        ("end", (100, None)),
        ("42", (42, None)),
        ("+5", (15, None)),
        ("-5", (95, None)),
        ("20:30", (20, 30)),
        (":30", (10, 30)),
        ("20:", (20, None)),
        ("start:end", (10, 100)),
        ("+5:-5", (15, 95)),
        ("-500", (10, None)),
        ("+500", (100, None)),
        ("@5000", (40, None)),
        ("@5000:6000", (40, 60)),
        ("@5000:", (40, None)),
        ("@:5000", (10, 40)),
        ("@now", (100, None)),
    ],
)
def test_every_form_resolves_against_a_log(text: str, expected: tuple[int, int | None]) -> None:
    assert resolved(text) == expected


def test_times_with_colons_are_cut_where_two_times_remain() -> None:
    offsets = parse_offsets("@1970-01-01T00:00:01Z:1970-01-01T00:00:02Z", NOW_MS)
    assert offsets == RequestedRange(Bound(At.TIME, 1000), Bound(At.TIME, 2000))
    assert parse_offsets("@1970-01-01T00:00:01", NOW_MS) == RequestedRange(Bound(At.TIME, 1000))
    assert parse_offsets("@-1h:-30m", 3_600_000) == RequestedRange(
        Bound(At.TIME, 0), Bound(At.TIME, 1_800_000)
    )


@pytest.mark.parametrize("text", ["", "first", "1.5", "1:x", "+", "--5", "1:2:3"])
def test_what_is_no_offset_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(ValueError, match=r"one of start, end, N, \+N, -N, A:B, @TIME"):
        parse_offsets(text, NOW_MS)


@pytest.mark.parametrize("text", ["5:1", "+5:+1", "-1:-5", "@6000:5000"])
def test_a_range_that_ends_before_it_begins_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="ends before it begins"):
        parse_offsets(text, NOW_MS)


def test_an_empty_range_is_one() -> None:
    assert resolved("20:20") == (20, 20)


def test_a_bad_time_is_named() -> None:
    with pytest.raises(ValueError, match="not a time: 'noon'"):
        parse_offsets("@noon", NOW_MS)


def test_partitions_are_numbers_and_ranges() -> None:
    assert parse_partitions("0,2,5-7,2") == [0, 2, 5, 6, 7]
    assert parse_partitions(None) is None
    with pytest.raises(ValueError, match="not a list of partitions"):
        parse_partitions("a")
