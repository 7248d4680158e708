"""Reads the records of batches of every magic, and builds batches of magic 2.

header.py has the batch header, check.py what a leader accepts.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import (
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    Buffer,
)
from odradek.records import compression, kernel, legacy
from odradek.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    TRANSACTIONAL_FLAG,
    BatchMeta,
    iter_batches,
    pack_header,
)
from odradek.records.kernel import Headers, RecordTuple, wrap64

__all__ = [
    "CREATE_TIME",
    "HEADER_BYTES",
    "LOG_APPEND_TIME",
    "BatchMeta",
    "Headers",
    "Record",
    "RecordTuple",
    "build_batch",
    "iter_batches",
    "iter_records",
    "records_of",
]

_timestamp = itemgetter(0)


@dataclass(slots=True)
class Record:
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


def records_of(
    buf: Buffer, batch: BatchMeta, limit_bytes: int = compression.DEFAULT_DECOMPRESS_LIMIT_BYTES
) -> Buffer:
    """The record bytes of a magic 2 batch, decompressed; a view into the buffer if it is not compressed."""
    body = memoryview(buf)[batch.position + HEADER_BYTES : batch.position + batch.size]
    return compression.decompress(batch.compression, body, limit_bytes)


def iter_records(
    buf: Buffer, batch: BatchMeta, limit_bytes: int = compression.DEFAULT_DECOMPRESS_LIMIT_BYTES
) -> Iterator[Record]:
    """Every record of a batch, decompressed, with its offset and timestamp; control records too.

    Raises CORRUPT_MESSAGE if the batch does not contain the records that its header claims.
    """
    if batch.magic < 2:
        for entry in legacy.iter_entries(buf, batch.position, limit_bytes):
            yield Record(*entry)
        return
    data = records_of(buf, batch, limit_bytes)
    count = batch.record_count
    try:
        columns = memoryview(kernel.walk(data, count)).cast("q")
    except ValueError as e:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Batch at offset {batch.base_offset}: {e}.") from e
    base_offset, base_timestamp = batch.base_offset, batch.base_timestamp
    stamped = batch.max_timestamp if batch.timestamp_type == LOG_APPEND_TIME else None
    for offset, delta, key, key_len, value, value_len, headers, headers_len, header_count in zip(
        *(columns[i * count : (i + 1) * count] for i in range(kernel.COLUMNS)), strict=True
    ):
        yield Record(
            base_offset + offset,
            wrap64(base_timestamp + delta) if stamped is None else stamped,
            bytes(data[key : key + key_len]) if key_len >= 0 else None,
            bytes(data[value : value + value_len]) if value_len >= 0 else None,
            _headers(bytes(data[headers : headers + headers_len]), header_count) if header_count else (),
        )


def _headers(section: bytes, count: int) -> tuple[tuple[str, bytes | None], ...]:
    """The headers of a record. `walk` has checked their structure. Invalid UTF-8 is replaced, as in Java."""
    position = 0

    def take() -> bytes | None:
        nonlocal position
        raw = shift = 0
        while True:
            byte = section[position]
            position += 1
            raw |= (byte & 0x7F) << shift
            if byte < 0x80:
                break
            shift += 7
        if raw & 1:
            return None
        length = (raw & 0xFFFFFFFF) >> 1
        position += length
        return section[position - length : position]

    return tuple(((take() or b"").decode("utf-8", "replace"), take()) for _ in range(count))


def build_batch(
    records: Sequence[RecordTuple],
    *,
    base_offset: int = 0,
    codec: int = compression.NONE,
    level: int | None = None,
    timestamp_type: int = CREATE_TIME,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    leader_epoch: int = NO_LEADER_EPOCH,
    transactional: bool = False,
    control: bool = False,
) -> bytearray:
    """One magic 2 batch of (timestamp, key, value, headers) tuples at consecutive offsets."""
    assert records, "a batch holds at least one record"
    assert codec == codec & CODEC_MASK
    base_timestamp = records[0][0]
    batch = kernel.encode(records, base_timestamp, HEADER_BYTES)
    if codec:
        packed = compression.compress(codec, memoryview(batch)[HEADER_BYTES:], level)
        batch = bytearray(HEADER_BYTES)
        batch += packed
    attributes = codec
    if timestamp_type == LOG_APPEND_TIME:
        attributes |= LOG_APPEND_TIME_FLAG
    if transactional:
        attributes |= TRANSACTIONAL_FLAG
    if control:
        attributes |= CONTROL_FLAG
    pack_header(
        batch,
        base_offset=base_offset,
        leader_epoch=leader_epoch,
        attributes=attributes,
        last_offset_delta=len(records) - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max(NO_TIMESTAMP, max(map(_timestamp, records))),
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        record_count=len(records),
    )
    return batch
