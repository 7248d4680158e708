"""Compaction: replaces segments of a log with cleaned ones, and knows up to which offset the log is clean.

`cleaning/` decides which records are kept.
"""

from typing import TYPE_CHECKING

from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.reading import BatchReader
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.segments.segment import Segment

if TYPE_CHECKING:
    from odradek.log.cleaning.job import Replacement


class Compaction:
    """Below `cleaned_offset` the log is compacted: keys are unique, and offsets may be missing."""

    __slots__ = ("_dir", "_local_log", "_reader", "_snapshots", "being_cleaned", "cleaned_offset")

    def __init__(
        self,
        directory: PartitionDir,
        local_log: LocalLog,
        snapshots: ProducerSnapshotFiles,
        reader: BatchReader,
        cleaned_offset: int | None,
    ) -> None:
        self._dir = directory
        self._local_log = local_log
        self._snapshots = snapshots
        self._reader = reader
        self.cleaned_offset = cleaned_offset
        self.being_cleaned = False

    def begin_swap(self, replacement: "Replacement") -> Segment | None:
        """Replace segments with a cleaned one. Returns None if some of them no longer exist.

        The cleaned segment keeps its .swap names until the directory is synced; a restart would put it in
        place. Only after the sync is it certain that the replaced segments do not come back. Raises
        StorageError.
        """
        self._dir.check_online()
        segments = self._local_log.segments
        wanted = frozenset(replacement.replaced)
        gone = [segment for segment in segments.all() if segment.base_offset in wanted]
        if len(gone) != len(wanted) or segments.active in gone:
            return None
        try:
            snapshots = [
                self._snapshots.set_aside(old.base_offset)
                for old in gone
                if old.base_offset != replacement.base_offset
            ]
            base_offset, size, has_txn_index, _ = replacement
            paths = [path for path in snapshots if path is not None]
            segment = self._local_log.swap_in(base_offset, size, has_txn_index, gone, paths)
        except OSError as e:
            raise self._dir.fail(e, "replacing segments of", halfway=True) from e
        self._reader.forget_positions()
        return segment

    def finish_swap(self, segment: Segment) -> None:
        """Rename the cleaned segment. The directory was synced after `begin_swap`. Raises StorageError."""
        self._dir.check_online()
        if segment in self._local_log.segments.all():
            try:
                segment.take_place()
            except OSError as e:
                raise self._dir.fail(e, "replacing segments of", halfway=True) from e
            self._dir.changes += 1

    def discarded(self) -> None:
        """Files of a cleaning were removed. The next flush makes that durable."""
        self._dir.changes += 1

    def discard_swaps(self) -> None:
        """The end of the log is truncated: remove what a cleaning in progress made of it. Raises OSError."""
        if self.being_cleaned:
            self._local_log.discard_swaps()

    def truncated(self, offset: int) -> None:
        if self.cleaned_offset is not None:
            self.cleaned_offset = min(self.cleaned_offset, offset)
