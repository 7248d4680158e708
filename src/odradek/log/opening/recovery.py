"""Recovering one segment: every batch checked with its CRC, what follows the last good one cut off.

Indexes, producers and epochs are rebuilt on the way.
"""

import logging
from collections.abc import Callable
from functools import partial
from typing import Final, NamedTuple

from odradek.core.types import Buffer
from odradek.log.files import Descriptor, named
from odradek.log.opening.splitting import OffsetOverflowError
from odradek.log.opening.steps import Steps
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.producers.markers import read_marker
from odradek.log.producers.state import ProducerState
from odradek.log.segments.segment import Segment
from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.header import MAX_INT32, BatchMeta
from odradek.records.kernel import OK, PARTIAL
from odradek.records.scanning import scan
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 4 << 20
_AT_ONCE_BYTES: Final = 128 << 10
OUT_OF_ORDER: Final = -1
_REASONS: Final = {
    PARTIAL: "the file ends inside a batch",
    OUT_OF_ORDER: "offsets do not follow each other",
}


class Recovered(NamedTuple):
    next_offset: int
    truncated_bytes: int


def recover_segment(
    disk: Disk,
    segment: Segment,
    epochs: EpochCache,
    producers: ProducerState,
    next_offset: int,
    log_start_offset: int,
    *,
    progress: Callable[[int], None] | None = None,
) -> Steps[Recovered]:
    """Keep the good batches, cut off the rest. The producers given are as of the segment's beginning.

    Records below the log start are gone: producers and transactions follow from the others.

    Offsets may be missing: a cleaner took them out. A batch at an offset that was there before is no good.

    Reading and checking are steps that may leave the event loop; a small file is read at once.
    """
    file_size = segment.size
    descriptor = segment.file.open()
    segment.reset_indexes()
    if segment.has_txn_index:
        segment.txn_index.reset()
        segment.has_txn_index = False
    segment.size = 0
    next_offset = max(next_offset, segment.base_offset)
    last_possible_offset = segment.base_offset + MAX_INT32
    finding = OK
    position = 0
    buffer = bytearray(min(_CHUNK_BYTES, file_size))
    while position < file_size and finding == OK:
        read = partial(_read_chunk, disk, descriptor, buffer, position, file_size)
        data, batches, end, finding = (yield read) if file_size > _AT_ONCE_BYTES else read()
        if end == 0 and finding == OK:
            buffer = bytearray(2 * len(buffer))
            continue
        position += end
        if progress is not None:
            progress(end)
        for batch in batches:
            _, size, base_offset, delta, epoch, _, _, max_timestamp, producer_id, *_, magic = batch
            last_offset = base_offset + delta
            if base_offset < next_offset:
                finding = OUT_OF_ORDER
                break
            if last_offset > last_possible_offset:
                raise OffsetOverflowError(segment)
            next_offset = last_offset + 1
            segment.index_batch(last_offset, max_timestamp, size)
            if epoch > epochs.latest:
                epochs.assign(epoch, base_offset)
            elif magic < 2 and epochs.latest >= 0:
                # Batches of that age name no epoch: what was known of epochs does not hold from here on.
                epochs.clear()
            if producer_id >= 0 and last_offset >= log_start_offset:
                _replay(segment, producers, data, batch)
    truncated = file_size - segment.size
    if truncated:
        _log.warning(
            "Found invalid messages in log segment %s at byte offset %d: %s. Truncating %d bytes",
            segment.file.path,
            segment.size,
            _REASONS.get(finding, "no valid record batch"),
            truncated,
        )
        segment.cut(segment.size)
    segment.trim_indexes()
    producers.end_offset = next_offset
    return Recovered(next_offset, truncated)


def _read_chunk(
    disk: Disk, file: Descriptor, buffer: bytearray, position: int, file_size: int
) -> tuple[Buffer, list[BatchMeta], int, int]:
    """(bytes from a position on, the good batches in them, where those end, why before the file does).

    Touches nothing but the buffer. Where not one whole batch fits into it, nothing is found and all is OK.
    """
    data = memoryview(buffer)[: file_size - position]
    read = 0
    while read < len(data):
        try:
            count = disk.preadv(file.fd, [data[read:]], position + read)
        except OSError as e:
            raise named(disk, e, file.fd, position + read) from None
        if count == 0:
            break
        read += count
    batches, end, finding = scan(data[:read])
    if finding == PARTIAL and position + read < file_size:
        finding = OK
    return data, batches, end, finding


def _replay(segment: Segment, producers: ProducerState, data: Buffer, batch: BatchMeta) -> None:
    completed = producers.replay(batch, read_marker(data, batch) if batch.is_control else None)
    if completed is not None:
        stable = producers.stable_offset_after(completed)
        if completed.aborted:
            segment.add_aborted(
                AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )
        producers.complete(completed)
