"""Whatever a producer sends, the check answers with a Kafka error or with batches that can be read back."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.records import compression
from odradek.records.batch import LOG_APPEND_TIME, build_batch, iter_batches, iter_records
from odradek.records.check import CheckedRecords, CheckRules, check_produce
from odradek.records.header import HEADER_BYTES, crc_matches
from tests.property.strategies import DAMAGES, RECORDS, batches, damaged_batches, with_crc

NOW_MS = 1_700_000_000_000
REFUSALS = {
    ErrorCode.CORRUPT_MESSAGE,
    ErrorCode.INVALID_RECORD,
    ErrorCode.INVALID_TIMESTAMP,
    ErrorCode.MESSAGE_TOO_LARGE,
    ErrorCode.UNSUPPORTED_COMPRESSION_TYPE,
    ErrorCode.UNKNOWN_SERVER_ERROR,
}
RULES = st.builds(
    CheckRules,
    max_message_bytes=st.sampled_from([300, 1 << 20]),
    timestamp_type=st.sampled_from([0, LOG_APPEND_TIME]),
    timestamp_before_max_ms=st.sampled_from([5_000, (1 << 63) - 1]),
    timestamp_after_max_ms=st.sampled_from([5_000, (1 << 63) - 1]),
    compacted=st.booleans(),
    target_codec=st.sampled_from([None, None, 0, 1, 2, 3, 4]),
    compression_level=st.none(),
    decompress_limit_bytes=st.just(1 << 20),
)


def judge(data: bytes, rules: CheckRules) -> CheckedRecords | KafkaError:
    """Check one set and hold the answer to what every answer must fulfil."""
    (result,) = check_produce([memoryview(bytearray(data))], rules, NOW_MS)
    if isinstance(result, KafkaError):
        assert result.code in REFUSALS
        assert not isinstance(result, RecordError) or result.records
        return result
    assert list(iter_batches(result.buffer)) == result.batches
    (batch,) = result.batches
    assert len(result.buffer) == batch.size <= rules.max_message_bytes
    assert crc_matches(result.buffer, batch)
    assert batch.timestamp_type == rules.timestamp_type
    assert rules.target_codec in (None, batch.compression)
    records = list(iter_records(result.buffer, batch))
    assert [record.offset for record in records] == list(range(batch.base_offset, batch.last_offset + 1))
    assert not rules.compacted or all(record.key is not None for record in records)
    if rules.timestamp_type == LOG_APPEND_TIME:
        assert batch.max_timestamp == NOW_MS
    else:
        assert batch.max_timestamp == max(-1, *(record.timestamp for record in records))
    return result


@settings(max_examples=600, deadline=None)
@given(st.one_of(batches(), damaged_batches(), st.binary(max_size=200)), RULES)
def test_every_set_is_refused_by_name_or_can_be_read(data: bytes, rules: CheckRules) -> None:
    judge(data, rules)


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.sampled_from(range(5)), RULES, st.integers(0, 1 << 32))
def test_damage_inside_a_sealed_batch_never_passes_unread(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: int,
    rules: CheckRules,
    seed: int,
) -> None:
    """Length and CRC are right, so that the damage is met by the codecs and the record walk."""
    rng = random.Random(seed)
    sound = build_batch(rows, codec=codec)
    for _ in range(40):
        batch = bytearray(sound)
        body = bytearray(batch[HEADER_BYTES:])
        rng.choice(DAMAGES[:5])(body, rng)
        judge(with_crc(batch[:HEADER_BYTES] + body), rules)


@settings(max_examples=150, deadline=None)
@given(RECORDS, st.sampled_from(range(1, 5)), st.integers(0, 1 << 32))
def test_damage_inside_a_compressed_payload_is_met_by_the_record_walk(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: int,
    seed: int,
) -> None:
    rng = random.Random(seed)
    sound = build_batch(rows)
    sound[22] = codec
    for _ in range(20):
        body = bytearray(sound[HEADER_BYTES:])
        rng.choice(DAMAGES[:5])(body, rng)
        packed = compression.compress(codec, body)
        judge(with_crc(sound[:HEADER_BYTES] + packed), CheckRules())


@settings(max_examples=300, deadline=None)
@given(RECORDS, st.sampled_from(range(5)), RULES)
def test_a_sound_batch_keeps_its_records_through_recompression(
    rows: list[tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]],
    codec: int,
    rules: CheckRules,
) -> None:
    result = judge(bytes(build_batch(rows, codec=codec)), rules._replace(max_message_bytes=1 << 20))
    if isinstance(result, CheckedRecords):
        read = [(r.key, r.value, r.headers) for r in iter_records(result.buffer, result.batches[0])]
        assert read == [(key, value, headers) for _, key, value, headers in rows]
    else:
        assert isinstance(result, RecordError)


@settings(max_examples=300, deadline=None)
@given(st.sampled_from(range(1, 5)), st.binary(max_size=300), st.binary(max_size=40), st.integers(0, 1 << 32))
def test_codecs_survive_any_bytes(codec: int, data: bytes, junk: bytes, seed: int) -> None:
    rng = random.Random(seed)
    packed = bytearray(compression.compress(codec, data))
    assert compression.decompress(codec, packed) == data
    for _ in range(10):
        damaged = bytearray(packed)
        rng.choice(DAMAGES[:5])(damaged, rng)
        for candidate in (bytes(damaged), junk, bytes(packed[:12]) + junk):
            assert decompressed_size(codec, candidate, 1 << 16) <= 1 << 16


def decompressed_size(codec: int, data: bytes, limit_bytes: int) -> int:
    try:
        return len(compression.decompress(codec, data, limit_bytes))
    except KafkaError as e:
        if e.code not in (ErrorCode.CORRUPT_MESSAGE, ErrorCode.MESSAGE_TOO_LARGE):
            raise
        return 0
