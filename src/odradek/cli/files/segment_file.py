"""The batches of a segment file, read in pieces. dump_rows.py decodes a batch."""

import os
from collections.abc import Iterator
from typing import NamedTuple

from odradek.core.errors import KafkaError
from odradek.records.header import BatchMeta, iter_batches
from odradek.runtime.real import RealDisk

_CHUNK_BYTES = 4 << 20


class BatchInFile(NamedTuple):
    """A batch in a piece of its file, and where that piece begins."""

    data: memoryview
    start: int
    batch: BatchMeta


class SegmentFile:
    """Iterate once; then `damage` tells what cannot be read behind the last whole batch, if anything."""

    def __init__(self, path: str) -> None:
        self._path = path
        self.damage: str | None = None

    def __iter__(self) -> Iterator[BatchInFile]:
        disk = RealDisk()
        fd = disk.open(self._path, os.O_RDONLY)
        try:
            size = disk.size(fd)
            position, wanted = 0, _CHUNK_BYTES
            while position < size:
                data = memoryview(disk.pread(fd, wanted, position))
                consumed = 0
                try:
                    for batch in iter_batches(data):
                        yield BatchInFile(data, position, batch)
                        consumed = batch.position + batch.size
                except KafkaError as e:
                    if any(data[consumed:]):
                        self.damage = f"position {position + consumed}: {e}"
                    return
                if consumed:
                    position, wanted = position + consumed, _CHUNK_BYTES
                elif position + len(data) >= size:
                    self.damage = (
                        f"{size - position} bytes after the last whole batch, at position {position}"
                    )
                    return
                else:
                    wanted *= 2
        finally:
            disk.close(fd)
