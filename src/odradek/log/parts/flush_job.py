"""FlushJob: the syncs of one flush, and what is durable afterwards. It is made on the event loop and may run
in another thread."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.log.files import Descriptor, sync_data, sync_file, write_file
from odradek.log.segments.segment import Segment
from odradek.runtime.api import Disk


class FlushProof(NamedTuple):
    """What is durable after a flush: the state of the log when the flush began."""

    up_to: int
    truncations: int
    changes: int
    epochs: int
    snapshots: Sequence[int] = ()
    indexed: Sequence[Segment] = ()
    marks: Sequence[int] = ()


class FlushJob:
    """Makes a log durable up to an offset. After `run`, pass the job to `Log.finish_flush`."""

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
        """Sync everything, data first. Drafts are written without a sync. Raises OSError: then nothing counts
        as durable."""
        disk = self._disk
        for descriptor in self._descriptors:
            sync_data(disk, descriptor.fd)
        for path in self._paths:
            try:
                sync_file(disk, path)
            except FileNotFoundError:
                continue  # removed since: a newer snapshot replaces it
        for directory in self._directories:
            disk.fsync_dir(directory)
        for path, content in self._drafts:
            write_file(disk, path, content, sync=False)
