"""SegmentFiles: names and renames the files of a segment. It does not open them."""

from odradek.log.names import DELETED_SUFFIX, SEGMENT_SUFFIXES, file_name
from odradek.runtime.api import Disk


class SegmentFiles:
    """The .log file and the three indexes of a segment. Any of them may be missing.

    `_mark` is a suffix of the names while the segment is not part of its log yet.
    """

    __slots__ = ("_base_offset", "_directory", "_disk", "_mark")

    def __init__(self, disk: Disk, directory: str, base_offset: int, mark: str) -> None:
        self._disk = disk
        self._directory = directory
        self._base_offset = base_offset
        self._mark = mark

    def path(self, suffix: str) -> str:
        return f"{self._directory}/{file_name(self._base_offset, suffix)}{self._mark}"

    def set_aside(self) -> None:
        """Rename the files to .deleted: a restart removes them, and open descriptors can still read them."""
        for suffix in SEGMENT_SUFFIXES:
            path = self.path(suffix)
            try:
                self._disk.rename(path, path + DELETED_SUFFIX)
            except FileNotFoundError:
                continue

    def deleted_paths(self) -> list[str]:
        """The paths of the files after `set_aside`."""
        return [self.path(suffix) + DELETED_SUFFIX for suffix in SEGMENT_SUFFIXES]

    def unlink(self) -> None:
        for suffix in SEGMENT_SUFFIXES:
            try:
                self._disk.unlink(self.path(suffix))
            except FileNotFoundError:
                continue

    def take_place(self) -> None:
        """Remove the mark from the names: the segment becomes part of its log."""
        marked = [self.path(suffix) for suffix in SEGMENT_SUFFIXES]
        mark, self._mark = self._mark, ""
        for path in marked:
            try:
                self._disk.rename(path, path.removesuffix(mark))
            except FileNotFoundError:
                continue

    def moved(self, directory: str) -> None:
        """The directory was renamed."""
        self._directory = directory
