"""What a flush does to the disk, and what it proves. A job is made on the loop and may run elsewhere."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.files import Descriptor, sync_data, sync_file, write_file
from odradek.log.segments.segment import Segment
from odradek.runtime.api import Disk


class FlushProof(NamedTuple):
    """What is durable once a flush has run: the state of a log as the flush found it."""

    up_to: int
    truncations: int
    changes: int
    epochs: int
    snapshots: Sequence[int] = ()
    indexed: Sequence[Segment] = ()
    marks: Sequence[int] = ()


class FlushJob:
    """What makes a log durable up to an offset. After `run` has ended, `Log.finish_flush` gets the job."""

    __slots__ = ("_descriptors", "_directories", "_disk", "_drafts", "_paths", "proof")

    def __init__(
        self,
        disk: Disk,
        proof: FlushProof,
        descriptors: Sequence[Descriptor] = (),
        paths: Sequence[str] = (),
        directories: Sequence[str] = (),
        drafts: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        self._disk = disk
        self.proof = proof
        self._descriptors = descriptors
        self._paths = paths
        self._directories = directories
        self._drafts = drafts

    def run(self) -> None:
        """Sync everything, data first; drafts are written only. Raises OSError: then nothing is durable."""
        disk = self._disk
        for descriptor in self._descriptors:
            sync_data(disk, descriptor.fd)
        for path in self._paths:
            try:
                sync_file(disk, path)
            except FileNotFoundError:
                continue  # removed since: a newer snapshot stands for it
        for directory in self._directories:
            disk.fsync_dir(directory)
        for path, content in self._drafts:
            write_file(disk, path, content, sync=False)
