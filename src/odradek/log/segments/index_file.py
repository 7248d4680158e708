"""IndexFile: the file of a sparse index. It has fixed-size entries in order, the newest of them in memory.

The offset index and the time index define the entries. New entries are collected in memory and written a few
at a time. A crash before a flush may lose them, but recovery rebuilds every index above the recovery point.
The first write extends the file to its full size with a hole. In Apache Kafka it has that size from the
start. A trimmed file ends after its last entry.
"""

import sys
from array import array
from bisect import bisect_left
from struct import Struct
from typing import ClassVar, Final

from odradek.core.errors import is_exhausted
from odradek.log.files import FilePool, PooledFile, read_fully, write_fully

WARM_BYTES: Final = 8192
PENDING_BYTES: Final = 512
_BLOCK_ENTRIES: Final = 64


def unsigned_numbers(data: bytes) -> "array[int]":
    """Big-endian uint32 numbers as an array."""
    numbers = array("I", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


class CorruptIndexError(Exception):
    """An invalid index: it is rebuilt from its segment."""


class IndexFile:
    """The file of an index. `entries` counts the appended entries, written or not."""

    __slots__ = (
        "_disk",
        "_first",
        "_has_rest",
        "_is_extended",
        "_pending",
        "_written",
        "base_offset",
        "entries",
        "file",
        "max_entries",
    )

    ENTRY: ClassVar[Struct]

    def __init__(
        self, pool: FilePool, path: str, base_offset: int, max_bytes: int, *, fresh: bool = False
    ) -> None:
        self._disk = pool.disk
        self.base_offset = base_offset
        self.max_entries = max_bytes // self.ENTRY.size
        self.entries = 0
        self._first = 0
        self._written = 0
        self._pending = bytearray()
        self._is_extended = False
        # Old content of a fresh index is cut off only when needed: truncating a synced file takes longer than
        # everything else that a small log needs.
        self._has_rest = fresh
        self.file = pool.create(path, empty=False) if fresh else PooledFile(pool, path)
        self._take_tail(b"")
        if not fresh:
            self._load()

    def _load(self) -> None:
        size = self._disk.size(self.file.open().fd)
        entries, rest = divmod(size, self.ENTRY.size)
        if rest:
            raise CorruptIndexError(f"{self.file.path}: {size} bytes are not entries of {self.ENTRY.size}")
        self._set_entries(entries)
        self._check_loaded()

    def _set_entries(self, entries: int) -> None:
        """Use the first `entries` entries of the file, and load the newest of them into memory."""
        self.entries = self._written = entries
        self._first = max(0, entries - WARM_BYTES // self.ENTRY.size)
        self._take_tail(self._read(self._first, entries) if entries else b"")

    def _read(self, first: int, end: int) -> bytes:
        size = self.ENTRY.size
        data = read_fully(self._disk, self.file.open().fd, (end - first) * size, first * size)
        if len(data) != (end - first) * size:
            raise CorruptIndexError(f"{self.file.path}: ends before entry {end}")
        return data

    def _search_file(self, value: int, field: int) -> int:
        """The first entry on disk whose field is at least a value; otherwise the first entry in memory."""
        low, high = 0, self._first
        while high - low > _BLOCK_ENTRIES:
            middle = (low + high) // 2
            if self.ENTRY.unpack(self._read(middle, middle + 1))[field] < value:
                low = middle + 1
            else:
                high = middle
        if low < high:
            low += bisect_left(
                [entry[field] for entry in self.ENTRY.iter_unpack(self._read(low, high))], value
            )
        return low

    def _take_tail(self, data: bytes) -> None:
        raise NotImplementedError

    def _check_loaded(self) -> None:
        raise NotImplementedError

    def flush(self) -> None:
        """Write the entries in memory. A sync of the file makes them durable."""
        if self._pending:
            if not self._is_extended:
                if self._has_rest:
                    self._end_at(self._written)
                size = max(self.max_entries, self.entries) * self.ENTRY.size
                self._disk.ftruncate(self.file.open().fd, size)
                self._is_extended = self._has_rest = True
            self._write_pending()

    def _write_out(self, *columns: "array[int]") -> None:
        """Write what is pending, and let go of the older entries: each has its fields in these columns."""
        try:
            self.flush()
        except OSError as e:
            if is_exhausted(e):
                return  # they stay in memory; what they point to is in the log already
            raise
        warm = WARM_BYTES // self.ENTRY.size
        if len(columns[0]) >= 2 * warm:
            for column in columns:
                del column[:warm]
            self._first += warm

    def _write_pending(self) -> None:
        if self._pending:
            write_fully(self._disk, self.file.open().fd, self._pending, self._written * self.ENTRY.size)
            self._written = self.entries
            self._pending = bytearray()

    def trim(self) -> None:
        """End the file after its last entry: the segment has ended, or the node stops."""
        self._write_pending()
        if self._has_rest:
            self._end_at(self.entries)

    def _end_at(self, entries: int) -> None:
        self._disk.ftruncate(self.file.open().fd, entries * self.ENTRY.size)
        self._is_extended = self._has_rest = False

    def cut(self, entries: int) -> None:
        """Remove all but the first `entries` entries."""
        self._write_pending()
        self._end_at(entries)
        self._set_entries(entries)
