"""TimeIndex: an entry (timestamp, offset) means that no record up to the offset has a later timestamp.

Both fields ascend. The last slot is reserved for the segment's largest timestamp, which is written when the
segment is sealed or closed.
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar

from odradek.core.types import NO_TIMESTAMP
from odradek.log.segments.index_file import PENDING_BYTES, CorruptIndexError, IndexFile

# timestamp        int64   0   the largest so far
# relative offset  uint32  8   from the segment's base offset
_ENTRY = Struct(">qI")


class TimeIndex(IndexFile):
    __slots__ = ("_offsets", "_timestamps")

    ENTRY: ClassVar[Struct] = _ENTRY

    def _take_tail(self, data: bytes) -> None:
        entries = list(_ENTRY.iter_unpack(data))
        self._timestamps = array("q", [entry[0] for entry in entries])
        self._offsets = array("I", [entry[1] for entry in entries])

    def _check_loaded(self) -> None:
        if self.entries > 1 and (
            self._timestamps[-1] <= self._timestamps[0] or self._offsets[-1] < self._offsets[0]
        ):
            raise CorruptIndexError(
                f"{self.file.path}: entry {self.entries - 1} is before entry {self._first}"
            )

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries - 1

    @property
    def last_entry(self) -> tuple[int, int]:
        """(timestamp, offset) of the newest entry; (NO_TIMESTAMP, base offset) if there is none."""
        if not self.entries:
            return NO_TIMESTAMP, self.base_offset
        return self._timestamps[-1], self.base_offset + self._offsets[-1]

    def maybe_append(self, timestamp: int, offset: int) -> None:
        """Append an entry if its timestamp is later than the last entry's."""
        timestamps = self._timestamps
        if timestamp <= (timestamps[-1] if timestamps else NO_TIMESTAMP):
            return
        relative = offset - self.base_offset
        offsets = self._offsets
        assert not offsets or relative >= offsets[-1], f"offset {offset} is below the last entry's"
        timestamps.append(timestamp)
        offsets.append(relative)
        self._pending += _ENTRY.pack(timestamp, relative)
        self.entries += 1
        if len(self._pending) >= PENDING_BYTES:
            self._write_out(offsets, timestamps)

    def lookup(self, timestamp: int) -> tuple[int, int]:
        """The last entry at or before a timestamp, as (timestamp, offset)."""
        slot = bisect_right(self._timestamps, timestamp) - 1
        if slot >= 0:
            return self._timestamps[slot], self.base_offset + self._offsets[slot]
        slot = self._search_file(timestamp + 1, 0) - 1
        if slot < 0:
            return NO_TIMESTAMP, self.base_offset
        found, relative = _ENTRY.unpack(self._read(slot, slot + 1))
        return found, self.base_offset + relative

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at and above an offset."""
        relative = offset - self.base_offset
        slot = self._first + bisect_left(self._offsets, relative)
        if slot == self._first and slot > 0:
            slot = self._search_file(relative, 1)
        if slot < self.entries:
            self.cut(slot)
