"""Blocks: reserves disk blocks ahead of a segment's batches, and cuts the file after the last one."""

from typing import Final

from odradek.core.errors import is_exhausted
from odradek.log.files import sync_data
from odradek.runtime.api import Disk

RESERVE_FROM_BYTES: Final = 1 << 20
_RESERVE_BYTES: Final = 16 << 20
_NO_MORE: Final = 1 << 62


class Blocks:
    """The file has blocks up to `reserved_bytes`; 0: none are reserved."""

    __slots__ = ("_disk", "reserved_bytes")

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self.reserved_bytes = 0

    def preallocate(self, fd: int, size: int) -> None:
        """Extend the file to its maximum size. Raises OSError."""
        self._disk.ftruncate(fd, size)
        self.reserved_bytes = size

    def reserve(self, fd: int, end: int) -> None:
        """Reserve blocks ahead of a growing file. If there are none left, the write itself fails."""
        self.reserved_bytes = end + _RESERVE_BYTES
        try:
            self._disk.fallocate_keep_size(fd, end, _RESERVE_BYTES)
        except OSError:
            self.reserved_bytes = _NO_MORE

    def cut(self, fd: int, size: int) -> None:
        """End the file after a batch, and release the blocks beyond it. Raises OSError."""
        self._disk.ftruncate(fd, size)
        self.reserved_bytes = 0

    def take_back(self, fd: int, size: int) -> None:
        """Cut the file after the last batch, durably, after a failed write. Raises OSError."""
        try:
            self._disk.ftruncate(fd, size)
        except OSError as e:
            if not is_exhausted(e):
                raise
            # The next write overwrites the rest, and sealing the segment calls `cut`.
            self.reserved_bytes = max(self.reserved_bytes, 1)
            return
        sync_data(self._disk, fd)
