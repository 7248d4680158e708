"""OffsetIndex: finds the position of the batch that contains an offset, or of an earlier batch.

An entry has the last offset of a batch and the position of that batch.
"""

from array import array
from bisect import bisect_left, bisect_right
from struct import Struct
from typing import ClassVar

from odradek.log.segments.index_file import (
    PENDING_BYTES,
    CorruptIndexError,
    IndexFile,
    unsigned_numbers,
)

# relative offset  uint32  0   from the segment's base offset
# position         uint32  4   in the .log file
_ENTRY = Struct(">II")
_AHEAD_ENTRIES = 512


class OffsetIndex(IndexFile):
    __slots__ = ("_block", "_offsets", "_positions")

    ENTRY: ClassVar[Struct] = _ENTRY

    def _take_tail(self, data: bytes) -> None:
        numbers = unsigned_numbers(data)
        self._offsets = numbers[0::2]
        self._positions = numbers[1::2]
        self._block: tuple[array[int], array[int]] | None = None

    def _check_loaded(self) -> None:
        """Detect the zeros that a crash leaves at the end of a pre-allocated file."""
        offsets = self._offsets
        if offsets and (self._positions[-1] == 0 or (len(offsets) > 1 and offsets[-1] <= offsets[0])):
            raise CorruptIndexError(f"{self.file.path}: entry {self.entries - 1} is invalid")

    @property
    def is_full(self) -> bool:
        return self.entries >= self.max_entries

    @property
    def last_offset(self) -> int:
        return self.base_offset + self._offsets[-1] if self.entries else self.base_offset

    @property
    def last_entry(self) -> tuple[int, int]:
        """(offset, position) of the newest entry; the start of the segment if there is none."""
        if not self.entries:
            return self.base_offset, 0
        return self.base_offset + self._offsets[-1], self._positions[-1]

    def append(self, offset: int, position: int) -> None:
        relative = offset - self.base_offset
        offsets = self._offsets
        assert not offsets or relative > offsets[-1], f"offset {offset} is not above {self.last_offset}"
        offsets.append(relative)
        self._positions.append(position)
        self._pending += _ENTRY.pack(relative, position)
        self.entries += 1
        if len(self._pending) >= PENDING_BYTES:
            self._write_out(offsets, self._positions)

    def lookup(self, offset: int) -> tuple[int, int]:
        """The last entry at or before an offset, as (offset, position)."""
        relative = offset - self.base_offset
        slot = bisect_right(self._offsets, relative) - 1
        if slot >= 0:
            return self.base_offset + self._offsets[slot], self._positions[slot]
        block = self._block
        if block is None or not block[0][0] <= relative < block[0][-1]:
            slot = self._search_file(relative + 1, 0) - 1
            if slot < 0:
                return self.base_offset, 0
            # Readers usually continue from here, so load the next entries too.
            numbers = unsigned_numbers(self._read(slot, min(slot + _AHEAD_ENTRIES, self._first)))
            block = self._block = numbers[0::2], numbers[1::2]
        slot = bisect_right(block[0], relative) - 1
        return self.base_offset + block[0][slot], block[1][slot]

    def upper_bound(self, position: int) -> int | None:
        """The offset of the first entry whose batch starts at or after a position."""
        slot = self._first + bisect_left(self._positions, position)
        if slot == self._first and slot > 0:
            slot = self._search_file(position, 1)
        if slot >= self.entries:
            return None
        if slot >= self._first:
            return self.base_offset + self._offsets[slot - self._first]
        return self.base_offset + int(_ENTRY.unpack(self._read(slot, slot + 1))[0])

    def truncate_to(self, offset: int) -> None:
        """Remove the entries at and above an offset."""
        relative = offset - self.base_offset
        slot = self._first + bisect_left(self._offsets, relative)
        if slot == self._first and slot > 0:
            slot = self._search_file(relative, 0)
        if slot < self.entries:
            self.cut(slot)
