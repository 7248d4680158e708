"""Formats and parses a snapshot of a partition's producers. Pure."""

from collections.abc import Iterable
from struct import Struct

from odradek.core.types import NO_OFFSET
from odradek.log.producers.entry import ProducerBatch, ProducerEntry
from odradek.records.kernel import crc32c

# version  int16   0   1
# crc      uint32  2   CRC-32C of everything after it
# count    int32   6   of producers
_HEAD = Struct(">hIi")
_CRC_START = 6
_VERSION = 1

# producer id               int64   0
# producer epoch            int16   8
# last sequence             int32  10
# last offset               int64  14
# offset delta              int32  22   of the last batch
# timestamp                 int64  26
# coordinator epoch         int32  34
# current txn first offset  int64  38   -1: no transaction is open
_ENTRY = Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """An invalid snapshot. An older one, or the log, has the same state."""


def format_snapshot(entries: Iterable[ProducerEntry]) -> bytes:
    packed = [_ENTRY.pack(entry.producer_id, *snapshot_fields(entry)) for entry in entries]
    body = len(packed).to_bytes(4, "big") + b"".join(packed)
    return _HEAD.pack(_VERSION, crc32c(body), len(packed)) + body[4:]


def snapshot_fields(entry: ProducerEntry) -> tuple[int, ...]:
    """What a snapshot holds of a producer beside its id, field by field."""
    return (
        entry.producer_epoch,
        entry.last_sequence,
        entry.last_offset,
        entry.last_offset_delta,
        entry.last_timestamp,
        entry.coordinator_epoch,
        entry.current_txn_first_offset,
    )


def parse_snapshot(data: bytes) -> list[ProducerEntry]:
    """A snapshot has only the last batch of a producer. Duplicates of older ones are not recognised after
    it."""
    if len(data) < _HEAD.size:
        raise CorruptSnapshotError(f"only {len(data)} bytes")
    version, crc, count = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"version {version}, not {_VERSION}")
    if crc32c(data[_CRC_START:]) != crc:
        raise CorruptSnapshotError("the CRC does not match")
    if len(data) != _HEAD.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"{len(data)} bytes for {count} producers")
    entries = []
    for fields in _ENTRY.iter_unpack(data[_HEAD.size :]):
        producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, txn_first = fields
        batches = (ProducerBatch(sequence, offset, delta, timestamp),) if offset != NO_OFFSET else ()
        entries.append(ProducerEntry(producer_id, epoch, coordinator_epoch, timestamp, txn_first, batches))
    return entries
