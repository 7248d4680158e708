"""The blocks of a segment's file: asked for ahead of the batches, cut back behind the last one."""

from typing import Final

from odradek.core.errors import is_exhausted
from odradek.log.files import sync_data
from odradek.runtime.api import Disk

RESERVE_FROM_BYTES: Final = 1 << 20
_RESERVE_BYTES: Final = 16 << 20
_NO_MORE: Final = 1 << 62


class Blocks:
    """Up to `reserved_bytes` the file system has blocks for the file; 0: none were asked for ahead."""

    __slots__ = ("_disk", "reserved_bytes")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.reserved_bytes = 0

    def preallocate(self, fd: int, size: int) -> None:
        """Make the file as large as it may become. Raises OSError."""
        self._disk.ftruncate(fd, size)
        self.reserved_bytes = size

    def reserve(self, fd: int, end: int) -> None:
        """Ask for blocks ahead of a growing file. Where there are none left, the write itself will tell."""
        self.reserved_bytes = end + _RESERVE_BYTES
        try:
            self._disk.fallocate_keep_size(fd, end, _RESERVE_BYTES)
        except OSError:
            self.reserved_bytes = _NO_MORE

    def cut(self, fd: int, size: int) -> None:
        """End the file where a batch ends, giving back any blocks beyond. Raises OSError."""
        self._disk.ftruncate(fd, size)
        self.reserved_bytes = 0

    def take_back(self, fd: int, size: int) -> None:
        """End the file where the last batch does, durably, after a write that failed. Raises OSError."""
        try:
            self._disk.ftruncate(fd, size)
        except OSError as e:
            if not is_exhausted(e):
                raise
            # The next write goes over what is left; `cut` is due when the segment is sealed.
            self.reserved_bytes = max(self.reserved_bytes, 1)
            return
        sync_data(self._disk, fd)
