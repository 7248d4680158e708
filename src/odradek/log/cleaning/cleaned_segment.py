"""CleanedSegment: the result of cleaning a group of segments. It has .cleaned names until it is complete and
durable, then .swap names.

It is written outside the event loop, with its own descriptors. The log takes over its .swap files.
"""

from os import O_CREAT, O_RDWR, O_TRUNC
from typing import Final

from odradek.core.types import NO_TIMESTAMP, Buffer
from odradek.log.files import Descriptor, FilePool, unlink_if_exists, write_fully
from odradek.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    file_name,
)
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.segments.txn_index import AbortedTxn, TransactionIndex
from odradek.records import kernel
from odradek.runtime.api import Disk

_DESCRIPTORS: Final = 4


class CleanedSegment:
    """Batches of magic 2 with their indexes."""

    __slots__ = (
        "_aborted",
        "_directory",
        "_disk",
        "_file",
        "_interval_bytes",
        "_largest",
        "_largest_offset",
        "_offset_index",
        "_since_entry",
        "_time_index",
        "base_offset",
        "has_txn_index",
        "size",
    )

    def __init__(
        self, disk: Disk, directory: str, base_offset: int, index_interval_bytes: int, index_bytes: int
    ) -> None:
        self._disk = disk
        self._directory = directory
        self.base_offset = base_offset
        self._interval_bytes = index_interval_bytes
        self.discard()
        pool = FilePool(disk, _DESCRIPTORS)
        self._file = Descriptor(disk, disk.open(self._path(LOG_SUFFIX), O_RDWR | O_CREAT | O_TRUNC))
        self._offset_index = OffsetIndex(pool, self._path(INDEX_SUFFIX), base_offset, index_bytes, fresh=True)
        self._time_index = TimeIndex(
            pool, self._path(TIME_INDEX_SUFFIX), base_offset, index_bytes, fresh=True
        )
        self._aborted = TransactionIndex(pool, self._path(TXN_INDEX_SUFFIX), base_offset)
        self.has_txn_index = False
        self.size = 0
        self._since_entry = 0
        self._largest = NO_TIMESTAMP
        self._largest_offset = base_offset

    def _path(self, suffix: str, mark: str = CLEANED_SUFFIX) -> str:
        return f"{self._directory}/{file_name(self.base_offset, suffix)}{mark}"

    def write(self, batches: Buffer) -> None:
        write_fully(self._disk, self._file.fd, batches, self.size)
        entries, self.size, self._since_entry, self._largest, self._largest_offset = kernel.index_batches(
            batches,
            self.size,
            self._interval_bytes,
            self._since_entry,
            self._largest,
            self._largest_offset,
        )
        for last_offset, position, timestamp, offset in entries:
            self._offset_index.append(last_offset, position)
            self._time_index.maybe_append(timestamp, offset)

    def add_aborted(self, aborted: AbortedTxn) -> None:
        self._aborted.append(aborted)
        self.has_txn_index = True

    def make_ready(self, mtime_ms: int) -> None:
        """Make it durable, then rename it to .swap: after that a restart completes the swap.

        It gets the modification time of the replaced segments, which retention uses for records without
        timestamps.
        """
        disk = self._disk
        self._time_index.maybe_append(self._largest, self._largest_offset)
        files = [self._file]
        for index in (self._offset_index, self._time_index):
            index.trim()
            files.append(index.file.open())
        if self.has_txn_index:
            self._aborted.flush()
            files.append(self._aborted.file.open())
        for file in files:
            disk.fsync(file.fd)
        disk.set_mtime(self._path(LOG_SUFFIX), mtime_ms)
        disk.fsync_dir(self._directory)
        for suffix in SEGMENT_SUFFIXES:
            if suffix != TXN_INDEX_SUFFIX or self.has_txn_index:
                disk.rename(self._path(suffix), self._path(suffix, SWAP_SUFFIX))
        disk.fsync_dir(self._directory)

    def discard(self) -> None:
        """Remove all files with its names, durably if there were .swap files: these must not come back."""
        was_ready = False
        for suffix in SEGMENT_SUFFIXES:
            unlink_if_exists(self._disk, self._path(suffix))
            was_ready |= unlink_if_exists(self._disk, self._path(suffix, SWAP_SUFFIX))
        if was_ready:
            self._disk.fsync_dir(self._directory)
