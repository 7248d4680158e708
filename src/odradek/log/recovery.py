"""Recovering one segment: every batch checked with its CRC, what follows the last good one cut off.

Indexes, producers and epochs are rebuilt on the way.
"""

import logging
from typing import Final, NamedTuple

from odradek.core.errors import KafkaError
from odradek.core.types import Buffer
from odradek.log.epoch_cache import EpochCache
from odradek.log.files import read_fully
from odradek.log.markers import read_marker
from odradek.log.producer_state import ProducerState
from odradek.log.segment import Segment
from odradek.log.txn_index import AbortedTxn
from odradek.records.header import MAX_INT32, BatchMeta, crc_matches, iter_batches
from odradek.records.kernel import LEGACY, OK, PARTIAL, scan_segment
from odradek.runtime.api import Disk

_log = logging.getLogger(__name__)

_CHUNK_BYTES: Final = 4 << 20
_REASONS: Final = {PARTIAL: "the file ends inside a batch", OK: "offsets do not follow each other"}


class Recovered(NamedTuple):
    next_offset: int
    truncated_bytes: int


def recover_segment(
    disk: Disk,
    segment: Segment,
    epochs: EpochCache,
    producers: ProducerState,
    next_offset: int,
    *,
    contiguous: bool,
) -> Recovered:
    """Keep the good batches, cut off the rest. The producers given are as of the segment's beginning.

    Where no cleaner takes records out, `contiguous`, a batch that does not begin where the last one ends is a
    leftover of what an earlier recovery cut off.
    """
    file_size = segment.size
    descriptor = segment.file.open()
    segment.reset_indexes()
    if segment.has_txn_index:
        segment.txn_index.reset()
        segment.has_txn_index = False
    segment.size = 0
    next_offset = max(next_offset, segment.base_offset)
    want = _CHUNK_BYTES
    finding = OK
    while segment.size < file_size:
        data = read_fully(disk, descriptor.fd, min(want, file_size - segment.size), segment.size)
        batches, _, finding = _scan(data)
        position = segment.size
        for batch in batches:
            if (
                batch.base_offset < next_offset
                or (contiguous and batch.base_offset != next_offset)
                or batch.last_offset - segment.base_offset > MAX_INT32
            ):
                finding = OK
                break
            next_offset = batch.last_offset + 1
            segment.index_batch(batch.last_offset, batch.max_timestamp, batch.size)
            if batch.partition_leader_epoch > epochs.latest:
                epochs.assign(batch.partition_leader_epoch, batch.base_offset)
            if batch.producer_id >= 0:
                _replay(segment, producers, data, batch)
        else:
            if finding == OK:
                want = _CHUNK_BYTES
                continue
            if finding == PARTIAL and position + len(data) < file_size:
                want = _CHUNK_BYTES if segment.size > position else want * 2
                continue
        break
    truncated = file_size - segment.size
    if truncated:
        _log.warning(
            "Found invalid messages in log segment %s at byte offset %d: %s. Truncating %d bytes",
            segment.file.path,
            segment.size,
            _REASONS.get(finding, "no good record batch stands there"),
            truncated,
        )
    segment.cut(segment.size)
    if truncated:
        # What was cut off must not come back behind new batches after another crash.
        disk.fdatasync(descriptor.fd)
    segment.trim_indexes()
    producers.end_offset = next_offset
    return Recovered(next_offset, truncated)


def _scan(data: bytes) -> tuple[list[BatchMeta], int, int]:
    """The good batches of a chunk, of any magic; where they end and why."""
    batches, end, finding = scan_segment(data, BatchMeta)
    while finding == LEGACY:
        try:
            entry = next(iter_batches(data, end))
        except KafkaError:
            return batches, end, LEGACY
        if not crc_matches(data, entry):
            return batches, end, LEGACY
        batches.append(entry)
        more, end, finding = scan_segment(data, BatchMeta, end + entry.size)
        batches += more
    return batches, end, finding


def _replay(segment: Segment, producers: ProducerState, data: Buffer, batch: BatchMeta) -> None:
    completed = producers.replay(batch, read_marker(data, batch) if batch.is_control else None)
    if completed is not None:
        stable = producers.stable_offset_after(completed)
        if completed.aborted:
            segment.add_aborted(
                AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
            )
        producers.complete(completed)
