"""What every record kernel says of batches and records at the edges: the smallest, the empty, the cut."""

from types import ModuleType
from typing import Any

import pytest

from odradek.records.batch import HEADER_BYTES, BatchMeta, RecordTuple, build_batch
from odradek.records.kernel import crc32c
from odradek.records.twins import kernel as twin
from odradek.records.twins.kernel import (
    BAD_LENGTH,
    BAD_MAGIC,
    LEGACY,
    MALFORMED,
    NO_KEY,
    OK,
    PARTIAL,
)
from tests.unit.records.produce_cases import legacy_entry

KERNELS: list[ModuleType] = [twin]
try:
    from odradek.records import _kernel

    KERNELS.append(_kernel)
except ImportError:
    pass

pytestmark = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__.rsplit(".")[-1])

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ROW: RecordTuple = (1_700_000_000_000, b"k", b"v", ())


def header(length: int, magic: int) -> bytes:
    return bytes(8) + length.to_bytes(4, "big", signed=True) + bytes(4) + bytes([magic])


def validated(kernel: Any, data: bytes | bytearray, need_keys: bool = False, plain_bytes: int = -1) -> Any:
    (found,) = kernel.validate([data], BatchMeta, LEAST, MOST, need_keys, plain_bytes)
    return found


# ---- batches ----


@pytest.mark.parametrize(
    ("data", "finding"),
    [
        (header(13, 2)[:16], PARTIAL),
        (header(13, 2), BAD_LENGTH),
        (header(-1, 2), BAD_LENGTH),
        (header(14, 3), BAD_MAGIC),
        (header(14, 1), PARTIAL),
        (header(14, 1) + bytes(9), LEGACY),
        (header(48, 2) + bytes(43), BAD_LENGTH),
        (header(49, 2) + bytes(43), PARTIAL),
    ],
)
def test_a_place_is_judged_by_its_length_and_its_magic(kernel: Any, data: bytes, finding: int) -> None:
    before = bytes(build_batch([ROW]))
    assert kernel.scan_segment(data, BatchMeta) == ([], 0, finding)
    metas, position, found = kernel.scan_segment(before + data, BatchMeta)
    assert (len(metas), position, found) == (1, len(before), finding)


def test_a_header_alone_is_the_smallest_batch(kernel: Any) -> None:
    data = build_batch([ROW])[:HEADER_BYTES]
    data[8:12] = (HEADER_BYTES - 12).to_bytes(4, "big")
    data[57:61] = bytes(4)
    data[17:21] = crc32c(memoryview(data)[21:]).to_bytes(4, "big")
    metas, position, finding = kernel.scan_segment(bytes(data), BatchMeta)
    assert ([meta.size for meta in metas], position, finding) == ([HEADER_BYTES], HEADER_BYTES, OK)


def test_validation_passes_over_entries_of_old_magics(kernel: Any) -> None:
    batch = bytes(build_batch([ROW]))
    old = legacy_entry(1, b"old")
    found = validated(kernel, old + batch + old)
    assert [row[:3] for row in found] == [(LEGACY, -1, -1), (OK, -1, ROW[0]), (LEGACY, -1, -1)]
    assert [None if row[3] is None else row[3].position for row in found] == [None, len(old), None]


def test_validation_ends_at_a_length_that_cannot_be(kernel: Any) -> None:
    batch = bytes(build_batch([ROW]))
    found = validated(kernel, batch + header(3, 2) + batch)
    assert [row[0] for row in found] == [OK, BAD_LENGTH]
    assert found[1] == (BAD_LENGTH, -1, -1, None)


def test_times_of_records_count_from_the_first(kernel: Any) -> None:
    rows: list[RecordTuple] = [(50, b"k", b"v", ()), (70, b"k", b"v", ()), (60, b"k", b"v", ())]
    ((finding, _, largest, _),) = validated(kernel, bytes(build_batch(rows)))
    assert (finding, largest) == (OK, 70)


def test_an_empty_key_is_a_key(kernel: Any) -> None:
    assert validated(kernel, bytes(build_batch([(0, b"", b"v", ())])), need_keys=True)[0][0] == OK
    assert validated(kernel, bytes(build_batch([(0, None, b"v", ())])), need_keys=True)[0][:2] == (NO_KEY, 0)


def test_one_sound_batch_in_a_writable_buffer_is_plain(kernel: Any) -> None:
    data = build_batch([ROW], producer_id=0, producer_epoch=0, base_sequence=0)
    assert isinstance(validated(kernel, data, plain_bytes=len(data)), BatchMeta)
    assert isinstance(validated(kernel, bytes(data), plain_bytes=len(data)), list), "it cannot be rewritten"
    assert isinstance(validated(kernel, data, plain_bytes=len(data) - 1), list)
    assert isinstance(validated(kernel, data + b"x", plain_bytes=1_000), list)


@pytest.mark.parametrize(
    "fields",
    [
        {"base_offset": 1},
        {"timestamp_type": 1},
        {"control": True},
        {"producer_id": 0, "producer_epoch": 0, "base_sequence": -1},
    ],
)
def test_a_batch_that_a_client_may_not_send_is_not_plain(kernel: Any, fields: dict[str, Any]) -> None:
    data = build_batch([ROW], **fields)
    assert isinstance(validated(kernel, data, plain_bytes=1_000), list)


# ---- records ----


def record(body: bytes) -> bytes:
    """A record of fewer than 64 bytes: its length, no attributes, and the rest."""
    return bytes([2 * (len(body) + 1), 0]) + body


NULL = b"\x01"
SOUND = record(b"\x00\x00" + NULL + NULL + b"\x00")


def test_the_smallest_record_is_sound(kernel: Any) -> None:
    assert len(kernel.walk(SOUND * 2, 2)) == 2 * 9 * 8
    assert kernel.check_records(SOUND, 1, 0, LEAST, MOST, False) == (OK, -1, 0)


@pytest.mark.parametrize(
    "data",
    [
        b"\x00" + SOUND[1:],
        b"\x01" + SOUND[1:],
        b"\x02\x00",
        bytes([SOUND[0] + 2]) + SOUND[1:],
        record(b"\x00\x00" + NULL + NULL + b"\x01"),
        record(b"\x00\x00" + NULL + NULL + b"\x02"),
        record(b"\x00\x00" + NULL + NULL + b"\x02\x01\x01"),
        record(b"\x00\x00" + NULL + NULL + b"\x00\x00"),
        record(b"\x00\x00" + b"\x0c" + NULL + b"\x00"),
        record(b"\x00\x00" + NULL + b"\x06" + b"\x00"),
        record(b"\x00\x00" + b"\x80\x80\x80\x80\x80\x00" + NULL + b"\x00"),
        record(b"\x80" * 10 + b"\x00" + b"\x00" + NULL + NULL + b"\x00"),
        record(b"\x00"),
    ],
    ids=[
        "no length",
        "a negative length",
        "attributes alone",
        "a length beyond its end",
        "a negative count of headers",
        "a header that is missing",
        "a header without a name",
        "a byte behind the last header",
        "a key beyond its end",
        "a value beyond its end",
        "a varint of six bytes",
        "a varlong of eleven bytes",
        "a record without fields",
    ],
)
def test_a_record_that_cannot_be_read_is_malformed(kernel: Any, data: bytes) -> None:
    for before in (b"", SOUND):
        count = 1 + bool(before)
        with pytest.raises(ValueError, match=r"malformed|cannot hold"):
            kernel.walk(before + data, count)
        finding, index, _ = kernel.check_records(before + data, count, 0, LEAST, MOST, False)
        assert (finding, index) == (MALFORMED, count - 1)


def test_a_record_ends_where_it_says_even_if_more_would_follow(kernel: Any) -> None:
    """A key that reaches into the next record is no key."""
    short = record(b"\x00\x00" + b"\x08")
    with pytest.raises(ValueError, match=r"malformed|cannot hold"):
        kernel.walk(short + SOUND, 2)


def test_a_walk_takes_all_of_its_buffer(kernel: Any) -> None:
    assert kernel.walk(b"", 0) == b""
    with pytest.raises(ValueError, match=r"^7 bytes after the last of 1|bytes follow the last record"):
        kernel.walk(SOUND * 2, 1)
    with pytest.raises(ValueError, match="-1"):
        kernel.walk(b"", -1)


@pytest.mark.parametrize(
    ("delta", "size"), [(-64, 1), (63, 1), (64, 2), (-65, 2), (8191, 2), (-8192, 2), (8192, 3)]
)
def test_a_number_takes_as_few_bytes_as_it_can(kernel: Any, delta: int, size: int) -> None:
    base = 1_000_000
    plain = kernel.encode([(base, None, None, ())], base)
    assert len(kernel.encode([(base + delta, None, None, ())], base)) == len(plain) - 1 + size


def test_columns_that_are_not_nine_are_refused(kernel: Any) -> None:
    spans = kernel.walk(SOUND, 1)
    assert kernel.build(spans, SOUND, SOUND, SOUND) == SOUND
    with pytest.raises(ValueError, match="columns"):
        kernel.build(spans[:-8], SOUND, SOUND, SOUND)


def test_an_offset_delta_has_32_bits(kernel: Any) -> None:
    least = (-(1 << 31)).to_bytes(8, "little", signed=True)
    below = (-(1 << 31) - 1).to_bytes(8, "little", signed=True)
    spans = kernel.walk(SOUND, 1)
    assert kernel.build(least + spans[8:], SOUND, SOUND, SOUND)
    with pytest.raises(ValueError, match="range"):
        kernel.build(below + spans[8:], SOUND, SOUND, SOUND)


def test_a_buffer_has_the_size_that_was_asked_for(kernel: Any) -> None:
    assert isinstance(kernel.allocate(7), bytearray)
    assert len(kernel.allocate(7)) == 7
