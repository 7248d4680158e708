"""Segments are cleaned into one as long as the limits of a segment hold."""

from odradek.log.cleaning.grouping import Sized, Source, group


def sized(*sizes: int, span: int = 10, index: int = 8, time_index: int = 12) -> list[Sized]:
    return [
        Sized(Source(i * span, (i + 1) * span, f"/{i}", size), index, time_index)
        for i, size in enumerate(sizes)
    ]


def bases(groups: list[list[Source]]) -> list[list[int]]:
    return [[source.base_offset for source in members] for members in groups]


def test_neighbours_are_grouped_up_to_the_size_of_a_segment() -> None:
    assert bases(group(sized(40, 40, 20, 10, 95, 5), 100, 1000)) == [[0, 10, 20], [30], [40, 50]]


def test_a_segment_that_is_too_large_stands_alone() -> None:
    assert bases(group(sized(500, 10, 10), 100, 1000)) == [[0], [10, 20]]


def test_the_sizes_of_both_indexes_count() -> None:
    assert bases(group(sized(1, 1, 1, 1, index=50), 100, 100)) == [[0, 10], [20, 30]]
    assert bases(group(sized(1, 1, 1, 1, time_index=50), 100, 100)) == [[0, 10], [20, 30]]


def test_offsets_of_a_group_fit_into_32_bits() -> None:
    span = 1 << 30
    assert bases(group(sized(1, 1, 1, span=span), 100, 1000)) == [[0, span], [2 * span]]


def test_an_empty_segment_joins_whatever_its_offsets_are() -> None:
    span = 1 << 31
    assert bases(group(sized(1, 0, 1, span=span), 100, 1000)) == [[0, span], [2 * span]]


def test_nothing_is_no_group() -> None:
    assert group([], 100, 100) == []
