"""Rewrites batches that the kernel does not handle: compressed, transactional, or of magic 0 or 1.

Bytes in, bytes out. Offsets, sequences, epochs and codec do not change. A batch that loses records gets the
timestamp of its first kept record, or the delete horizon of its tombstones, as base timestamp. b"" means that
nothing is kept.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_TIMESTAMP, Buffer
from odradek.log.cleaning.offset_map import OffsetMap
from odradek.records import compression, kernel
from odradek.records.batch import Record, iter_records, records_of
from odradek.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    DELETE_HORIZON_FLAG,
    HEADER_BYTES,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchMeta,
    pack_header,
)
from odradek.records.kernel import RetentionRules


class Keeping(NamedTuple):
    """The rules of one cleaning, besides the offset map."""

    now_ms: int
    delete_retention_ms: int
    last_offsets: frozenset[int]
    marker_epochs: dict[int, int]

    @property
    def horizon_ms(self) -> int:
        """The delete horizon of tombstones and markers that are seen for the first time."""
        return self.now_ms + self.delete_retention_ms

    def rules(self, offsets: OffsetMap) -> RetentionRules:
        """The rules in the kernel's form."""
        last_offsets = array("q", sorted(self.last_offsets)).tobytes()
        latest = offsets.latest_offset
        return offsets.slots, offsets.secret, latest, self.now_ms, self.horizon_ms, last_offsets

    def stays_empty(self, batch: BatchMeta) -> bool:
        """Whether a batch is needed even without records.

        It has the last sequence of a producer, or the newest epoch of a producer that has only markers. Or it
        is the last batch of this cleaning: without it readers would not find the end of the log.
        """
        if batch.last_offset in self.last_offsets:
            return True
        return batch.is_control and self.marker_epochs.get(batch.producer_id) == batch.producer_epoch

    def is_past_horizon(self, batch: BatchMeta) -> bool:
        return batch.has_delete_horizon and batch.base_timestamp <= self.now_ms


def emptied(batch: BatchMeta, keeping: Keeping) -> bytes:
    """A batch without records, or b""."""
    if not keeping.stays_empty(batch):
        return b""
    flags = LOG_APPEND_TIME_FLAG | TRANSACTIONAL_FLAG | CONTROL_FLAG
    return _build(batch, batch.attributes & flags, NO_TIMESTAMP, batch.max_timestamp, 0, b"")


def retain_compressed(data: Buffer, batch: BatchMeta, rules: RetentionRules, keeping: Keeping) -> Buffer:
    """The kept records of a compressed data batch. It is compressed again if anything changed."""
    try:
        kept = kernel.retain_records(
            records_of(data, batch),
            batch.record_count,
            batch.base_offset,
            batch.base_timestamp,
            batch.max_timestamp,
            batch.attributes,
            rules,
        )
    except ValueError as e:
        raise corrupt(batch, str(e)) from e
    if kept is None:
        return memoryview(data)[batch.position : batch.position + batch.size]
    count, attributes, base_timestamp, max_timestamp, records = kept
    if not count:
        return emptied(batch, keeping)
    packed = compression.compress(batch.compression, records)
    return _build(batch, attributes, base_timestamp, max_timestamp, count, packed)


def retain_marker(data: Buffer, batch: BatchMeta, keeping: Keeping, *, spent: bool) -> Buffer:
    """What is kept of a control batch. `spent`: its transaction has no data left.

    A spent marker gets a delete horizon when it is first seen, and is removed after that.
    """
    if spent and keeping.is_past_horizon(batch):
        return emptied(batch, keeping)
    records = list(iter_records(data, batch))
    if not records:
        return emptied(batch, keeping)
    if not spent or batch.has_delete_horizon:
        return memoryview(data)[batch.position : batch.position + batch.size]
    rows = [(record.timestamp, record.key, record.value, record.headers) for record in records]
    latest = max(NO_TIMESTAMP, *(record.timestamp for record in records))
    encoded = kernel.encode(rows, keeping.horizon_ms)
    attributes = batch.attributes | DELETE_HORIZON_FLAG
    return _build(batch, attributes, keeping.horizon_ms, latest, len(rows), encoded)


def retain_legacy(
    records: Sequence[Record],
    batch: BatchMeta,
    offsets: OffsetMap,
    keeping: Keeping,
    *,
    keep_tombstones: bool,
) -> bytes:
    """The kept records of a batch of magic 0 or 1, as a batch of magic 2. Old formats are not written.

    The old batch has the offset of its last record. The new batch covers the kept records.
    """
    kept = [record for record in records if _stays(record, offsets, keep_tombstones)]
    codec = batch.attributes & CODEC_MASK
    stamped = batch.attributes & LOG_APPEND_TIME_FLAG
    if not kept:
        whole = batch._replace(
            base_offset=records[0].offset if records else batch.base_offset,
            last_offset_delta=batch.last_offset - records[0].offset if records else 0,
        )
        return emptied(whole, keeping)
    base_offset = kept[0].offset
    tombstones = any(record.value is None for record in kept)
    base_timestamp = keeping.horizon_ms if tombstones else kept[0].timestamp
    encoded = compression.compress(codec, _encode(kept, base_offset, base_timestamp))
    attributes = codec | stamped | (DELETE_HORIZON_FLAG if tombstones else 0)
    largest = batch.max_timestamp if stamped else max(NO_TIMESTAMP, *(record.timestamp for record in kept))
    whole = batch._replace(base_offset=base_offset, last_offset_delta=kept[-1].offset - base_offset)
    return _build(whole, attributes, base_timestamp, largest, len(kept), encoded)


def _stays(record: Record, offsets: OffsetMap, keep_tombstones: bool) -> bool:
    if record.offset > offsets.latest_offset:
        return True
    if record.key is None or (record.value is None and not keep_tombstones):
        return False
    return record.offset >= offsets.newest(record.key)


def _encode(records: Sequence[Record], base_offset: int, base_timestamp: int) -> bytearray:
    """Encode records without headers. Their offsets may have gaps."""
    keys, values = bytearray(), bytearray()
    rows = []
    for record in records:
        key, value = record.key, record.value
        rows.append(
            (
                record.offset - base_offset,
                kernel.wrap64(record.timestamp - base_timestamp),
                len(keys),
                -1 if key is None else len(key),
                len(values),
                -1 if value is None else len(value),
                0,
                0,
                0,
            )
        )
        keys += key or b""
        values += value or b""
    columns = array("q")
    for column in zip(*rows, strict=True):
        columns.extend(column)
    return kernel.build(columns.tobytes(), keys, values, b"")


def _build(
    batch: BatchMeta, attributes: int, base_timestamp: int, max_timestamp: int, count: int, records: Buffer
) -> bytes:
    """A batch that replaces another one, with the same offsets, epochs and sequences."""
    built = bytearray(HEADER_BYTES)
    built += records
    pack_header(
        built,
        base_offset=batch.base_offset,
        leader_epoch=batch.partition_leader_epoch,
        attributes=attributes,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=count,
    )
    return bytes(built)


def corrupt(batch: BatchMeta, reason: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at offset {batch.base_offset}: {reason}.")
