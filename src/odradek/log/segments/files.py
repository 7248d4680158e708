"""The files of one segment: their names, and what becomes of them when it is replaced or removed."""

from odradek.log.files import FilePool, PooledFile
from odradek.log.names import (
    DELETED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.segments.txn_index import TransactionIndex


class SegmentFiles:
    """The file of batches and the three indexes beside it, each opened when it is first needed.

    `mark` ends the names while the segment is not yet one of its log's.
    """

    __slots__ = (
        "_directory",
        "_disk",
        "_mark",
        "_offset_index",
        "_pool",
        "_spared",
        "_time_index",
        "_txn_index",
        "base_offset",
        "file",
    )

    def __init__(self, pool: FilePool, directory: str, base_offset: int, mark: str) -> None:
        self._pool = pool
        self._disk = pool.disk
        self._directory = directory
        self._mark = mark
        self.base_offset = base_offset
        self.file = PooledFile(pool, self._path(LOG_SUFFIX))
        self._offset_index: OffsetIndex | None = None
        self._time_index: TimeIndex | None = None
        self._txn_index: TransactionIndex | None = None
        self._spared: frozenset[str] = frozenset()

    def _path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix)}{self._mark}"

    def set_aside(self) -> None:
        """Rename the files to their names of deletion: gone for a restart, readable for who has them open."""
        for suffix in SEGMENT_SUFFIXES:
            path = self._path(suffix)
            try:
                self._disk.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue
        self.let_go()

    def deleted_paths(self) -> list[str]:
        """Where `set_aside` put the files."""
        return [self._path(suffix) + DELETED_SUFFIX for suffix in SEGMENT_SUFFIXES]

    def unlink(self) -> None:
        """Remove the files at once."""
        self.close()
        for suffix in SEGMENT_SUFFIXES:
            try:
                self._disk.unlink(self._path(suffix))
            except FileNotFoundError:
                continue

    def take_place(self) -> None:
        """Rename the files to those of a live segment: what they replace is gone, durably."""
        marked = [self._path(suffix) for suffix in SEGMENT_SUFFIXES]
        mark, self._mark = self._mark, ""
        for path in marked:
            try:
                self._disk.rename(path, path.removesuffix(mark))
            except FileNotFoundError:
                continue
        self._follow_names()

    def moved(self, directory: str) -> None:
        """The log's directory was renamed: open files stay, paths change."""
        self._directory = directory
        self._follow_names()

    def _follow_names(self) -> None:
        self.file.path = self._path(LOG_SUFFIX)
        for index, suffix in (
            (self._offset_index, INDEX_SUFFIX),
            (self._time_index, TIME_INDEX_SUFFIX),
            (self._txn_index, TXN_INDEX_SUFFIX),
        ):
            if index is not None:
                index.file.path = self._path(suffix)

    def let_go(self) -> None:
        """Give the descriptors up for good. Files that called back would keep the segment alive."""
        self.close()
        for index in (self._offset_index, self._time_index):
            if index is not None:
                index.file.on_spared = None

    def close(self) -> None:
        """Give the descriptors up; they are opened again when needed."""
        self.file.close()
        for index in (self._offset_index, self._time_index, self._txn_index):
            if index is not None:
                index.file.close()
