"""Reads segments and writes cleaned ones in chunks."""

from os import O_RDONLY

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer
from odradek.log.cleaning.cleaned_segment import CleanedSegment
from odradek.log.cleaning.grouping import Source
from odradek.log.files import Descriptor, named
from odradek.log.segments.txn_index import AbortedTxn
from odradek.runtime.api import Disk


class SegmentChunks:
    """Reads a segment's file in chunks. Each chunk starts where the last one was consumed."""

    __slots__ = ("_buffer", "_consumed", "_disk", "_file", "_position", "_size", "path")

    def __init__(self, disk: Disk, source: Source, chunk_bytes: int) -> None:
        self._disk = disk
        self._file = Descriptor(disk, disk.open(source.path, O_RDONLY))
        self.path = source.path
        self._size = source.size
        self._buffer = bytearray(min(chunk_bytes, source.size))
        self._position = 0
        self._consumed: int | None = None

    def next(self) -> memoryview:
        """The next chunk; empty at the end. If a chunk is too small for a batch, the next one is larger."""
        if self._consumed == 0:
            if self._position + len(self._buffer) >= self._size:
                raise KafkaError(
                    ErrorCode.CORRUPT_MESSAGE, f"{self.path} ends inside a batch at {self._position}."
                )
            self._buffer = bytearray(2 * len(self._buffer))
        chunk = memoryview(self._buffer)[: self._size - self._position]
        read = 0
        while read < len(chunk):
            try:
                count = self._disk.preadv(self._file.fd, [chunk[read:]], self._position + read)
            except OSError as e:
                raise named(self._disk, e, self._file.fd, self._position + read) from None
            if count == 0:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{self.path} is shorter than its segment.")
            read += count
        return chunk

    def consumed(self, size: int) -> None:
        self._consumed = size
        self._position += size


class Output:
    """Collects kept batches and writes them in chunks."""

    __slots__ = ("_cleaned", "buffer", "filled", "written_bytes")

    def __init__(self, cleaned: CleanedSegment, chunk_bytes: int) -> None:
        self._cleaned = cleaned
        self.buffer = bytearray(2 * chunk_bytes)
        self.filled = 0
        self.written_bytes = 0

    def make_room(self) -> None:
        """Write the buffer. If it is empty, it is too small: enlarge it."""
        if self.filled:
            self.flush()
        else:
            self.buffer = bytearray(2 * len(self.buffer))

    def put(self, batch: Buffer) -> None:
        while self.filled + len(batch) > len(self.buffer):
            self.make_room()
        self.buffer[self.filled : self.filled + len(batch)] = batch
        self.filled += len(batch)

    def add_aborted(self, aborted: AbortedTxn) -> None:
        self._cleaned.add_aborted(aborted)

    def flush(self) -> None:
        if self.filled:
            self._cleaned.write(memoryview(self.buffer)[: self.filled])
            self.written_bytes += self.filled
            self.filled = 0
