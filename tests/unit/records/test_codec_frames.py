"""The headers of frames and blocks: what they say of the size, and which of them no decoder is given."""

import cramjam
import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records import compression
from odradek.records.codecs import FEW_BLOCKS, UNTOLD_BYTES, lz4

LZ4_HEAD = bytes.fromhex("04224d18604082")
ZSTD_MAGIC = bytes.fromhex("28b52ffd")
BLOCK = 64 << 10


def lz4_frame(blocks: bytes, flags: int = 0x60, descriptor: int = 0x40) -> bytes:
    head = bytes([flags, descriptor])
    return LZ4_HEAD[:4] + head + bytes([lz4.header_checksum(memoryview(head))]) + blocks + bytes(4)


def lz4_block(data: bytes) -> bytes:
    packed = bytes(cramjam.lz4.compress_block(data, store_size=False))
    return len(packed).to_bytes(4, "little") + packed


def zstd_frame(size: int, descriptor: int = 0, window: int = 0, run: int = 1024) -> bytes:
    """Run-length blocks of zeros."""
    frame = bytearray(ZSTD_MAGIC + bytes([descriptor, window]))
    for start in range(0, size, run):
        left = size - start
        frame += (min(run, left) << 3 | 2 | (left <= run)).to_bytes(3, "little") + b"\x00"
    return bytes(frame)


def refusal(codec: int, packed: bytes, limit_bytes: int = 1 << 20) -> tuple[ErrorCode, str]:
    with pytest.raises(KafkaError) as caught:
        compression.decompress(codec, packed, limit_bytes)
    return ErrorCode(caught.value.code), str(caught.value.message)


@pytest.mark.parametrize(("descriptor", "size"), [(0x40, 64 << 10), (0x50, 256 << 10), (0x70, 4 << 20)])
def test_an_lz4_block_decodes_to_no_more_than_its_frame_says(descriptor: int, size: int) -> None:
    frame = lz4_frame(lz4_block(b"x" * 100) + lz4_block(b"y" * 50), descriptor=descriptor)
    assert compression.bound(compression.LZ4, frame) == 2 * size
    assert compression.decompress(compression.LZ4, frame) == b"x" * 100 + b"y" * 50


def test_a_stored_lz4_block_says_its_size_and_an_empty_frame_has_none() -> None:
    stored = (3 | 0x80000000).to_bytes(4, "little") + b"abc"
    assert compression.bound(compression.LZ4, lz4_frame(stored)) == 3
    assert compression.bound(compression.LZ4, lz4_frame(b"")) == 0
    assert compression.decompress(compression.LZ4, lz4_frame(b"")) == b""


@pytest.mark.parametrize(
    ("frame", "why"),
    [
        (b"\x05" + lz4_frame(b"")[1:], "magic"),
        (lz4_frame(b"", flags=0xA0), "frame descriptor"),
        (lz4_frame(b"", flags=0x62), "frame descriptor"),
        (lz4_frame(b"", descriptor=0x30), "frame descriptor"),
        (lz4_frame(b"", descriptor=0x41), "frame descriptor"),
        (lz4_frame(b"", flags=0x40), "dependent blocks"),
        (LZ4_HEAD[:6] + b"\x83" + bytes(4), "checksum"),
        (
            lz4_frame((BLOCK + 1 | 0x80000000).to_bytes(4, "little") + bytes(BLOCK + 1)),
            "block of 65537 bytes",
        ),
    ],
)
def test_an_lz4_frame_that_no_client_writes_is_corrupt(frame: bytes, why: str) -> None:
    code, message = refusal(compression.LZ4, frame)
    assert code == ErrorCode.CORRUPT_MESSAGE
    assert why in message


def test_lz4_of_another_level_has_no_checksum_of_its_content() -> None:
    frame = compression.compress(compression.LZ4, b"x" * 100, 12)
    assert frame[:4] == LZ4_HEAD[:4]
    assert not frame[4] & 0x04
    assert frame[4] & 0x20, "its blocks are independent"


def test_what_is_damaged_at_the_very_limit_is_corrupt_and_not_too_large() -> None:
    block = bytearray(lz4_block(b"0123456789" * 50))
    block[4] = 0xFF
    code, _ = refusal(compression.LZ4, lz4_frame(bytes(block)), BLOCK)
    assert code == ErrorCode.CORRUPT_MESSAGE
    frame = bytearray(cramjam.zstd.compress(b"0123456789" * 50, 3))
    frame[-4:] = b"\xff" * 4
    bound = compression.bound(compression.ZSTD, frame)
    assert refusal(compression.ZSTD, bytes(frame), 2 * bound)[0] == ErrorCode.CORRUPT_MESSAGE


def test_a_header_too_short_to_mend_stays_as_it_is() -> None:
    for size in range(7):
        assert lz4.mend_header(LZ4_HEAD[:size]) == LZ4_HEAD[:size]
    assert lz4.mend_header(LZ4_HEAD[:6] + b"\x00") == LZ4_HEAD


def test_an_empty_snappy_stream_may_follow_another() -> None:
    stream, empty = (compression.compress(compression.SNAPPY, data) for data in (b"abc", b""))
    assert compression.decompress(compression.SNAPPY, stream + empty) == b"abc"
    assert compression.decompress(compression.SNAPPY, stream + empty + stream) == b"abcabc"


def test_a_zstd_frame_ends_after_its_checksum() -> None:
    frame = zstd_frame(5_000)
    checked = zstd_frame(3_000, descriptor=4) + b"\x01\x02\x03\x04"
    assert compression.bound(compression.ZSTD, checked + frame) == 8_000
    assert compression.bound(compression.ZSTD, checked[:-1] + frame) == 0


def test_the_window_of_a_zstd_frame_counts_towards_the_limit() -> None:
    size, window = 200_000, 128 << 10
    frame = zstd_frame(size, window=0x38)
    assert compression.decompress(compression.ZSTD, frame, size + window) == bytes(size)
    assert refusal(compression.ZSTD, frame, size + window - 1)[0] == ErrorCode.MESSAGE_TOO_LARGE


def test_what_is_no_frame_has_no_bound() -> None:
    for codec in (compression.SNAPPY, compression.LZ4, compression.ZSTD):
        assert compression.bound(codec, b"\xff" * 30) == 0


SKIPPABLE = b"\x50\x2a\x4d\x18\x00\x00\x00\x00"
SNAPPY_HEAD = compression.compress(compression.SNAPPY, b"")
FEW: dict[str, tuple[int, bytes, int]] = {
    "snappy": (
        compression.SNAPPY,
        SNAPPY_HEAD + (b"\x00\x00\x00\x03" + bytes(cramjam.snappy.compress_raw(b"x"))) * FEW_BLOCKS,
        FEW_BLOCKS,
    ),
    "zstd": (compression.ZSTD, zstd_frame(FEW_BLOCKS, run=1), FEW_BLOCKS),
    "zstd skippable": (compression.ZSTD, SKIPPABLE * (FEW_BLOCKS - 1) + zstd_frame(1), 1),
}


@pytest.mark.parametrize("name", FEW)
def test_a_bound_is_found_from_a_few_blocks_and_not_from_more(name: str) -> None:
    codec, packed, size = FEW[name]
    assert compression.bound(codec, packed) == size
    more = {
        "snappy": packed + packed[len(SNAPPY_HEAD) :],
        "zstd": packed * 2,
        "zstd skippable": SKIPPABLE + packed,
    }
    assert compression.bound(codec, more[name]) == UNTOLD_BYTES
