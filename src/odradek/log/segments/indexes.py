"""SegmentIndexes: opens and closes the three indexes of a segment, also when the pool takes their
descriptors.

segment.py checks them against the batches.
"""

from odradek.log.files import Descriptor, FilePool, PooledFile
from odradek.log.names import INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX
from odradek.log.segments.files import SegmentFiles
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.segments.txn_index import TransactionIndex


class SegmentIndexes:
    """An index that is not open is None. While the segment may get more batches (`is_growing`), the offset
    index and the time index stay in memory, even if the pool closes their files."""

    __slots__ = (
        "_base_offset",
        "_files",
        "_max_bytes",
        "_pool",
        "_spared",
        "is_growing",
        "offsets",
        "times",
        "txns",
    )

    def __init__(self, pool: FilePool, files: SegmentFiles, base_offset: int, max_bytes: int) -> None:
        self._pool = pool
        self._files = files
        self._base_offset = base_offset
        self._max_bytes = max_bytes
        self.is_growing = False
        self.offsets: OffsetIndex | None = None
        self.times: TimeIndex | None = None
        self.txns: TransactionIndex | None = None
        self._spared: frozenset[str] = frozenset()

    def read_offsets(self, *, fresh: bool = False) -> OffsetIndex:
        """The offset index from its file, or an empty one. `take_offsets` installs it."""
        path = self._files.path(INDEX_SUFFIX)
        return OffsetIndex(self._pool, path, self._base_offset, self._max_bytes, fresh=fresh)

    def read_times(self, *, fresh: bool = False) -> TimeIndex:
        """The time index from its file, or an empty one."""
        path = self._files.path(TIME_INDEX_SUFFIX)
        return TimeIndex(self._pool, path, self._base_offset, self._max_bytes, fresh=fresh)

    def take_offsets(self, index: OffsetIndex) -> None:
        self.offsets = index
        index.file.on_spared = self._spare_offsets

    def take_times(self, index: TimeIndex) -> None:
        self.times = index
        index.file.on_spared = self._spare_times

    def open_txns(self) -> TransactionIndex:
        if self.txns is None:
            self.txns = TransactionIndex(self._pool, self._files.path(TXN_INDEX_SUFFIX), self._base_offset)
        return self.txns

    def reset(self) -> None:
        """Replace the offset and the time index with empty ones."""
        self.is_growing = True
        self.take_offsets(self.read_offsets(fresh=True))
        self.take_times(self.read_times(fresh=True))

    def _spare_offsets(self) -> None:
        """The pool closed the file: drop the index from memory, unless the segment may get more batches."""
        if not self.is_growing:
            self.offsets = None
            self._spared |= {INDEX_SUFFIX}

    def _spare_times(self) -> None:
        if not self.is_growing:
            self.times = None
            self._spared |= {TIME_INDEX_SUFFIX}

    def flush(self) -> list[Descriptor]:
        """Write the entries in memory of both indexes. Returns their descriptors to sync."""
        files: list[PooledFile] = []
        for index, suffix in ((self.offsets, INDEX_SUFFIX), (self.times, TIME_INDEX_SUFFIX)):
            if index is not None:
                index.flush()
                files.append(index.file)
            elif suffix in self._spared:
                files.append(PooledFile(self._pool, self._files.path(suffix)))
        return [file.open() for file in files]

    def follow_names(self) -> None:
        """The files were renamed: update the paths. Open files stay open."""
        for index, suffix in (
            (self.offsets, INDEX_SUFFIX),
            (self.times, TIME_INDEX_SUFFIX),
            (self.txns, TXN_INDEX_SUFFIX),
        ):
            if index is not None:
                index.file.path = self._files.path(suffix)

    def close(self) -> None:
        """Close the descriptors. They are opened again when needed."""
        for index in (self.offsets, self.times, self.txns):
            if index is not None:
                index.file.close()

    def let_go(self) -> None:
        """Close the descriptors finally. The callbacks of the files would keep the indexes alive."""
        self.close()
        for index in (self.offsets, self.times):
            if index is not None:
                index.file.on_spared = None
