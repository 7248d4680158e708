"""A sparse index on disk: fixed-size entries in order, the newest of them in memory.

What entries mean is told by the offset and the time index. Entries gather in memory and are written a few at
a time: until a flush a crash may lose them, which costs nothing: above the recovery point every index is
rebuilt. With the first that is written the file is extended to its full size with a hole, as Apache Kafka has
it from the start; trimmed, it ends with the last entry.
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
    """Big-endian uint32 numbers as an array, to be searched."""
    numbers = array("I", data)
    if sys.byteorder == "little":
        numbers.byteswap()
    return numbers


class CorruptIndexError(Exception):
    """An index that cannot be right: it is rebuilt from its segment."""


class IndexFile:
    """The file under an index; `entries` counts what was appended, written or not."""

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
        # What a fresh one finds is cut off when it must be: emptying a file that was synced takes a file
        # system longer than all else that a small log needs.
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
        """Take the first `entries` of the file as all there are, and hold the newest of them in memory."""
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
        """The first entry below those in memory whose field reaches a value; else the first in memory."""
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
        """Write what has gathered in memory; durable it is after a sync of the file."""
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
        """End the file with its last entry: no more come, or the node stops."""
        self._write_pending()
        if self._has_rest:
            self._end_at(self.entries)

    def _end_at(self, entries: int) -> None:
        self._disk.ftruncate(self.file.open().fd, entries * self.ENTRY.size)
        self._is_extended = self._has_rest = False

    def cut(self, entries: int) -> None:
        """Forget all but the first `entries`."""
        self._write_pending()
        self._end_at(entries)
        self._set_entries(entries)
