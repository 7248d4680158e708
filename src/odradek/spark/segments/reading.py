"""One segment file, from the disk to Arrow batches, a few megabytes at a time."""

from collections.abc import Iterator
from os import O_RDONLY

import pyarrow as pa

from odradek.log.files import read_fully
from odradek.records.header import BatchMeta
from odradek.records.kernel import BAD_CRC, BAD_LENGTH, BAD_MAGIC, OK, PARTIAL
from odradek.records.scanning import scan
from odradek.runtime.api import Disk
from odradek.spark.segments.directory import SegmentError, SegmentPart
from odradek.spark.segments.transactions import AbortedSpans
from odradek.spark.source.columns import arrow_of

_CHUNK_BYTES = 8 << 20
_TOLD = {
    BAD_CRC: "the batch here fails its CRC",
    BAD_LENGTH: "no batch begins here",
    BAD_MAGIC: "no batch begins here",
    PARTIAL: "the batch here is cut off",
}


def read_part(
    disk: Disk, part: SegmentPart, *, is_committed: bool, with_headers: bool
) -> Iterator[pa.RecordBatch]:
    """What a reader is shown of a file."""
    spans = AbortedSpans(part.aborted)
    for data, batches in _chunks(disk, part):
        shown = (batch for batch in batches if _is_shown(batch, spans if is_committed else None))
        yield from arrow_of(
            part.tp, data, shown, part.first_offset, part.last_offset, with_headers=with_headers
        )
        if batches and batches[-1].last_offset >= part.last_offset:
            return


def _is_shown(batch: BatchMeta, aborted: AbortedSpans | None) -> bool:
    if batch.is_control or not batch.record_count:
        return False
    if aborted is None or not batch.is_transactional:
        return True
    return not aborted.hold(batch.producer_id, batch.base_offset)


def _chunks(disk: Disk, part: SegmentPart) -> Iterator[tuple[bytes, list[BatchMeta]]]:
    """Whole batches, each held against its CRC."""
    try:
        fd = disk.open(part.path, O_RDONLY)
    except FileNotFoundError:
        raise SegmentError(
            f"{part.path} is gone: a node has deleted or compacted it since this query was planned"
        ) from None
    try:
        position, wanted, end = 0, _CHUNK_BYTES, part.end_position
        while position < end:
            data = read_fully(disk, fd, min(wanted, end - position), position)
            batches, size, finding = scan(data)
            if finding == PARTIAL and len(data) == wanted and position + wanted < end:
                finding = OK
            if finding != OK or not data:
                told = _TOLD.get(finding, "the file ends here")
                raise SegmentError(f"{part.path}: position {position + size}: {told}")
            yield data, batches
            wanted = _CHUNK_BYTES if size else 2 * wanted
            position += size
    finally:
        disk.close(fd)
