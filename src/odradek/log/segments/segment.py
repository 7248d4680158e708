"""Segment: the file of record batches with its indexes.

The log decides what is appended and when the segment ends.
"""

import logging
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Final

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMESTAMP, Buffer
from odradek.log.files import (
    Descriptor,
    FilePool,
    FileSlice,
    PooledFile,
    read_fully,
    write_rest,
)
from odradek.log.names import LOG_SUFFIX
from odradek.log.segments.batch_search import NoBatchError, find_batch, last_offset_at, scan_batches
from odradek.log.segments.blocks import RESERVE_FROM_BYTES, Blocks
from odradek.log.segments.files import SegmentFiles
from odradek.log.segments.index_file import CorruptIndexError
from odradek.log.segments.indexes import SegmentIndexes
from odradek.log.segments.offset_index import OffsetIndex
from odradek.log.segments.time_index import TimeIndex
from odradek.log.segments.txn_index import AbortedTxn, TransactionIndex
from odradek.records.header import MAX_INT32, BatchMeta
from odradek.runtime.api import Clock

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)

_MAX_BUFFERS: Final = 1024
_ASK: Final = (-1, -1, -1)


class Segment:
    """A range of offsets that starts at `base_offset`. Only the last segment of a log is appended to."""

    __slots__ = (
        "_blocks",
        "_bytes_since_index",
        "_disk",
        "_files",
        "_first_timestamp",
        "_index_interval_bytes",
        "_indexes",
        "_is_rebuilt",
        "_max_timestamp",
        "_offset_of_max_timestamp",
        "base_offset",
        "created_ms",
        "file",
        "has_txn_index",
        "roll_jitter_ms",
        "size",
    )

    def __init__(
        self,
        pool: FilePool,
        directory: str,
        base_offset: int,
        config: "TopicConfig",
        now_ms: int,
        *,
        size: int = 0,
        roll_jitter_ms: int = 0,
        has_txn_index: bool = False,
        mark: str = "",
    ) -> None:
        self._disk = pool.disk
        self._files = SegmentFiles(pool.disk, directory, base_offset, mark)
        self._indexes = SegmentIndexes(pool, self._files, base_offset, config.segment_index_bytes)
        self.base_offset = base_offset
        self.file = PooledFile(pool, self._files.path(LOG_SUFFIX))
        self.size = size
        self.created_ms = now_ms
        self.roll_jitter_ms = roll_jitter_ms
        self.has_txn_index = has_txn_index
        self._index_interval_bytes = config.index_interval_bytes
        self._bytes_since_index = 0
        self._is_rebuilt = False
        self._blocks = Blocks(pool.disk)
        self._max_timestamp: int | None = None
        self._offset_of_max_timestamp = base_offset
        self._first_timestamp: int | None = None

    @classmethod
    def create(
        cls,
        pool: FilePool,
        directory: str,
        base_offset: int,
        config: "TopicConfig",
        now_ms: int,
        *,
        roll_jitter_ms: int = 0,
    ) -> "Segment":
        """An empty segment with new files. Existing files with its name are replaced."""
        segment = cls(pool, directory, base_offset, config, now_ms, roll_jitter_ms=roll_jitter_ms)
        try:
            segment.file = pool.create(segment.file.path)
            if config.preallocate:
                segment._blocks.preallocate(segment.file.open().fd, config.segment_bytes)
            segment.reset_indexes()
        except OSError:
            segment.unlink()
            raise
        return segment

    # --- indexes --------------------------------------------------------------------------------------

    @property
    def offset_index(self) -> OffsetIndex:
        index = self._indexes.offsets
        if index is None:
            self._open_indexes()
            index = self._indexes.offsets
            assert index is not None
        return index

    @property
    def time_index(self) -> TimeIndex:
        index = self._indexes.times
        if index is None:
            self._open_indexes(time=True)
            index = self._indexes.times
            assert index is not None
        return index

    @property
    def txn_index(self) -> TransactionIndex:
        return self._indexes.open_txns()

    def prepare_to_abort(self) -> None:
        """Load what `add_aborted` needs before the marker is written to the log."""
        self.txn_index.load()

    def add_aborted(self, aborted: AbortedTxn) -> None:
        self.txn_index.append(aborted)
        self.has_txn_index = True

    def collect_aborted(self, fetch_offset: int, upper_bound: int, into: list[tuple[int, int]]) -> bool:
        """Add the aborted transactions that overlap a range. True if later segments cannot have more."""
        return self.has_txn_index and self.txn_index.collect(fetch_offset, upper_bound, into)

    def _open_indexes(self, *, time: bool = False) -> None:
        """Open the indexes. If one is missing or invalid, rebuild both from the batches."""
        if self.size == 0:
            # After a crash, entries that a truncation removed may be back.
            self.reset_indexes()
            return
        try:
            if self._indexes.offsets is None:
                self._take_offsets(self._indexes.read_offsets())
            if time:
                self._take_times(self._indexes.read_times())
        except (CorruptIndexError, FileNotFoundError) as e:
            _log.warning("Rebuilding the indexes of %s: %s", self.file.path, e)
            self.rebuild_indexes()

    def _take_offsets(self, index: OffsetIndex) -> None:
        """Use an offset index if its last entry is right: appends and the log end depend on it."""
        if not self._is_offset_of_batch(index):
            at = (index.entries - 1) * index.ENTRY.size
            raise CorruptIndexError(
                f"{index.file.path}: the entry at byte offset {at} points to no such batch"
            )
        self._indexes.take_offsets(index)

    def _is_offset_of_batch(self, index: OffsetIndex) -> bool:
        """Whether the last entry, if any, is right."""
        if not index.entries:
            return True
        offset, position = index.last_entry
        return position < self.size and last_offset_at(self._disk, self.file.open().fd, position) == offset

    def _take_times(self, index: TimeIndex) -> None:
        """Use a time index if its last entry is right: retention depends on it. The check may rebuild both
        indexes."""
        if not index.entries:
            if self._has_times():
                raise CorruptIndexError(f"{index.file.path}: empty, but the records have timestamps")
        elif not self.is_time_of_batch(*index.last_entry):
            at = (index.entries - 1) * index.ENTRY.size
            raise CorruptIndexError(
                f"{index.file.path}: no batch has the timestamp of the entry at byte offset {at}"
            )
        if self._indexes.times is None:
            self._indexes.take_times(index)

    def _has_times(self) -> bool:
        try:
            first = next(self.scan(0), None)
        except KafkaError:
            return False
        return first is not None and first.max_timestamp >= 0

    def is_time_of_batch(self, timestamp: int, offset: int) -> bool:
        """Whether the batch that contains an offset has this max timestamp, as a time index entry claims.

        If the batches themselves are damaged, the answer is True.
        """
        try:
            found = self.translate(offset)
            batch = None if found is None else next(self.scan(found[1], found[1] + found[2]), None)
        except KafkaError:
            return True
        return batch is not None and batch.max_timestamp == timestamp

    def reset_indexes(self) -> None:
        """Replace the offset and the time index with empty ones."""
        self._indexes.reset()
        self._bytes_since_index = 0
        self._max_timestamp = NO_TIMESTAMP
        self._offset_of_max_timestamp = self.base_offset

    def rebuild_indexes(self) -> None:
        """Rebuild both indexes from the headers of the batches. They end at the first damaged batch."""
        is_growing = self._indexes.is_growing
        self.reset_indexes()
        self._is_rebuilt = True
        size, self.size = self.size, 0
        try:
            for batch in self.scan(0, size):
                self.index_batch(batch.last_offset, batch.max_timestamp, batch.size)
        except KafkaError as e:
            _log.warning("Not indexing anything after the damage: %s", e)
        finally:
            self.size = size
        self.trim_indexes()
        self._indexes.is_growing = is_growing

    def index_batch(self, last_offset: int, max_timestamp: int, size: int) -> None:
        """Account for a batch that was written to the end of the file."""
        largest = self._max_timestamp
        assert largest is not None, "an append is prepared"
        if max_timestamp > largest:
            self._max_timestamp = largest = max_timestamp
            self._offset_of_max_timestamp = last_offset
        position = self.size
        if self._bytes_since_index > self._index_interval_bytes:
            offset_index, time_index = self._indexes.offsets, self._indexes.times
            assert offset_index is not None and time_index is not None
            offset_index.append(last_offset, position)
            time_index.maybe_append(largest, self._offset_of_max_timestamp)
            self._bytes_since_index = size
        else:
            if position == 0:
                self._first_timestamp = max_timestamp
            self._bytes_since_index += size
        self.size = position + size

    def trim_indexes(self) -> None:
        """Add the largest timestamp to the time index, and end the index files after their last entries."""
        timestamp, offset = self.max_timestamp
        self.time_index.maybe_append(timestamp, offset)
        self.offset_index.trim()
        self.time_index.trim()
        self._indexes.is_growing = False

    # --- appending ------------------------------------------------------------------------------------

    @property
    def max_timestamp(self) -> tuple[int, int]:
        """(largest timestamp, last offset of the first batch with it)."""
        if self._max_timestamp is None:
            self._max_timestamp, self._offset_of_max_timestamp = self.time_index.last_entry
        return self._max_timestamp, self._offset_of_max_timestamp

    def free_bounds(self, segment_bytes: int, roll_after_ms: int, batches: int) -> tuple[int, int, int]:
        """(file size, timestamp, offset) up to which `should_roll` is certainly False; -1: always call it."""
        indexes, first = self._indexes, self._first_timestamp
        offset_index, time_index = indexes.offsets, indexes.times
        if offset_index is None or time_index is None or self._max_timestamp is None:
            return _ASK
        if first is None or first < 0:
            return _ASK
        room = min(
            offset_index.max_entries - offset_index.entries, time_index.max_entries - time_index.entries
        )
        if room <= batches + 1:
            return _ASK
        return segment_bytes, first + roll_after_ms - self.roll_jitter_ms, self.base_offset + MAX_INT32

    def should_roll(
        self,
        segment_bytes: int,
        roll_after_ms: int,
        append_bytes: int,
        max_timestamp: int,
        last_offset: int,
        clock: Clock,
    ) -> bool:
        """Whether an append with these properties needs a new segment. Also opens the indexes for the
        append."""
        indexes = self._indexes
        indexes.is_growing = True
        offset_index, time_index = indexes.offsets, indexes.times
        if offset_index is None or time_index is None or self._max_timestamp is None:
            offset_index, time_index, _ = self.offset_index, self.time_index, self.max_timestamp
        size = self.size
        if size > segment_bytes - append_bytes or last_offset - self.base_offset > MAX_INT32:
            return True
        if offset_index.is_full or time_index.is_full:
            return True
        return size > 0 and self.waited_ms(max_timestamp, clock) > roll_after_ms - self.roll_jitter_ms

    def waited_ms(self, max_timestamp: int, clock: Clock) -> int:
        """How long the segment has been open, by the timestamps of its records if they have any."""
        first = self.first_timestamp
        return max_timestamp - first if first is not None and first >= 0 else clock.now_ms() - self.created_ms

    @property
    def first_timestamp(self) -> int | None:
        """The timestamp of the first batch; None without batches, NO_TIMESTAMP if it is damaged."""
        if self._first_timestamp is None and self.size:
            self._first_timestamp = self._read_first_timestamp()
        return self._first_timestamp

    def _read_first_timestamp(self) -> int:
        """Warns once. Every append uses this, and must not fail because of a damaged batch."""
        try:
            return next(batch.max_timestamp for batch in self.scan(0))
        except StopIteration:
            _log.warning("%s: no complete record batch at byte offset 0", self.file.path)
        except KafkaError as e:
            _log.warning("%s", e)
        return NO_TIMESTAMP

    def write(self, buffers: Sequence[Buffer], size: int) -> None:
        """Write batches after the last one. A failure leaves the file unchanged. The caller calls
        `index_batch`."""
        self._indexes.is_growing = True
        fd = self.file.open().fd
        position = self.size
        if position + size > self._blocks.reserved_bytes and position >= RESERVE_FROM_BYTES:
            self._blocks.reserve(fd, position + size)
        try:
            if len(buffers) == 1:
                written = self._disk.pwrite(fd, buffers[0], position)
            elif len(buffers) <= _MAX_BUFFERS:
                written = self._disk.pwritev(fd, buffers, position)
            else:
                written = 0
            if written != size:
                write_rest(self._disk, fd, buffers, position, written)
        except OSError as e:
            self._blocks.take_back(fd, position)
            raise OSError(e.errno, f"{e.strerror}, at byte offset {position}", self.file.path) from e

    def seal(self) -> None:
        """The segment has ended, or the node stops: trim the indexes and release reserved blocks."""
        self.trim_indexes()
        if self._blocks.reserved_bytes:
            self._blocks.cut(self.file.open().fd, self.size)

    def seal_if_open(self) -> bool:
        """Seal the segment, unless nothing was appended since the last time. Returns whether it was
        sealed."""
        if self.size == 0 and self._blocks.reserved_bytes:
            self.cut(0)
        if self.size == 0 or self._indexes.offsets is None or self._indexes.times is None:
            return False
        self.seal()
        return True

    def flush_indexes(self) -> list[Descriptor]:
        """Write the index entries in memory. Returns the descriptors of the indexes to sync."""
        return self._indexes.flush()

    def to_sync(self) -> list[Descriptor]:
        """The files that a recovery from the next segment could not rebuild: batches and transaction
        index."""
        txns = self._indexes.txns
        if txns is not None and self.has_txn_index:
            txns.flush()
            return [self.file.open(), txns.file.open()]
        return [self.file.open()]

    # --- reading --------------------------------------------------------------------------------------

    def slice(self, position: int, size: int) -> FileSlice:
        return FileSlice(self._disk, self.file.open(), position, size, self.file.cuts)

    def translate(self, offset: int) -> tuple[int, int, int] | None:
        """(base offset, position, size) of the batch that contains an offset, or of the first one after
        it."""
        index = self.offset_index
        index.file.used = True  # a lookup in memory also keeps the descriptor open
        indexed = index.lookup(offset)
        try:
            return find_batch(self._disk, self.file.open().fd, self.size, self.base_offset, offset, indexed)
        except NoBatchError as e:
            if indexed[1] == 0 or self._is_rebuilt:
                raise self._corrupt(e.position) from None
            _log.warning("Rebuilding the indexes of %s: %s, but the index has one there", self.file.path, e)
        self.rebuild_indexes()
        indexed = self.offset_index.lookup(offset)
        try:
            return find_batch(self._disk, self.file.open().fd, self.size, self.base_offset, offset, indexed)
        except NoBatchError as e:
            raise self._corrupt(e.position) from None

    def _corrupt(self, position: int) -> KafkaError:
        return KafkaError(
            ErrorCode.CORRUPT_MESSAGE,
            f"{self.file.path}: no record batch at byte offset {position}",
        )

    def scan(self, position: int, end: int | None = None) -> Iterator[BatchMeta]:
        """The batches from a position, by their headers, with their positions in the file."""
        descriptor = self.file.open()
        try:
            yield from scan_batches(self._disk, descriptor.fd, position, self.size if end is None else end)
        except KafkaError as e:
            raise KafkaError(e.code, f"{self.file.path}: {e.message}") from e

    def read_batch(self, batch: BatchMeta) -> bytes:
        """The bytes of a batch from `scan`."""
        return read_fully(self._disk, self.file.open().fd, batch.size, batch.position)

    def next_offset(self) -> tuple[int, int]:
        """(offset after the last batch, position after it). Scans from the last index entry."""
        _, position = self.offset_index.last_entry
        end_offset, end = self.base_offset, position
        for batch in self.scan(position):
            end_offset, end = batch.last_offset + 1, batch.position + batch.size
        return end_offset, end

    def is_indexed_to_the_end(self) -> bool:
        """Whether the time index has the largest timestamp, as it must after the segment has ended."""
        timestamp, _ = self.time_index.last_entry
        _, position = self.offset_index.last_entry
        return all(batch.max_timestamp <= timestamp for batch in self.scan(position))

    def largest_timestamp_ms(self) -> int:
        """The largest timestamp of a record; without timestamps, the modification time of the file."""
        timestamp, _ = self.max_timestamp
        return timestamp if timestamp >= 0 else self._disk.stat(self.file.path).mtime_ms

    # --- shortening ----------------------------------------------------------------------------------

    def end_if_truncated_to(self, offset: int) -> int:
        """The end offset after `truncate_to`: batches are removed as a whole."""
        found = self.translate(offset)
        return offset if found is None else min(offset, found[0])

    def truncate_to(self, offset: int, now_ms: int) -> list[Descriptor]:
        """Remove the batch that contains an offset and all after it. Returns what to sync, so that it is
        durable."""
        found = self.translate(offset)
        to_sync: list[Descriptor] = []
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        if self.has_txn_index:
            self.txn_index.truncate_to(offset)
        if found is not None:
            self.file.cuts.append(found[1])  # replies may wait to be sent: see `FileSlice`
            self.cut(found[1])
            self._check_last_entries()
            to_sync = [*self.to_sync(), *self.flush_indexes()]
        if self.size == 0:
            self.created_ms = now_ms
        self._bytes_since_index = 0
        self._find_max_timestamp()
        return to_sync

    def _check_last_entries(self) -> None:
        """Check the new last entries of the indexes: appends and retention depend on them."""
        times = self.time_index
        is_right = self._is_offset_of_batch(self.offset_index)
        if not is_right or (times.entries and not self.is_time_of_batch(*times.last_entry)):
            _log.warning("Rebuilding the indexes of %s: their last entries are wrong", self.file.path)
            self.rebuild_indexes()

    def _find_max_timestamp(self) -> None:
        """Scan from the last entry of the time index, which does not include later batches."""
        timestamp, offset = self.time_index.last_entry
        _, position = self.offset_index.lookup(offset)
        for batch in self.scan(position):
            if batch.max_timestamp > timestamp:
                timestamp, offset = batch.max_timestamp, batch.last_offset
        self._max_timestamp, self._offset_of_max_timestamp = timestamp, offset

    def cut(self, size: int) -> None:
        """End the file after a batch, and release the blocks beyond it."""
        self._blocks.cut(self.file.open().fd, size)
        self.size = size

    # --- files ----------------------------------------------------------------------------------------

    def set_aside(self) -> None:
        """Rename the files to .deleted: a restart removes them, and open descriptors can still read them."""
        self._files.set_aside()
        self.let_go()

    def deleted_paths(self) -> list[str]:
        """The paths of the files after `set_aside`."""
        return self._files.deleted_paths()

    def unlink(self) -> None:
        """Remove the files at once."""
        self.close()
        self._files.unlink()

    def take_place(self) -> None:
        """Rename the .swap files to their final names. The replaced segments are removed durably."""
        self._files.take_place()
        self._follow_names()

    def moved(self, directory: str) -> None:
        """The log's directory was renamed: update the paths. Open files stay open."""
        self._files.moved(directory)
        self._follow_names()

    def _follow_names(self) -> None:
        self.file.path = self._files.path(LOG_SUFFIX)
        self._indexes.follow_names()

    def let_go(self) -> None:
        """Close the descriptors finally."""
        self.file.close()
        self._indexes.let_go()

    def close(self) -> None:
        """Close the descriptors. They are opened again when needed."""
        self.file.close()
        self._indexes.close()
