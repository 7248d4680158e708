"""Checks the entries of a segment's indexes against its batches. Pure.

An offset entry has the last offset of the batch at a position. A time entry (T, O) means that the latest
record up to the batch that contains O has the timestamp T. Different versions of Apache Kafka use different
offsets of that batch, which makes no difference for lookups.
"""

from collections.abc import Iterator
from struct import Struct

from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.verifying.findings import Findings
from odradek.records.header import BatchMeta

TIMES_BELIEVED = "used as it is: lookups by time and retention depend on it. Remove the file to rebuild it"


class _Entries:
    """The entries of an index file, one at a time. Reports errors of the file itself."""

    def __init__(
        self, file: str, data: bytes, layout: Struct, fate: str, into: Findings, *, may_have_room: bool
    ) -> None:
        self.file = file
        self.fate = fate
        self.into = into
        self.position = -layout.size
        used = len(data.rstrip(b"\0"))
        used = min(len(data), used + -used % layout.size)
        self._layout = layout
        whole = used - used % layout.size
        if len(data) % layout.size:
            rest = len(data) % layout.size
            into.add(
                file, len(data) - rest, "torn entry", f"entries of {layout.size} bytes", f"{rest} bytes", fate
            )
        elif used < len(data) and not may_have_room:
            zeros = len(data) - used
            into.add(file, used, "zeros", "the end of the file", f"{zeros} bytes of zeros", fate)
        self._entries: Iterator[tuple[int, ...]] = layout.iter_unpack(data[:whole])

    def next(self) -> tuple[int, ...] | None:
        self.position += self._layout.size
        return next(self._entries, None)

    def report(self, problem: str, expected: object, found: object, fate: str | None = None) -> None:
        self.into.add(self.file, self.position, problem, expected, found, fate or self.fate)


class OffsetIndexCheck:
    def __init__(
        self, file: str, data: bytes, base_offset: int, fate: str, into: Findings, *, may_have_room: bool
    ) -> None:
        self._entries = _Entries(file, data, OffsetIndex.ENTRY, fate, into, may_have_room=may_have_room)
        self._base_offset = base_offset
        self._last = -1
        self._entry = self._next()

    def _next(self) -> tuple[int, int] | None:
        entry = self._entries.next()
        if entry is None:
            return None
        relative, position = entry
        if relative <= self._last:
            self._entries.report("offsets out of order", f"more than {self._last}", relative)
            return None
        self._last = relative
        return self._base_offset + relative, position

    def take(self, batch: BatchMeta, position: int) -> None:
        """The next batch, with its position in the file."""
        while self._entry is not None and self._entry[1] <= position:
            offset, indexed = self._entry
            if indexed != position:
                self._entries.report(
                    "points into a batch", f"a position where a batch begins, as {position}", indexed
                )
            elif offset != batch.last_offset:
                self._entries.report("names another batch", f"offset {batch.last_offset}", f"offset {offset}")
            self._entry = self._next()

    def end(self, size: int) -> None:
        if self._entry is not None:
            self._entries.report("points past the end", f"a position below {size}", self._entry[1])


class TimeIndexCheck:
    def __init__(
        self, file: str, data: bytes, base_offset: int, fate: str, into: Findings, *, may_have_room: bool
    ) -> None:
        self._entries = _Entries(file, data, TimeIndex.ENTRY, fate, into, may_have_room=may_have_room)
        self._base_offset = base_offset
        self._last = (-1, -1)
        self._latest = -1
        self._told = -1
        self._complete = not may_have_room
        self._entry = self._next()

    def _next(self) -> tuple[int, int] | None:
        entry = self._entries.next()
        if entry is None:
            return None
        timestamp, relative = entry
        if timestamp <= self._last[0] or relative < self._last[1]:
            self._entries.report("out of order", f"later than {self._last}", entry)
            return None
        self._last = (timestamp, relative)
        return timestamp, self._base_offset + relative

    def take(self, batch: BatchMeta) -> None:
        if batch.max_timestamp > self._latest:
            self._latest = batch.max_timestamp
        while self._entry is not None and self._entry[1] <= batch.last_offset:
            timestamp, offset = self._entry
            self._told = timestamp
            if timestamp != self._latest:
                self._entries.report(
                    "wrong time",
                    f"{self._latest}, the latest up to offset {offset}",
                    timestamp,
                    TIMES_BELIEVED,
                )
            self._entry = self._next()

    def end(self, end_offset: int) -> None:
        """The segment ends. A sealed index must end with the segment's largest timestamp."""
        if self._entry is not None:
            self._entries.report("points past the end", f"an offset below {end_offset}", self._entry[1])
        elif self._complete and self._told < self._latest:
            self._entries.report(
                "incomplete", f"{self._latest}, the latest of all", self._told, TIMES_BELIEVED
            )
