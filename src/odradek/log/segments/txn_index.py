"""TransactionIndex: the transactions with an abort marker in a segment, in marker order.

The file exists only if there is such a transaction.
"""

from struct import Struct
from typing import NamedTuple

from odradek.core.errors import is_exhausted
from odradek.log.files import FilePool, PooledFile, read_file, write_fully
from odradek.log.segments.index_file import CorruptIndexError

# version             int16   0   0
# producer id         int64   2
# first offset        int64  10   of the transaction
# last offset         int64  18   the marker's
# last stable offset  int64  26   once the marker was there
_ENTRY = Struct(">hqqqq")
ENTRY_BYTES = _ENTRY.size


class AbortedTxn(NamedTuple):
    producer_id: int
    first_offset: int
    last_offset: int
    last_stable_offset: int


def parse_aborted(path: str, data: bytes, base_offset: int) -> list[AbortedTxn]:
    """The entries of a transaction index. Raises CorruptIndexError for entries that are invalid for the
    segment."""
    if len(data) % ENTRY_BYTES:
        raise CorruptIndexError(f"{path}: {len(data)} bytes are not entries of {ENTRY_BYTES}")
    entries: list[AbortedTxn] = []
    for version, *fields in _ENTRY.iter_unpack(data):
        entry = AbortedTxn(*fields)
        if version != 0 or entry.last_offset < base_offset or entry.first_offset > entry.last_offset:
            raise CorruptIndexError(
                f"{path}: invalid entry {len(entries)} at byte offset {len(entries) * ENTRY_BYTES}: {entry}, "
                f"version {version}"
            )
        entries.append(entry)
    return entries


class TransactionIndex:
    __slots__ = ("_entries", "_pool", "_written", "base_offset", "file")

    def __init__(self, pool: FilePool, path: str, base_offset: int) -> None:
        self._pool = pool
        self.base_offset = base_offset
        self.file = PooledFile(pool, path)
        self._entries: list[AbortedTxn] | None = None
        self._written = 0

    @property
    def entries(self) -> list[AbortedTxn]:
        return self.load() if self._entries is None else self._entries

    def load(self) -> list[AbortedTxn]:
        """Load the entries into memory."""
        if self._entries is None:
            self._entries = self._read()
            self._written = len(self._entries)
        return self._entries

    def _read(self) -> list[AbortedTxn]:
        try:
            data = read_file(self._pool.disk, self.file.path)
        except FileNotFoundError:
            return []
        return parse_aborted(self.file.path, data, self.base_offset)

    def append(self, entry: AbortedTxn) -> None:
        """Add an entry and write it. Without a free descriptor it stays in memory until the next entry or
        `flush`; its marker is in the log already."""
        entries = self.entries
        assert not entries or entry.last_offset > entries[-1].last_offset, "markers come in offset order"
        entries.append(entry)
        try:
            self.flush()
        except OSError as e:
            if not is_exhausted(e):
                raise

    def flush(self) -> None:
        """Write the entries in memory. A sync of the file makes them durable."""
        new = self.entries[self._written :]
        if new:
            if not self._written:
                self.file = self._pool.create(self.file.path)
            data = b"".join(_ENTRY.pack(0, *entry) for entry in new)
            write_fully(self._pool.disk, self.file.open().fd, data, self._written * _ENTRY.size)
            self._written += len(new)

    def collect(self, fetch_offset: int, upper_bound: int, into: list[tuple[int, int]]) -> bool:
        """Add the aborted transactions that overlap the range. True if later segments cannot have more."""
        for entry in self.entries:
            if entry.last_offset >= fetch_offset and entry.first_offset < upper_bound:
                into.append((entry.producer_id, entry.first_offset))
            if entry.last_stable_offset >= upper_bound:
                return True
        return False

    def truncate_to(self, offset: int) -> None:
        """Remove the transactions whose marker is at or above an offset."""
        entries = self.entries
        keep = [entry for entry in entries if entry.last_offset < offset]
        if len(keep) < len(entries):
            self.flush()
            self._pool.disk.ftruncate(self.file.open().fd, len(keep) * _ENTRY.size)
            self._entries, self._written = keep, len(keep)

    def reset(self) -> None:
        self.file.unlink()
        self._entries, self._written = [], 0
