"""What the check does beyond Apache's table: several sets at once, heavy work."""

import random
import shutil

import pytest

from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.records import compression, kernel
from odradek.records.batch import LOG_APPEND_TIME, RecordTuple, build_batch, iter_batches, iter_records
from odradek.records.check import MAX_RECORD_ERRORS, CheckedRecords, CheckRules, check_produce, is_heavy
from odradek.records.header import crc_matches

NOW_MS = 1_700_000_000_000
ROWS: list[RecordTuple] = [(NOW_MS + i, b"k", b"v%d" % i, ()) for i in range(3)]


def accepted(result: CheckedRecords | KafkaError) -> CheckedRecords:
    assert isinstance(result, CheckedRecords), result
    return result


def test_each_set_is_judged_by_itself() -> None:
    good = build_batch(ROWS)
    bad = bytearray(good)
    bad[-1] ^= 1
    results = check_produce(
        [memoryview(good), memoryview(bad), b"", build_batch(ROWS, codec=1)], CheckRules(), NOW_MS
    )
    assert [isinstance(result, CheckedRecords) for result in results] == [True, False, False, True]
    assert [r.code for r in results if isinstance(r, KafkaError)] == [
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.INVALID_RECORD,
    ]
    assert check_produce([], CheckRules(), NOW_MS) == []


def test_a_writable_set_is_not_copied_and_a_read_only_one_is() -> None:
    data = build_batch(ROWS)
    for given in (data, memoryview(data)):
        (result,) = check_produce([given], CheckRules(), NOW_MS)
        accepted(result).buffer[7] = 17
        assert next(iter_batches(data)).base_offset == 17
        data[7] = 0
    sent = bytes(data)
    for given in (sent, memoryview(sent)):
        (result,) = check_produce([given], CheckRules(), NOW_MS)
        accepted(result).buffer[7] = 17
        assert next(iter_batches(sent)).base_offset == 0
        assert next(iter_batches(accepted(result).buffer)).base_offset == 17


def test_a_marker_is_refused_at_any_offset() -> None:
    rows: list[RecordTuple] = [(NOW_MS, b"\x00\x00\x00\x01", bytes(6), ())]
    fields = {"producer_id": 1, "producer_epoch": 2, "transactional": True, "control": True}
    for base_offset, reason in ((0, "control records"), (5, "baseOffset")):
        (refused,) = check_produce(
            [build_batch(rows, base_offset=base_offset, **fields)], CheckRules(), NOW_MS
        )
        assert isinstance(refused, KafkaError)
        assert refused.code == ErrorCode.INVALID_RECORD and reason in str(refused.message)


def test_a_set_without_a_length_is_refused() -> None:
    damaged = build_batch(ROWS)
    damaged[8:12] = bytes(4)
    (result,) = check_produce([damaged], CheckRules(), NOW_MS)
    assert isinstance(result, KafkaError)
    assert result.code == ErrorCode.CORRUPT_MESSAGE


def test_the_leaders_time_replaces_the_producers() -> None:
    rules = CheckRules(timestamp_type=LOG_APPEND_TIME, timestamp_after_max_ms=0, timestamp_before_max_ms=0)
    for codec in range(5):
        (result,) = check_produce([build_batch(ROWS, codec=codec)], rules, NOW_MS + 77)
        checked = accepted(result)
        (batch,) = checked.batches
        assert crc_matches(checked.buffer, batch)
        assert {record.timestamp for record in iter_records(checked.buffer, batch)} == {NOW_MS + 77}


@pytest.mark.parametrize("kind", [bytes, bytearray])
def test_a_batch_may_be_as_large_as_the_topic_allows_and_no_larger(
    kind: type[bytes] | type[bytearray],
) -> None:
    data = kind(build_batch(ROWS))
    (result,) = check_produce([data], CheckRules(max_message_bytes=len(data)), NOW_MS)
    assert isinstance(result, CheckedRecords)
    (result,) = check_produce([data], CheckRules(max_message_bytes=len(data) - 1), NOW_MS)
    assert isinstance(result, KafkaError)
    assert result.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize(("at", "value", "what"), [(16, 3, "magic"), (11, 3, "length")])
def test_an_unreadable_batch_is_refused_for_what_cannot_be_in_it(at: int, value: int, what: str) -> None:
    data = build_batch(ROWS)
    data[at] = value
    (result,) = check_produce([data], CheckRules(), NOW_MS)
    assert isinstance(result, KafkaError)
    assert result.code == ErrorCode.CORRUPT_MESSAGE
    assert what in str(result.message)


def test_a_leaders_stamp_may_be_at_the_bounds() -> None:
    rules = CheckRules(timestamp_before_max_ms=5, timestamp_after_max_ms=5)
    for shift, good in [(-5, True), (5, True), (-6, False), (6, False)]:
        data = build_batch([(NOW_MS + shift, None, b"v", ())], timestamp_type=LOG_APPEND_TIME)
        (result,) = check_produce([data], rules, NOW_MS)
        assert isinstance(result, CheckedRecords) is good


def test_records_that_all_lack_their_key_are_not_refused_for_their_time() -> None:
    rows: list[RecordTuple] = [(NOW_MS - 10, None, b"v", ())] * 5
    data = build_batch(rows, timestamp_type=LOG_APPEND_TIME)
    (result,) = check_produce([data], CheckRules(timestamp_before_max_ms=5, compacted=True), NOW_MS)
    assert isinstance(result, RecordError)
    assert result.code == ErrorCode.INVALID_RECORD
    assert str(result.message).count("without key") == 3, "the first three are shown"


def test_every_refused_record_is_named() -> None:
    rows: list[RecordTuple] = [(NOW_MS - 10 * (i % 2), None, b"v", ()) for i in range(6)]
    (result,) = check_produce([build_batch(rows)], CheckRules(timestamp_before_max_ms=5), NOW_MS)
    assert isinstance(result, RecordError)
    assert result.code == ErrorCode.INVALID_TIMESTAMP
    assert [index for index, _ in result.records] == [1, 3, 5]
    assert all(str(NOW_MS - 10) in reason for _, reason in result.records)


def test_only_the_first_of_many_refused_records_are_named_and_all_are_judged() -> None:
    late = MAX_RECORD_ERRORS + 40
    rows: list[RecordTuple] = [(NOW_MS, None, b"v", ())] * late + [(NOW_MS - 10, b"k", b"v", ())]
    for codec in (compression.NONE, compression.ZSTD):
        rules = CheckRules(timestamp_before_max_ms=5, compacted=True)
        (result,) = check_produce([build_batch(rows, codec=codec)], rules, NOW_MS)
        assert isinstance(result, RecordError)
        assert result.code == ErrorCode.INVALID_TIMESTAMP, "of the last record, which is not named"
        assert [index for index, _ in result.records] == list(range(MAX_RECORD_ERRORS))
        (result,) = check_produce([build_batch(rows[:-1], codec=codec)], rules, NOW_MS)
        assert isinstance(result, RecordError)
        assert result.code == ErrorCode.INVALID_RECORD
        assert f"due to {late} record errors in total" in str(result.message)
        assert len(result.records) == MAX_RECORD_ERRORS


@pytest.mark.parametrize("stamp", [NOW_MS - 10, -1])
def test_a_leaders_stamp_is_refused_for_every_record_that_has_its_key(stamp: int) -> None:
    rows: list[RecordTuple] = [(stamp, None if i == 1 else b"k", b"v", ()) for i in range(200)]
    data = build_batch(rows, timestamp_type=LOG_APPEND_TIME)
    rules = CheckRules(timestamp_before_max_ms=5, compacted=True)
    (result,) = check_produce([data], rules, NOW_MS)
    assert isinstance(result, RecordError)
    assert result.code == ErrorCode.INVALID_TIMESTAMP
    reasons = dict(result.records)
    assert list(reasons) == list(range(MAX_RECORD_ERRORS))
    assert "without key" in reasons[1]
    expected = "should not set timestamp type" if stamp < 0 else "offset 2 is out of range"
    assert expected in reasons[2]


def test_time_bounds_are_inclusive_and_do_not_overflow() -> None:
    rules = CheckRules(timestamp_before_max_ms=5, timestamp_after_max_ms=5)
    for shift, good in [(-5, True), (5, True), (-6, False), (6, False)]:
        (result,) = check_produce([build_batch([(NOW_MS + shift, None, b"v", ())])], rules, NOW_MS)
        assert isinstance(result, CheckedRecords) is good
    widest = CheckRules(timestamp_before_max_ms=(1 << 63) - 1, timestamp_after_max_ms=(1 << 63) - 1)
    (result,) = check_produce([build_batch([((1 << 63) - 1, None, b"v", ())])], widest, NOW_MS)
    assert isinstance(result, CheckedRecords)


def test_a_batch_that_grows_beyond_the_decompression_limit_is_too_large() -> None:
    data = build_batch([(NOW_MS, None, bytes(5_000_000), ())], codec=1)
    assert len(data) < 10_000
    (result,) = check_produce([data], CheckRules(decompress_limit_bytes=1_000_000), NOW_MS)
    assert isinstance(result, KafkaError)
    assert result.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("level", [1, 9])
def test_recompression_takes_the_topics_level(level: int) -> None:
    rows: list[RecordTuple] = [(NOW_MS, None, b"%d" % (i * 7919) * 20, ()) for i in range(200)]
    rules = CheckRules(target_codec=compression.GZIP, compression_level=level)
    (result,) = check_produce([build_batch(rows)], rules, NOW_MS)
    expected = build_batch(rows, codec=compression.GZIP, level=level)
    assert bytes(accepted(result).buffer) == bytes(expected)


@pytest.mark.parametrize(
    ("codec", "light", "heavy"),
    [
        (compression.NONE, 1 << 20, 5 << 20),
        (compression.GZIP, 1, 3_000),
        (compression.SNAPPY, 100_000, 600_000),
        (compression.LZ4, 100_000, 600_000),
        (compression.ZSTD, 50_000, 200_000),
    ],
)
def test_what_takes_long_to_decompress_is_heavy(codec: int, light: int, heavy: int) -> None:
    def batch(size: int) -> bytearray:
        return build_batch([(NOW_MS, None, random.Random(size).randbytes(size), ())], codec=codec)

    assert not is_heavy(batch(light))
    assert is_heavy(batch(heavy))
    assert is_heavy(batch(3_000), target_codec=(codec + 1) % 5)


def test_a_small_bomb_is_heavy_and_what_is_refused_at_once_is_not() -> None:
    for codec in (compression.GZIP, compression.LZ4, compression.ZSTD):
        bomb = build_batch([(NOW_MS, None, bytes(10_000_000), ())], codec=codec)
        assert len(bomb) < 50_000
        assert is_heavy(bomb)
    damaged = build_batch([(NOW_MS, None, bytes(10_000_000), ())], codec=compression.ZSTD)
    damaged[61] ^= 0xFF
    unknown = build_batch(ROWS)
    unknown[22] = 7
    for data in (b"", b"\xff" * 30, damaged, unknown):
        assert not is_heavy(data)


@pytest.mark.skipif(
    shutil.which("cc") is None, reason="no C compiler: the Python kernel is what there can be"
)
def test_the_native_kernel_is_in_use() -> None:
    assert kernel.NATIVE, "the C extension did not build: pip install -e ."
