"""Splits a segment whose offsets do not fit into its indexes (KAFKA-6264).

An index has 31-bit offsets relative to the segment's base. Old brokers could write segments with a larger
range when compaction merged segments.
"""

import logging
from os import O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY

from odradek.core.errors import KafkaError
from odradek.log.files import read_fully, unlink_if_exists, write_fully
from odradek.log.names import CLEANED_SUFFIX, INDEX_SUFFIXES, LOG_SUFFIX, SWAP_SUFFIX, file_name
from odradek.log.segments.batch_search import scan_batches
from odradek.log.segments.segment import Segment
from odradek.records.header import MAX_INT32
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)

_COPY_BYTES = 1 << 20


class OffsetOverflowError(Exception):
    """A valid batch is too far from its segment's base for an index."""

    def __init__(self, segment: Segment) -> None:
        super().__init__(f"{segment.file.path} has offsets beyond {segment.base_offset} + {MAX_INT32}")
        self.base_offset = segment.base_offset


def split_segment(disk: Disk, path: str, base_offset: int) -> None:
    """Replace a segment with several that have the same batches. Recovery rebuilds their indexes.

    After a crash leftovers.py finds either the old segment or the new ones: while a .cleaned file exists, it
    ignores all files at or above its offset. So the files are renamed from the last segment to the first, and
    the old segment is replaced when all of them are renamed.
    """
    source = f"{path}/{file_name(base_offset, LOG_SUFFIX)}"
    fd = disk.open(source, O_RDONLY)
    try:
        parts = _parts(disk, fd, base_offset, disk.size(fd))
        for base, start, end in parts:
            _copy(disk, fd, start, end, f"{path}/{file_name(base, LOG_SUFFIX)}{CLEANED_SUFFIX}")
    finally:
        disk.close(fd)
    disk.fsync_dir(path)
    names = [f"{path}/{file_name(base, LOG_SUFFIX)}" for base, _, _ in parts]
    for name in reversed(names):
        disk.rename(name + CLEANED_SUFFIX, name + SWAP_SUFFIX)
    disk.fsync_dir(path)
    for suffix in INDEX_SUFFIXES:
        unlink_if_exists(disk, f"{path}/{file_name(base_offset, suffix)}")
    for name in names:
        disk.rename(name + SWAP_SUFFIX, name)
    disk.fsync_dir(path)
    _log.info("Split %s into %d segments: %s", source, len(parts), ", ".join(names))


def _parts(disk: Disk, fd: int, base_offset: int, size: int) -> list[tuple[int, int, int]]:
    """(base offset, first byte, end) of each new segment. The first one keeps the base offset."""
    base, start, next_offset = base_offset, 0, base_offset
    parts = []
    try:
        for batch in scan_batches(disk, fd, 0, size):
            if batch.base_offset < next_offset:
                break
            next_offset = batch.last_offset + 1
            if batch.last_offset - base > MAX_INT32:
                parts.append((base, start, batch.position))
                base, start = batch.base_offset, batch.position
    except KafkaError as e:
        _log.warning("%s", e)
    # Bytes after the last valid batch are copied too: recovery removes and reports them.
    parts.append((base, start, size))
    return parts


def _copy(disk: Disk, source: int, start: int, end: int, path: str) -> None:
    target = disk.open(path, O_WRONLY | O_CREAT | O_TRUNC)
    try:
        for position in range(start, end, _COPY_BYTES):
            data = read_fully(disk, source, min(_COPY_BYTES, end - position), position)
            write_fully(disk, target, data, position - start)
        disk.fsync(target)
    finally:
        disk.close(target)
