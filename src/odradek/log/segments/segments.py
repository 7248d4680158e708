"""Segments: the segments of a log in offset order. A change makes a new list, so a list that was read stays
valid."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable

from odradek.log.segments.segment import Segment


class Segments:
    __slots__ = ("_bases", "_segments", "active")

    def __init__(self, segments: Iterable[Segment]) -> None:
        self._set(list(segments))

    def _set(self, segments: list[Segment]) -> None:
        assert segments, "a log always has a segment"
        self._segments = segments
        self._bases = [segment.base_offset for segment in segments]
        self.active = segments[-1]

    def __len__(self) -> int:
        return len(self._segments)

    def all(self) -> list[Segment]:
        """All segments. The list is never modified."""
        return self._segments

    @property
    def first(self) -> Segment:
        return self._segments[0]

    @property
    def base_offsets(self) -> list[int]:
        return self._bases

    @property
    def size_bytes(self) -> int:
        return sum(segment.size for segment in self._segments)

    def floor(self, offset: int) -> Segment | None:
        """The segment whose range contains an offset."""
        at = bisect_right(self._bases, offset) - 1
        return self._segments[at] if at >= 0 else None

    def after(self, segment: Segment) -> Segment | None:
        at = bisect_right(self._bases, segment.base_offset)
        return self._segments[at] if at < len(self._segments) else None

    def before(self, segment: Segment) -> Segment | None:
        at = bisect_left(self._bases, segment.base_offset) - 1
        return self._segments[at] if at >= 0 else None

    def between(self, start: int, end: int) -> list[Segment]:
        """The segments that may contain offsets from `start` up to, but not including, `end`."""
        return self._segments[max(0, bisect_right(self._bases, start) - 1) : bisect_left(self._bases, end)]

    def add(self, segment: Segment) -> None:
        assert segment.base_offset > self._bases[-1], "segments are added at the end"
        self._set([*self._segments, segment])

    def remove(self, gone: Iterable[Segment]) -> None:
        bases = {segment.base_offset for segment in gone}
        self._set([segment for segment in self._segments if segment.base_offset not in bases])

    def replace(self, gone: Iterable[Segment], segment: Segment) -> None:
        """Replace adjacent segments with one that has the base offset of the first."""
        bases = {old.base_offset for old in gone}
        assert segment.base_offset == min(bases), "a segment begins where those begin that it replaces"
        kept = [old for old in self._segments if old.base_offset not in bases]
        kept.insert(bisect_left([old.base_offset for old in kept], segment.base_offset), segment)
        self._set(kept)

    def replace_all(self, segment: Segment) -> None:
        self._set([segment])
