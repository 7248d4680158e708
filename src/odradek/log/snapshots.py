"""The producer snapshots of a log on disk: which there are, taking, loading and removing them."""

import logging
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence

from odradek.log.files import read_file, unlink_if_exists, write_file
from odradek.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from odradek.log.producer_entry import ProducerEntry
from odradek.log.producer_snapshot import CorruptSnapshotError, format_snapshot, parse_snapshot
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)


class SnapshotStore:
    """Snapshot files by the offset they were taken at, oldest first."""

    __slots__ = ("_disk", "_unsynced", "directory", "offsets")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self.directory = directory
        self.offsets = sorted(offsets)
        self._unsynced: dict[int, None] = {}

    def path(self, offset: int) -> str:
        return f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def take(self, entries: Iterable[ProducerEntry], offset: int) -> None:
        """Write a snapshot; durable it is once its path, told by `unsynced`, is synced."""
        write_file(self._disk, self.path(offset), format_snapshot(entries), sync=False)
        self._unsynced[offset] = None
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def unsynced(self) -> list[int]:
        """The snapshots that no sync was told of yet."""
        return [offset for offset in self._unsynced if offset in self.offsets]

    def synced(self, offsets: Iterable[int]) -> None:
        """A sync of these has come to its end. One that was taken anew meanwhile has its CRC to prove it."""
        for offset in offsets:
            self._unsynced.pop(offset, None)

    def load_newest(self, log_start_offset: int, end_offset: int) -> tuple[list[ProducerEntry], int]:
        """Entries of the newest good snapshot in the range and its offset; broken ones are removed.

        Without one there are no producers at the log start.
        """
        while self.offsets:
            at = bisect_right(self.offsets, end_offset) - 1
            if at < 0 or self.offsets[at] <= log_start_offset:
                break
            offset = self.offsets[at]
            try:
                return parse_snapshot(read_file(self._disk, self.path(offset))), offset
            except (CorruptSnapshotError, FileNotFoundError) as e:
                _log.warning("Removing producer snapshot %s: %s", self.path(offset), e)
                self.remove(offset)
        return [], log_start_offset

    def remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        unlink_if_exists(self._disk, self.path(offset))

    def remove_outside(self, log_start_offset: int, end_offset: int) -> None:
        """Remove what a log that begins and ends there cannot use."""
        for offset in [o for o in self.offsets if o > end_offset or o <= log_start_offset]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Sequence[int]) -> None:
        """Keep the snapshots of segments, and of the others the newest if it lies beyond the last segment."""
        known = set(base_offsets)
        strays = [offset for offset in self.offsets if offset not in known]
        if strays and base_offsets and strays[-1] >= base_offsets[-1]:
            strays.pop()
        for offset in strays:
            self.remove(offset)

    def set_aside(self, offset: int) -> str | None:
        """Rename a snapshot to its name of deletion; where it is now, None where there is none."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        self._disk.rename(path, path + DELETED_SUFFIX)
        return path + DELETED_SUFFIX
