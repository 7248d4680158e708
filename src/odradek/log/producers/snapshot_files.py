"""ProducerSnapshotFiles: takes, loads and removes the producer snapshots of a log."""

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
    """Snapshot files by their offset, oldest first."""

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
        """Write a snapshot. It is durable after a sync of its path (see `unsynced`). If a crash tears it
        before that, its CRC does not match."""
        path, data = self.path(offset), format_snapshot(entries)
        if offset not in self._doubted or read_file(self._disk, path) != data:
            overwrite_file(self._disk, path, data)
        self._doubted.pop(offset, None)
        self._unsynced[offset] = None
        if offset not in self.offsets:
            insort(self.offsets, offset)

    def unsynced(self) -> list[int]:
        """The snapshots that are not synced yet."""
        return [offset for offset in self._unsynced if offset in self.offsets]

    def synced(self, offsets: Iterable[int]) -> None:
        """A sync of these snapshots has ended. If one was written again since the sync began, its CRC
        protects it."""
        for offset in offsets:
            self._unsynced.pop(offset, None)

    def load_newest(self, log_start_offset: int, end_offset: int) -> tuple[list[ProducerEntry], int]:
        """(entries of the newest valid snapshot in the range, its offset). Invalid ones are removed.

        Without a snapshot there are no producers at the log start.
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
        """Snapshots above an offset may include lost records: do not load them, but take them again. Their
        files are kept until then, because writing and removing files takes most of the recovery time of a
        small log."""
        self._doubted.update((o, None) for o in self.offsets if o > offset)
        self.offsets = [o for o in self.offsets if o <= offset]

    def remove_doubted(self) -> None:
        """Remove the doubted snapshots that were not taken again."""
        for offset in self._doubted:
            unlink_if_exists(self._disk, self.path(offset))
        self._doubted.clear()

    def remove(self, offset: int) -> None:
        self.offsets.remove(offset)
        unlink_if_exists(self._disk, self.path(offset))

    def remove_outside(self, log_start_offset: int, end_offset: int) -> None:
        """Remove snapshots outside of the log."""
        for offset in [o for o in self.offsets if o > end_offset or o <= log_start_offset]:
            self.remove(offset)

    def remove_strays(self, base_offsets: Sequence[int]) -> None:
        """Keep the snapshots at segment starts, and the newest one if it is after the last segment's
        start."""
        known = set(base_offsets)
        strays = [offset for offset in self.offsets if offset not in known]
        if strays and base_offsets and strays[-1] >= base_offsets[-1]:
            strays.pop()
        for offset in strays:
            self.remove(offset)

    def set_aside(self, offset: int) -> str | None:
        """Rename a snapshot to .deleted. Returns the new path, or None if there is no snapshot."""
        if offset not in self.offsets:
            return None
        self.offsets.remove(offset)
        path = self.path(offset)
        self._disk.rename(path, path + DELETED_SUFFIX)
        return path + DELETED_SUFFIX
