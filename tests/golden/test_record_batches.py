"""Every batch Apache Kafka wrote is read as its consumer read it, and written again byte for byte."""

import zlib
from typing import Any

import pytest

from odradek.records.batch import BatchMeta, Record, build_batch, iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key, parse_marker
from odradek.records.header import crc_matches
from odradek.records.kernel import OK, scan_segment
from tests.golden import loader

READ_TOPICS = [
    "codec-none",
    "codec-gzip",
    "codec-snappy",
    "codec-lz4",
    "codec-zstd",
    "append-time",
    "segments",
    "compacted",
    "ctp-out",
]


def batches_of(topic_partition: str) -> list[tuple[bytes, BatchMeta]]:
    return [
        (segment, batch)
        for segment in loader.segments("clean", topic_partition)
        for batch in iter_batches(segment)
    ]


def as_consumed(record: Record, batch: BatchMeta, partition: int) -> dict[str, Any]:
    """A record in the shape of expected.json: librdkafka's timestamp types, long values as length and CRC."""
    value = record.value
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp": [batch.timestamp_type + 1, record.timestamp],
        "key": None if record.key is None else record.key.decode(),
        "value": None
        if value is None
        else value.decode()
        if len(value) < 100
        else {"len": len(value), "crc32": zlib.crc32(value)},
        "headers": [[name, None if v is None else v.decode()] for name, v in record.headers] or None,
    }


def consumed(topic_partition: str) -> list[dict[str, Any]]:
    partition = int(topic_partition.rpartition("-")[2])
    return [
        as_consumed(record, batch, partition)
        for segment, batch in batches_of(topic_partition)
        if not batch.is_control
        for record in iter_records(segment, batch)
    ]


@pytest.mark.parametrize("topic", READ_TOPICS)
def test_every_codec_reads_as_the_consumer_read_it(topic: str) -> None:
    read = consumed(f"{topic}-0")
    first_read = loader.expected()["topics"][topic]["read_uncommitted"]
    # The log cleaner ran between the consumer's pass and the copy: what is left must be what was read.
    if topic == "compacted":
        assert read
        assert all(record in first_read for record in read)
    else:
        assert read == first_read


def test_transactional_batches_read_with_their_markers() -> None:
    read = consumed("txn-0") + consumed("txn-1")
    expected = loader.expected()["topics"]["txn"]["read_uncommitted"]
    assert sorted(read, key=lambda r: (r["partition"], r["offset"])) == sorted(
        expected, key=lambda r: (r["partition"], r["offset"])
    )
    markers = [
        parse_marker(record.key, record.value)
        for segment, batch in batches_of("txn-0")
        if batch.is_control
        for record in iter_records(segment, batch)
    ]
    assert {marker.committed for marker in markers} == {True, False}


def test_the_metadata_log_holds_known_control_records() -> None:
    kinds = {
        parse_control_key(record.key)
        for segment, batch in batches_of("__cluster_metadata-0")
        if batch.is_control
        for record in iter_records(segment, batch)
    }
    assert ControlType.LEADER_CHANGE in kinds
    assert ControlType.UNKNOWN not in kinds


def test_every_checksum_matches() -> None:
    for name, segment in loader.files("clean", suffix=".log").items():
        metas, end, why = scan_segment(segment, BatchMeta)
        assert (end, why) == (len(segment), OK), name
        assert metas == list(iter_batches(segment))
        assert all(crc_matches(segment, batch) for batch in metas)


def test_uncompressed_batches_are_built_byte_for_byte() -> None:
    compared = 0
    for segment in loader.files("clean", suffix=".log").values():
        for batch in iter_batches(segment):
            records = list(iter_records(segment, batch))
            contiguous = [r.offset for r in records] == list(range(batch.base_offset, batch.last_offset + 1))
            if batch.compression or batch.has_delete_horizon or batch.timestamp_type or not contiguous:
                continue
            built = build_batch(
                [(r.timestamp, r.key, r.value, r.headers) for r in records],
                base_offset=batch.base_offset,
                producer_id=batch.producer_id,
                producer_epoch=batch.producer_epoch,
                base_sequence=batch.base_sequence,
                leader_epoch=batch.partition_leader_epoch,
                transactional=batch.is_transactional,
                control=batch.is_control,
            )
            assert built == segment[batch.position : batch.position + batch.size]
            compared += 1
    assert compared > 300
