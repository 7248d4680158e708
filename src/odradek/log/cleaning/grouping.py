"""Groups adjacent segments that are cleaned into one, as long as their content fits into a segment. Pure."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.records.header import MAX_INT32


class Source(NamedTuple):
    """A segment to clean: its offsets, file and size."""

    base_offset: int
    end_offset: int
    path: str
    size: int


class Sized(NamedTuple):
    """A source with the sizes of its index files."""

    source: Source
    offset_index_bytes: int
    time_index_bytes: int


def group(sources: Sequence[Sized], segment_bytes: int, index_bytes: int) -> list[list[Source]]:
    """All sources in order, in groups within the limits of a segment: data, indexes, offsets."""
    groups: list[list[Source]] = []
    size = offset_index_bytes = time_index_bytes = 0
    for source, of_offsets, of_times in sources:
        size += source.size
        offset_index_bytes += of_offsets
        time_index_bytes += of_times
        if (
            groups
            and size <= segment_bytes
            and offset_index_bytes <= index_bytes
            and time_index_bytes <= index_bytes
            and (not source.size or source.end_offset - 1 - groups[-1][0].base_offset <= MAX_INT32)
        ):
            groups[-1].append(source)
        else:
            groups.append([source])
            size, offset_index_bytes, time_index_bytes = source.size, of_offsets, of_times
    return groups
