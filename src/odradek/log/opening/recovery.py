"""Recovers one segment: checks the CRC of every batch, and cuts the file after the last valid one.

It rebuilds indexes, producers and leader epochs as it reads.
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
    """Keep the valid batches and remove the rest. `producers` has the state at the start of the segment.

    Records below the log start are deleted: they do not count for producers and transactions. Offsets may be
    missing, because a cleaner removed them. A batch at or below an earlier offset is invalid. Reading and
    checking are steps that may run in another thread. A small file is read at once.
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
                # Batches of this format have no epoch: the known epochs are invalid from here.
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
    """(the bytes from a position, the valid batches in them, their end, why they end before the file does).

    It changes nothing but the buffer. If the buffer is too small for one batch, it finds none and returns OK.
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
