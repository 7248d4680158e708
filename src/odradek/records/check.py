"""How a leader checks the batches of a producer, before the records get offsets. Pure: no log, no topic.

The order of the checks and the errors are Apache Kafka's: the rules of the request, then length and CRC of
the batch, then its header, then every record. Deviations: offset deltas other than 0, 1, 2, … are refused
(Apache stores them, so that offsets repeat or descend, or fails with an internal error). Records that
decompress to more than a limit are refused (Apache has no limit). At most MAX_RECORD_ERRORS refused records
are named (Apache names all).
"""

from collections.abc import Sequence
from typing import Final, NamedTuple, TypeAlias

from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.core.types import NO_PRODUCER_ID, NO_TIMESTAMP, Buffer
from odradek.records import compression, kernel
from odradek.records.batch import records_of
from odradek.records.header import (
    CODEC_MASK,
    CONTROL_FLAG,
    CREATE_TIME,
    HEADER_BYTES,
    LOG_APPEND_TIME,
    LOG_APPEND_TIME_FLAG,
    BatchMeta,
    pack_header,
    read_header,
    set_max_timestamp,
)

_MIN_INT64: Final = -(1 << 63)
_MAX_INT64: Final = (1 << 63) - 1

MAX_RECORD_ERRORS: Final = 100  # in one answer; a client sees the others after it has corrected these
_NO_KEY: Final = "Compacted topic cannot accept message without key"
_ZSTD_MIN_PRODUCE_VERSION: Final = 7
_NEWEST_PRODUCE_VERSION: Final = 13

_Found: TypeAlias = list[tuple[int, int, int, BatchMeta | None]]


class CheckRules(NamedTuple):
    """The rules of a topic's configuration for records. A target codec of None keeps the producer's codec."""

    max_message_bytes: int = 1048588
    timestamp_type: int = CREATE_TIME
    timestamp_before_max_ms: int = _MAX_INT64
    timestamp_after_max_ms: int = 3_600_000
    compacted: bool = False
    target_codec: int | None = None
    compression_level: int | None = None
    decompress_limit_bytes: int = compression.DEFAULT_DECOMPRESS_LIMIT_BYTES


class CheckedRecords:
    """Batches that may be appended: contiguous in a writable buffer, with final timestamps and codec."""

    __slots__ = ("batches", "buffer")

    def __init__(self, buffer: bytearray | memoryview, batches: list[BatchMeta]) -> None:
        self.buffer = buffer
        self.batches = batches


def check_produce(
    sets: Sequence[Buffer], rules: CheckRules, now_ms: int, version: int = _NEWEST_PRODUCE_VERSION
) -> list[CheckedRecords | KafkaError]:
    """Check the record sets that Produce requests of a version have for partitions of one topic.

    Timestamps and CRC may be rewritten in place in a writable set. A read-only set is copied first.
    """
    earliest, latest = _time_bounds(rules, now_ms)
    kept = rules.timestamp_type == CREATE_TIME and not rules.target_codec
    results: list[CheckedRecords | KafkaError] = []
    findings = kernel.validate(
        sets, BatchMeta, earliest, latest, rules.compacted, rules.max_message_bytes if kept else -1
    )
    for data, found in zip(sets, findings, strict=True):
        if type(found) is BatchMeta:
            assert not isinstance(data, bytes)
            results.append(CheckedRecords(data, [found]))
            continue
        assert isinstance(found, list)
        try:
            results.append(_check_set(data, found, rules, now_ms, version))
        except KafkaError as e:
            results.append(e.with_traceback(None))  # its frames would live as long as the request
    return results


def _time_bounds(rules: CheckRules, now_ms: int) -> tuple[int, int]:
    _, timestamp_type, before_max_ms, after_max_ms, _, _, _, _ = rules
    if timestamp_type == LOG_APPEND_TIME:
        return _MIN_INT64, _MAX_INT64
    earliest, latest = now_ms - before_max_ms, now_ms + after_max_ms
    return (
        earliest if earliest > _MIN_INT64 else _MIN_INT64,
        latest if latest < _MAX_INT64 else _MAX_INT64,
    )


def _check_set(data: Buffer, found: _Found, rules: CheckRules, now_ms: int, version: int) -> CheckedRecords:
    if not found:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} must have at least one record batch per partition",
        )
    finding, index, largest, _ = found[0]
    batch = _only_batch(found, version)
    _check_batch(batch, finding, rules)
    records, largest = _check_records(data, batch, finding, index, largest, rules, now_ms)
    buffer, batch = _as_appended(data, batch, records, largest, rules, now_ms)
    return CheckedRecords(buffer, [batch])


def _only_batch(found: _Found, version: int) -> BatchMeta:
    """A Produce request must have exactly one batch of magic 2 per partition."""
    finding, _, _, batch = found[0]
    if batch is None:
        raise _unreadable(finding)
    if version < _ZSTD_MIN_PRODUCE_VERSION and batch.compression == compression.ZSTD:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
            f"Produce requests with version {version} are not allowed to use ZStandard compression",
        )
    if len(found) > 1:
        if found[1][0] in (kernel.BAD_LENGTH, kernel.BAD_MAGIC):
            raise _unreadable(found[1][0])
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Produce requests with version {version} are only allowed to contain exactly one record batch "
            "per partition",
        )
    return batch


def _unreadable(finding: int) -> KafkaError:
    if finding == kernel.LEGACY:
        return KafkaError(
            ErrorCode.INVALID_RECORD,
            "Produce requests are only allowed to contain record batches with magic 2",
        )
    what = "magic" if finding == kernel.BAD_MAGIC else "length"
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"A record batch has an invalid {what}.")


def _check_batch(batch: BatchMeta, finding: int, rules: CheckRules) -> None:
    if batch.base_offset != 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"The baseOffset of the record batch should be 0, but it is {batch.base_offset}",
        )
    _check_size(batch.size, rules)
    if finding == kernel.BAD_CRC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"Record is corrupt (stored crc = {batch.crc})")
    if finding == kernel.BAD_COUNT:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Inconsistent batch offset range [0, {batch.last_offset_delta}] and count of records "
            f"{batch.record_count}",
        )
    if batch.attributes & CONTROL_FLAG:
        raise KafkaError(ErrorCode.INVALID_RECORD, "Clients are not allowed to write control records")
    if batch.producer_id > NO_PRODUCER_ID and batch.base_sequence < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Invalid sequence number {batch.base_sequence} in record batch of producer {batch.producer_id}",
        )


def _check_size(size: int, rules: CheckRules) -> None:
    if size > rules.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The record batch size is {size} bytes which exceeds the maximum configured value of "
            f"{rules.max_message_bytes}",
        )


def _check_records(
    data: Buffer, batch: BatchMeta, finding: int, index: int, largest: int, rules: CheckRules, now_ms: int
) -> tuple[Buffer | None, int]:
    """Raise KafkaError if a record is refused. Returns the decompressed records and the largest timestamp."""
    records: Buffer | None = None
    if finding == kernel.COMPRESSED:
        records = _decompressed(data, batch, rules)
    if records is not None or batch.attributes & LOG_APPEND_TIME_FLAG:
        # Records of a batch with LogAppendTime share its timestamp: it is checked below.
        earliest, latest = _time_bounds(rules, now_ms)
        if batch.attributes & LOG_APPEND_TIME_FLAG:
            earliest, latest = _MIN_INT64, _MAX_INT64
        finding, index, largest = kernel.check_records(
            records_of(data, batch) if records is None else records,
            batch.record_count,
            batch.base_timestamp,
            earliest,
            latest,
            rules.compacted,
        )
    if finding == kernel.MALFORMED:
        raise KafkaError(
            ErrorCode.INVALID_RECORD,
            f"Record {index} of {batch.record_count} is malformed, or bytes follow the last record",
        )
    if finding == kernel.BAD_OFFSET_DELTA:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"Record {index} does not have the offset delta {index} of its position"
        )
    stamped = batch.attributes & LOG_APPEND_TIME_FLAG
    if finding != kernel.OK or stamped:
        errors = _record_errors(records_of(data, batch) if records is None else records, batch, rules, now_ms)
        if errors is not None:
            raise errors
    return records, max(NO_TIMESTAMP, batch.max_timestamp) if stamped else largest


def _decompressed(data: Buffer, batch: BatchMeta, rules: CheckRules) -> Buffer:
    """The records of a batch. If decompression fails, the error is UNKNOWN_SERVER_ERROR: a client would
    retry CORRUPT_MESSAGE."""
    try:
        return records_of(data, batch, rules.decompress_limit_bytes)
    except KafkaError as e:
        if e.code == ErrorCode.MESSAGE_TOO_LARGE:
            raise
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, e.message) from e.with_traceback(None)


def _record_errors(records: Buffer, batch: BatchMeta, rules: CheckRules, now_ms: int) -> RecordError | None:
    """Name the records that are refused because of key or timestamp. Their structure is already checked."""
    bounds = earliest, latest = _time_bounds(rules, now_ms)
    stamped = batch.attributes & LOG_APPEND_TIME_FLAG
    no_keys, untimely, first = kernel.find_outsiders(
        records,
        batch.record_count,
        batch.base_timestamp,
        *((_MIN_INT64, _MAX_INT64) if stamped else bounds),
        rules.compacted,
        MAX_RECORD_ERRORS,
    )
    errors = {
        index: _NO_KEY if finding == kernel.NO_KEY else _out_of_range(index, timestamp, earliest, latest)
        for finding, index, _, timestamp in first
    }
    if stamped:
        reason = _why_stamp_is_refused(batch.max_timestamp, rules, earliest, latest)
        if reason is not None:  # holds for all records, except those already refused for a missing key
            untimely = batch.record_count - no_keys
            for index in range(min(batch.record_count, MAX_RECORD_ERRORS)):
                errors.setdefault(index, reason.format(index=index))
    if not errors:
        return None
    named = sorted(errors.items())[:MAX_RECORD_ERRORS]
    if untimely:
        return RecordError(
            ErrorCode.INVALID_TIMESTAMP,
            "One or more records have been rejected due to invalid timestamp",
            named,
        )
    return RecordError(
        ErrorCode.INVALID_RECORD,
        f"One or more records have been rejected due to {no_keys} record errors in total, and only "
        f"showing the first three errors at most: {named[:3]}",
        named,
    )


def _why_stamp_is_refused(stamp: int, rules: CheckRules, earliest: int, latest: int) -> str | None:
    """Why the timestamp of a batch with LogAppendTime is refused, or None."""
    if rules.timestamp_type == LOG_APPEND_TIME or stamp == NO_TIMESTAMP:
        return "Producer should not set timestamp type to LogAppendTime."
    return None if earliest <= stamp <= latest else _out_of_range("{index}", stamp, earliest, latest)


def _out_of_range(index: int | str, timestamp: int, earliest: int, latest: int) -> str:
    return (
        f"Timestamp {timestamp} of message with offset {index} is out of range. The timestamp should "
        f"be within [{earliest}, {latest}]"
    )


def _as_appended(
    data: Buffer, batch: BatchMeta, records: Buffer | None, largest: int, rules: CheckRules, now_ms: int
) -> tuple[bytearray | memoryview, BatchMeta]:
    """The batch as it goes into the log, in a writable buffer of its own: codec and timestamps are final."""
    target = rules.target_codec
    buffer: bytearray | memoryview
    if target is not None and target != batch.compression and not batch.attributes & CONTROL_FLAG:
        if records is None:
            records = records_of(data, batch)
        buffer, batch = _recompress(batch, records, target, rules.compression_level)
        _check_size(batch.size, rules)
    else:
        view = memoryview(data)[batch.position : batch.position + batch.size]
        buffer = bytearray(view) if view.readonly else view
        if batch.position:
            batch = batch._replace(position=0)
    if rules.timestamp_type == LOG_APPEND_TIME:
        batch = set_max_timestamp(buffer, batch, LOG_APPEND_TIME, now_ms)
    elif batch.max_timestamp != largest or batch.attributes & LOG_APPEND_TIME_FLAG:
        batch = set_max_timestamp(buffer, batch, CREATE_TIME, largest)
    return buffer, batch


def _recompress(
    batch: BatchMeta, records: Buffer, codec: int, level: int | None
) -> tuple[bytearray, BatchMeta]:
    buffer = bytearray(HEADER_BYTES)
    buffer += compression.compress(codec, records, level)
    pack_header(
        buffer,
        base_offset=batch.base_offset,
        leader_epoch=batch.partition_leader_epoch,
        attributes=batch.attributes & ~CODEC_MASK | codec,
        last_offset_delta=batch.last_offset_delta,
        base_timestamp=batch.base_timestamp,
        max_timestamp=batch.max_timestamp,
        producer_id=batch.producer_id,
        producer_epoch=batch.producer_epoch,
        base_sequence=batch.base_sequence,
        record_count=batch.record_count,
    )
    return buffer, read_header(buffer, 0)


# Decompressing this many bytes takes about as long as a round trip to another thread.
_HEAVY_BYTES: Final = {
    compression.NONE: 4 << 20,
    compression.GZIP: 1 << 20,  # its bound is far above the real size
    compression.SNAPPY: 512 << 10,
    compression.LZ4: 512 << 10,
    compression.ZSTD: 128 << 10,
}
_HEAVY_RECOMPRESSION_BYTES: Final = 1 << 10


def is_heavy(buf: Buffer, target_codec: int | None = None) -> bool:
    """Whether checking a set takes too long for the event loop, judged by its headers."""
    if len(buf) < HEADER_BYTES:
        return False
    codec = buf[22] & CODEC_MASK
    if target_codec is not None and target_codec != codec and len(buf) > _HEAVY_RECOMPRESSION_BYTES:
        return True
    if codec == compression.NONE:
        return len(buf) > _HEAVY_BYTES[codec]
    return compression.bound(codec, memoryview(buf)[HEADER_BYTES:]) > _HEAVY_BYTES.get(codec, 0)
