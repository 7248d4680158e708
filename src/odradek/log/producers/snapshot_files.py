"""The producer snapshots of a log on disk: which there are, taking, loading and removing them."""

import logging
from bisect import bisect_right, insort
from collections.abc import Iterable, Sequence

from odradek.log.files import overwrite_file, read_file, unlink_if_exists
from odradek.log.names import DELETED_SUFFIX, SNAPSHOT_SUFFIX, file_name
from odradek.log.producers.entry import ProducerEntry
from odradek.log.producers.snapshot import CorruptSnapshotError, format_snapshot, parse_snapshot
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)


class ProducerSnapshotFiles:
    """Snapshot files by the offset they were taken at, oldest first."""

    __slots__ = ("_disk", "_doubted", "_unsynced", "directory", "offsets")

    def __init__(self, disk: Disk, directory: str, offsets: Iterable[int] = ()) -> None:
        self._disk = disk
        self.directory = directory
        self.offsets = sorted(offsets)
        self._unsynced: dict[int, None] = {}
        self._doubted: dict[int, None] = {}

    def path(self, offset: int) -> str:
        return f"{self.directory}/{file_name(offset, SNAPSHOT_SUFFIX)}"

    def take(self, entries: Iterable[ProducerEntry], offset: int) -> None:
        """Write a snapshot; durable it is once its path, told by `unsynced`, is synced. Torn by a crash
        before that, it does not match its CRC."""
        path, data = self.path(offset), format_snapshot(entries)
        if offset not in self._doubted or read_file(self._disk, path) != data:
            overwrite_file(self._disk, path, data)
        self._doubted.pop(offset, None)
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

    def doubt_above(self, offset: int) -> None:
        """Newer ones may speak of records that did not survive: they are not loaded, only taken anew. What is
        written and removed again in a file system costs most of the recovery of a small log."""
        self._doubted.update((o, None) for o in self.offsets if o > offset)
        self.offsets = [o for o in self.offsets if o <= offset]

    def remove_doubted(self) -> None:
        """All that could be taken anew was."""
        for offset in self._doubted:
            unlink_if_exists(self._disk, self.path(offset))
        self._doubted.clear()

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
