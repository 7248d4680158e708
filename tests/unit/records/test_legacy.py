"""Message sets of magic 0 and 1 are read, plain and compressed, as old segments hold them."""

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records import compression
from odradek.records.batch import Record, iter_batches, iter_records
from odradek.records.header import crc_matches
from odradek.records.kernel import BAD_LENGTH
from odradek.records.scanning import scan
from tests.unit.records.produce_cases import legacy_entry


def read(data: bytes) -> list[Record]:
    found = []
    for batch in iter_batches(data):
        assert crc_matches(data, batch)
        found += list(iter_records(data, batch))
    return found


def test_plain_entries_of_both_magics() -> None:
    data = legacy_entry(0, b"old", offset=7) + legacy_entry(1, b"newer", offset=8, timestamp=99)
    assert read(data) == [Record(7, -1, None, b"old"), Record(8, 99, None, b"newer")]
    assert [(b.magic, b.base_offset, b.last_offset, b.record_count) for b in iter_batches(data)] == [
        (0, 7, 7, 1),
        (1, 8, 8, 1),
    ]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_inner_offsets_of_magic_1_count_back_from_the_wrapper(codec: int) -> None:
    inner = b"".join(legacy_entry(1, b"v%d" % i, offset=i, timestamp=50 + i) for i in range(3))
    wrapper = legacy_entry(1, compression.compress(codec, inner), offset=42, attributes=codec, timestamp=52)
    assert read(wrapper) == [Record(40 + i, 50 + i, None, b"v%d" % i) for i in range(3)]
    stamped = legacy_entry(
        1, compression.compress(codec, inner), offset=42, attributes=codec | 8, timestamp=77
    )
    assert [record.timestamp for record in read(stamped)] == [77, 77, 77]


@pytest.mark.parametrize("codec", [1, 2, 3])
def test_inner_offsets_of_magic_0_are_their_own(codec: int) -> None:
    inner = b"".join(legacy_entry(0, b"v%d" % i, offset=40 + i) for i in range(3))
    packed = bytearray(compression.compress(codec, inner))
    if codec == compression.LZ4:
        packed[6] ^= 0xFF  # clients of that time computed the header checksum over other bytes
    wrapper = legacy_entry(0, bytes(packed), offset=42, attributes=codec)
    assert read(wrapper) == [Record(40 + i, -1, None, b"v%d" % i) for i in range(3)]


def test_null_and_empty_fields() -> None:
    entry = bytearray(legacy_entry(1, b"", timestamp=5))
    assert read(bytes(entry)) == [Record(0, 5, None, b"")]


def test_damaged_entries_are_corrupt() -> None:
    inner = legacy_entry(1, b"v")
    for value in (compression.compress(1, inner[:-1]), compression.compress(1, inner + b"x"), b"junk"):
        with pytest.raises(KafkaError) as caught:
            list(iter_records(data := legacy_entry(1, value, attributes=1), next(iter_batches(data))))
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
    entry = bytearray(legacy_entry(0, b"value"))
    entry[-9:-5] = (100).to_bytes(4, "big")
    with pytest.raises(KafkaError):
        list(iter_records(entry, next(iter_batches(entry))))


def test_a_wrapper_around_magic_2_is_corrupt() -> None:
    inner = bytearray(legacy_entry(1, b"v"))
    inner[16] = 2
    data = legacy_entry(1, compression.compress(1, inner), attributes=1)
    with pytest.raises(KafkaError):
        list(iter_records(data, next(iter_batches(data))))


def inside(inner: bytes, codec: int = 1, offset: int = 42) -> bytes:
    return legacy_entry(1, compression.compress(codec, inner), offset=offset, attributes=codec)


@pytest.mark.parametrize(
    "data",
    [
        inside(b""),
        inside(legacy_entry(1, b"v"), codec=compression.ZSTD),
        inside(legacy_entry(1, b"v", attributes=1)),
        inside(legacy_entry(1, b"v", offset=43)),
        inside(legacy_entry(0, b"v").replace(b"\x00\x00\xff", b"\x02\x00\xff")),
    ],
    ids=["no record", "zstd", "compressed twice", "an offset beyond the wrapper's", "another magic"],
)
def test_a_wrapper_around_what_no_client_wrote_is_corrupt(data: bytes) -> None:
    with pytest.raises(KafkaError) as caught:
        read(data)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def test_a_wrapper_may_have_the_offset_of_its_only_record() -> None:
    assert [record.offset for record in read(inside(legacy_entry(1, b"v", offset=42)))] == [42]
    assert [record.offset for record in read(inside(legacy_entry(1, b"v", offset=3), offset=0))] == [3]


def test_the_leaders_time_is_marked_in_magic_1_only() -> None:
    for magic, marked in ((0, False), (1, True)):
        (batch,) = iter_batches(legacy_entry(magic, b"v", attributes=8))
        assert bool(batch.timestamp_type) is marked


def test_a_scan_ends_at_an_entry_too_short_for_its_magic() -> None:
    good, short = legacy_entry(1, b"v"), bytearray(legacy_entry(0, b""))
    short[16] = 1
    batches, end, finding = scan(good + bytes(short))
    assert (len(batches), end, finding) == (1, len(good), BAD_LENGTH)
