"""Batches read as they were built, through every codec; headers name what stands in the bytes."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records import kernel
from odradek.records.batch import (
    LOG_APPEND_TIME,
    BatchMeta,
    Record,
    RecordTuple,
    build_batch,
    iter_batches,
    iter_records,
)
from odradek.records.header import crc_matches, set_max_timestamp

ROWS: list[RecordTuple] = [
    (1_700_000_000_005, b"key", b"value", (("trace", b"1"), ("empty", b""), ("none", None))),
    (1_700_000_000_001, None, b"", ()),
    (-1, b"", None, (("é", b"x"),)),
]


@pytest.mark.parametrize("codec", range(5))
def test_records_read_as_they_were_built(codec: int) -> None:
    data = build_batch(ROWS, base_offset=40, codec=codec)
    (batch,) = iter_batches(data)
    assert batch.compression == codec
    assert list(iter_records(data, batch)) == [
        Record(40 + i, timestamp, key, value, headers)
        for i, (timestamp, key, value, headers) in enumerate(ROWS)
    ]


def test_the_header_names_every_field() -> None:
    data = build_batch(
        ROWS,
        base_offset=40,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        leader_epoch=8,
        transactional=True,
        control=True,
        timestamp_type=LOG_APPEND_TIME,
    )
    (batch,) = iter_batches(b"\x00" * 3 + data, 3)
    assert batch == BatchMeta(
        position=3,
        size=len(data),
        base_offset=40,
        last_offset_delta=2,
        partition_leader_epoch=8,
        attributes=0x38,
        base_timestamp=1_700_000_000_005,
        max_timestamp=1_700_000_000_005,
        producer_id=5,
        producer_epoch=6,
        base_sequence=7,
        record_count=3,
        crc=batch.crc,
        magic=2,
    )
    assert (batch.last_offset, batch.last_sequence) == (42, 9)
    assert batch.is_transactional
    assert batch.is_control
    assert not batch.has_delete_horizon
    assert batch.timestamp_type == LOG_APPEND_TIME


def test_sequences_wrap_at_the_largest_int32() -> None:
    (batch,) = iter_batches(build_batch(ROWS, producer_id=1, producer_epoch=0, base_sequence=0x7FFFFFFE))
    assert batch.last_sequence == 0
    (batch,) = iter_batches(build_batch(ROWS))
    assert batch.last_sequence == -1


def test_a_leaders_time_is_that_of_every_record() -> None:
    data = build_batch(ROWS)
    (batch,) = iter_batches(data)
    stamped = set_max_timestamp(data, batch, LOG_APPEND_TIME, 99)
    assert list(iter_batches(data)) == [stamped]
    assert crc_matches(data, stamped)
    assert [record.timestamp for record in iter_records(data, stamped)] == [99, 99, 99]


def test_timestamps_wrap_as_in_java() -> None:
    rows: list[RecordTuple] = [
        (-1, None, None, ()),
        ((1 << 63) - 1, None, None, ()),
        (-(1 << 63), None, None, ()),
    ]
    data = build_batch(rows)
    (batch,) = iter_batches(data)
    assert [record.timestamp for record in iter_records(data, batch)] == [row[0] for row in rows]


def test_batches_stop_before_a_partial_one() -> None:
    data = bytes(build_batch(ROWS))
    whole = list(iter_batches(data * 2))
    assert [batch.position for batch in whole] == [0, len(data)]
    for cut in (1, 20, len(data) - 1):
        assert list(iter_batches((data * 3)[: 2 * len(data) + cut])) == whole
    assert list(iter_batches(b"")) == []


@pytest.mark.parametrize(("position", "value"), [(16, 3), (8, 0xFF), (11, 40)])
def test_a_length_or_a_magic_that_cannot_be_is_corrupt(position: int, value: int) -> None:
    data = build_batch(ROWS)
    data[8:11] = bytes(3) if position == 11 else data[8:11]
    data[position] = value
    with pytest.raises(KafkaError) as caught:
        list(iter_batches(data))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_that_holds_other_records_than_it_claims_is_corrupt() -> None:
    data = build_batch(ROWS)
    data[60] = 4
    (batch,) = iter_batches(data)
    with pytest.raises(KafkaError) as caught:
        list(iter_records(data, batch))
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_batch_emptied_by_compaction_has_no_records() -> None:
    data = build_batch(ROWS)[:61]
    data[8:12] = (49).to_bytes(4, "big")
    data[57:61] = bytes(4)
    (batch,) = iter_batches(data)
    assert batch.last_offset == 2
    assert list(iter_records(data, batch)) == []


def test_a_header_name_that_is_not_utf8_reads_as_in_java() -> None:
    data = build_batch([(0, None, None, (("ab", b""),))])
    at = data.index(b"ab")
    data[at : at + 2] = b"a\xff"
    (batch,) = iter_batches(data)
    (record,) = iter_records(data, batch)
    assert record.headers == (("a\ufffd", b""),)


def test_a_scan_tells_why_it_ended() -> None:
    data = bytes(build_batch(ROWS))
    broken = bytearray(data)
    broken[-1] ^= 1
    legacy = bytearray(data)
    legacy[16] = 1
    for tail, why in [
        (b"", kernel.OK),
        (data[:-1], kernel.PARTIAL),
        (bytes(broken), kernel.BAD_CRC),
        (bytes(30), kernel.BAD_LENGTH),
        (bytes(legacy), kernel.LEGACY),
    ]:
        metas, end, found = kernel.scan_segment(data * 2 + tail, BatchMeta)
        assert (len(metas), end, found) == (2, 2 * len(data), why)
        metas, end, found = kernel.scan_segment(data * 2 + tail, BatchMeta, len(data))
        assert (len(metas), end, found) == (1, 2 * len(data), why)
        assert metas[0].position == len(data)
