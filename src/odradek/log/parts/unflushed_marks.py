"""The marks `<offset>.unflushed` of a partition's directory: end offsets of segments that were not
durable."""

from collections.abc import Iterable, Sequence
from os import O_CREAT, O_WRONLY

from odradek.log.files import unlink_if_exists
from odradek.log.names import UNFLUSHED_SUFFIX, file_name
from odradek.log.parts.partition_dir import PartitionDir


class UnflushedMarks:
    """After a power loss the end of a marked segment may be lost, but not the segment after it.

    File systems keep the order in which names are created: if the next segment survives, so does the mark.
    """

    __slots__ = ("_dir", "end_offsets")

    def __init__(self, directory: PartitionDir, end_offsets: Iterable[int] = ()) -> None:
        self._dir = directory
        self.end_offsets = list(end_offsets)

    def add(self, end_offset: int) -> None:
        """Raises OSError."""
        disk = self._dir.disk
        disk.close(disk.open(self._path(end_offset), O_WRONLY | O_CREAT))
        if end_offset not in self.end_offsets:
            self.end_offsets.append(end_offset)

    def remove(self, end_offsets: Sequence[int]) -> None:
        """Raises OSError: then all of them are still valid."""
        for end_offset in end_offsets:
            unlink_if_exists(self._dir.disk, self._path(end_offset))
        self.end_offsets = [end_offset for end_offset in self.end_offsets if end_offset not in end_offsets]

    def up_to(self, offset: int) -> list[int]:
        return [end_offset for end_offset in self.end_offsets if end_offset <= offset]

    def beyond(self, offset: int) -> list[int]:
        return [end_offset for end_offset in self.end_offsets if end_offset > offset]

    def _path(self, end_offset: int) -> str:
        return f"{self._dir.path}/{file_name(end_offset, UNFLUSHED_SUFFIX)}"
