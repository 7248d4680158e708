"""Codecs round-trip, read what other implementations write, and never hold more than their limit."""

import gzip
import os
import random
import subprocess
import sys
from collections.abc import Callable

import cramjam
import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.records import compression
from odradek.records.codecs import lz4

CODECS = [compression.GZIP, compression.SNAPPY, compression.LZ4, compression.ZSTD]
SAMPLES = {
    "empty": b"",
    "one byte": b"x",
    "text": b"Odradek is a spool. " * 500,
    "noise": random.Random(1).randbytes(150_000),
    "more than one block of every codec": (b"record %d " * 40_000) % tuple(range(40_000)),
}


@pytest.mark.parametrize("codec", CODECS)
@pytest.mark.parametrize("name", SAMPLES)
def test_every_codec_reads_what_it_wrote(codec: int, name: str) -> None:
    data = SAMPLES[name]
    assert compression.decompress(codec, compression.compress(codec, data)) == data


@pytest.mark.parametrize(("codec", "levels"), [(1, (1, 6, 9)), (3, (1, 9, 12, 17)), (4, (-5, 1, 3, 19, 22))])
def test_every_level_of_kafka_is_taken(codec: int, levels: tuple[int, ...]) -> None:
    data = SAMPLES["text"]
    for level in levels:
        assert compression.decompress(codec, compression.compress(codec, data, level)) == data


@pytest.mark.parametrize(("codec", "low", "high"), [(1, 1, 9), (3, 1, 12), (4, 1, 19)])
def test_a_higher_level_compresses_more(codec: int, low: int, high: int) -> None:
    rng = random.Random(2)
    data = b"".join(
        b'{"user":%d,"name":"k%d"}' % (rng.getrandbits(9), rng.getrandbits(6)) for _ in range(3000)
    )
    assert len(compression.compress(codec, data, high)) < len(compression.compress(codec, data, low))


def test_no_codec_returns_the_data_itself() -> None:
    data = memoryview(b"as it is")
    assert compression.decompress(compression.NONE, data) is data
    assert compression.compress(compression.NONE, data) == b"as it is"


@pytest.mark.parametrize("codec", [5, 7])
def test_an_unknown_codec_is_refused(codec: int) -> None:
    for work in (compression.compress, compression.decompress):
        with pytest.raises(KafkaError) as caught:
            work(codec, b"")
        assert caught.value.code == ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_lz4_frames_are_those_java_reads() -> None:
    frame = compression.compress(compression.LZ4, SAMPLES["text"])
    assert frame.startswith(bytes.fromhex("04224d18604082"))  # independent 64 KiB blocks, no checksums
    assert frame.endswith(bytes(4))
    assert bytes(cramjam.lz4.decompress(frame)) == SAMPLES["text"]


def test_lz4_header_checksum_is_xxhash() -> None:
    for options in ({"block_linked": False}, {"block_linked": False, "content_checksum": False}):
        compressor = cramjam.lz4.Compressor(**options)
        compressor.compress(b"x" * 100)
        frame = bytes(compressor.finish())
        assert lz4.header_checksum(memoryview(frame)[4:6]) == frame[6]
    broken = bytearray(frame)
    broken[6] ^= 0xFF
    assert lz4.mend_header(broken) == frame


def test_snappy_reads_xerial_streams_one_after_the_other_and_bare_blocks() -> None:
    stream = compression.compress(compression.SNAPPY, b"abc")
    assert compression.decompress(compression.SNAPPY, stream + stream) == b"abcabc"
    bare = bytes(cramjam.snappy.compress_raw(b"abc"))
    assert compression.decompress(compression.SNAPPY, bare) == b"abc"


def test_zstd_reads_several_frames_and_skips_skippable_ones() -> None:
    frame = compression.compress(compression.ZSTD, b"abc")
    skippable = bytes.fromhex("502a4d18") + (3).to_bytes(4, "little") + b"xyz"
    assert compression.decompress(compression.ZSTD, frame + skippable + frame) == b"abcabc"


@pytest.mark.parametrize("codec", CODECS)
def test_the_limit_is_exact(codec: int) -> None:
    data = bytes(100_000)
    packed = _zstd_runs(100_000) if codec == compression.ZSTD else compression.compress(codec, data)
    limit_bytes = 100_000 + (1024 if codec == compression.ZSTD else 0)  # zstd's window counts
    assert compression.decompress(codec, packed, limit_bytes) == data
    with pytest.raises(KafkaError) as caught:
        compression.decompress(codec, packed, limit_bytes - 1)
    assert caught.value.code == ErrorCode.MESSAGE_TOO_LARGE


@pytest.mark.parametrize("codec", CODECS)
def test_every_cut_is_corrupt_never_a_crash(codec: int) -> None:
    packed = compression.compress(codec, SAMPLES["text"])
    for size in range(0, len(packed), 7):
        if codec == compression.ZSTD and size == 0:
            continue  # no frame at all is no data, as for Java
        with pytest.raises(KafkaError) as caught:
            compression.decompress(codec, packed[:size])
        assert caught.value.code == ErrorCode.CORRUPT_MESSAGE


def _zstd_runs(size: int) -> bytes:
    """One frame of run-length blocks, window 1 KiB: 4 bytes stand for up to 1 KiB each."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x00")
    while size > 0:
        run = min(size, 1024)
        size -= run
        frame += (run << 3 | 2 | (size == 0)).to_bytes(3, "little") + b"\x00"
    return bytes(frame)


def _zstd_bomb() -> bytes:
    """1 MB of run-length blocks of 128 KiB: 32 GB, declared window 128 MiB."""
    frame = bytearray(b"\x28\xb5\x2f\xfd\x00\x88")
    frame += ((128 << 10) << 3 | 2).to_bytes(3, "little") + b"\x00"
    block = bytes(frame[6:])
    return bytes(frame) + block * 250_000


def _zstd_of_a_large_window() -> bytes:
    """Compressed blocks under a declared window of 128 MiB."""
    frame = bytearray(cramjam.zstd.compress(bytes(1 << 28), 3))
    assert not frame[4] & 0x20, "a window descriptor follows"
    frame[5] = 0x88
    return bytes(frame)


def _lz4_bomb() -> bytes:
    block = bytes(cramjam.lz4.compress_block(bytes(4 << 20), store_size=False))
    head = b"\x04\x22\x4d\x18\x60\x70"
    checksum = bytes([lz4.header_checksum(memoryview(head)[4:])])
    return head + checksum + (len(block).to_bytes(4, "little") + block) * 60 + bytes(4)


def _snappy_bomb() -> bytes:
    block = bytes(cramjam.snappy.compress_raw(bytes(8 << 20)))
    stream = compression.compress(compression.SNAPPY, b"")
    return stream + (len(block).to_bytes(4, "big") + block) * 40


BOMBS: dict[str, tuple[int, Callable[[], bytes]]] = {
    "gzip": (compression.GZIP, lambda: gzip.compress(bytes(1 << 28), mtime=0)),
    "gzip members": (compression.GZIP, lambda: gzip.compress(bytes(1 << 23), mtime=0) * 60),
    "snappy": (compression.SNAPPY, _snappy_bomb),
    "snappy that lies": (compression.SNAPPY, lambda: b"\xff\xff\xff\xff\x0f" + bytes(100)),
    "lz4": (compression.LZ4, _lz4_bomb),
    "zstd runs": (compression.ZSTD, _zstd_bomb),
    "zstd": (compression.ZSTD, lambda: bytes(cramjam.zstd.compress(bytes(1 << 28), 3))),
    "zstd of a large window": (compression.ZSTD, _zstd_of_a_large_window),
}


FOUR_GIB = 1 << 32


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _snappy_of(claimed: int, held: bytes) -> bytes:
    """A bare block whose preamble claims another length."""
    packed = bytes(cramjam.snappy.compress_raw(held))
    return _varint(claimed) + packed[len(_varint(len(held))) :]


def _in_xerial_frame(block: bytes) -> bytes:
    return compression.compress(compression.SNAPPY, b"") + len(block).to_bytes(4, "big") + block


def _lz4_of(claimed: int, held: bytes) -> bytes:
    """A frame whose header has a content size."""
    head = b"\x04\x22\x4d\x18\x68\x70" + claimed.to_bytes(8, "little")
    block = bytes(cramjam.lz4.compress_block(held[: 4 << 20], store_size=False))
    checksum = bytes([lz4.header_checksum(memoryview(head)[4:])])
    blocks = (len(block).to_bytes(4, "little") + block) * (len(held) >> 22)
    return head + checksum + blocks + bytes(4)


def _zstd_of(claimed: int, held: bytes, *, one_segment: bool) -> bytes:
    """A frame of run-length blocks whose header has a content size of eight bytes."""
    head = b"\x28\xb5\x2f\xfd" + (b"\xe0" if one_segment else b"\xc0\x38") + claimed.to_bytes(8, "little")
    run = ((128 << 10) << 3 | 2).to_bytes(3, "little") + b"\x00"
    return head + run * (len(held) >> 17) + b"\x01\x00\x00"


def _gzip_of(claimed: int, held: bytes) -> bytes:
    return gzip.compress(held, mtime=0)[:-4] + (claimed & 0xFFFFFFFF).to_bytes(4, "little")


LIARS: dict[str, tuple[int, Callable[[int, bytes], bytes]]] = {
    "gzip": (compression.GZIP, _gzip_of),
    "snappy": (compression.SNAPPY, _snappy_of),
    "snappy in xerial's frame": (compression.SNAPPY, lambda c, h: _in_xerial_frame(_snappy_of(c, h))),
    "lz4": (compression.LZ4, _lz4_of),
    "zstd": (compression.ZSTD, lambda c, h: _zstd_of(c, h, one_segment=False)),
    "zstd of one segment": (compression.ZSTD, lambda c, h: _zstd_of(c, h, one_segment=True)),
}

_IN_A_PROCESS_OF_ITS_OWN = """
import resource, sys
from odradek.core.errors import KafkaError
from odradek.records import compression
codec, limit = int(sys.argv[1]), int(sys.argv[2])
bomb = sys.stdin.buffer.read()
compression.decompress(codec, compression.compress(codec, b"warm"))
before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
try:
    compression.decompress(codec, bomb, limit)
    print("decompressed")
except KafkaError as e:
    print(e.code.name)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes on Linux only")
@pytest.mark.parametrize("name", BOMBS)
def test_a_decompression_bomb_takes_no_more_than_the_limit(name: str) -> None:
    codec, build = BOMBS[name]
    limit_bytes = 32 << 20
    child = subprocess.run(
        [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN, str(codec), str(limit_bytes)],
        input=build(),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "0"},
    )
    answer, grown_kb = child.stdout.split()
    assert answer == b"MESSAGE_TOO_LARGE"
    assert int(grown_kb) << 10 < limit_bytes + (8 << 20)


TINY_BLOCKS: dict[str, tuple[int, bytes]] = {
    "snappy": (
        compression.SNAPPY,
        compression.compress(compression.SNAPPY, b"") + b"\x00\x00\x00\x01\x00" * 50_000,
    ),
    "lz4": (compression.LZ4, bytes.fromhex("04224d18604082") + b"\x01\x00\x00\x80x" * 50_000 + bytes(4)),
    "zstd": (compression.ZSTD, b"\x28\xb5\x2f\xfd\x00\x00" + b"\x00\x00\x00" * 50_000 + b"\x01\x00\x00"),
    "zstd skippable": (compression.ZSTD, b"\x50\x2a\x4d\x18\x00\x00\x00\x00" * 50_000),
}


@pytest.mark.parametrize("name", TINY_BLOCKS)
def test_how_much_many_tiny_blocks_hold_is_not_found_out_on_the_loop(name: str) -> None:
    codec, packed = TINY_BLOCKS[name]
    calls = 0

    def count(*_: object) -> None:
        nonlocal calls
        calls += 1

    sys.setprofile(count)
    try:
        bound = compression.bound(codec, packed)
    finally:
        sys.setprofile(None)
    assert bound > 1 << 30  # whoever asks lets others find out
    assert calls < 10_000


@pytest.mark.parametrize("name", LIARS)
def test_a_refusal_keeps_nothing_of_what_was_decompressed(name: str) -> None:
    """It lives as long as the request that it answers, and many may be answered at a time."""
    codec, build = LIARS[name]
    with pytest.raises(KafkaError) as caught:
        compression.decompress(codec, build(10, bytes(8 << 20)), 1 << 20)
    assert caught.value.__context__ is None and caught.value.__cause__ is None


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss counts kilobytes on Linux only")
@pytest.mark.parametrize("name", LIARS)
@pytest.mark.parametrize(("claimed", "held_bytes"), [(10, 8 << 20), (FOUR_GIB - 1, 0), (FOUR_GIB, 0)])
def test_a_size_that_is_claimed_takes_no_memory_that_is_not_filled(
    name: str, claimed: int, held_bytes: int
) -> None:
    codec, build = LIARS[name]
    limit_bytes = 64 << 20
    child = subprocess.run(
        [sys.executable, "-c", _IN_A_PROCESS_OF_ITS_OWN, str(codec), str(limit_bytes)],
        input=build(claimed, bytes(held_bytes)),
        stdout=subprocess.PIPE,
        check=True,
        env={**os.environ, "MALLOC_TRIM_THRESHOLD_": "0"},
    )
    answer, grown_kb = child.stdout.split()
    assert answer in (b"CORRUPT_MESSAGE", b"MESSAGE_TOO_LARGE", b"decompressed")
    assert int(grown_kb) << 10 < 2 * held_bytes + (8 << 20)


@pytest.mark.parametrize(
    ("codec", "packed"),
    [
        (compression.GZIP, gzip.compress(b"", mtime=0) * 5_000),
        (
            compression.SNAPPY,
            compression.compress(compression.SNAPPY, b"") + b"\x00\x00\x00\x01\x00" * 50_000,
        ),
        (compression.LZ4, bytes.fromhex("04224d18604082") + b"\x01\x00\x00\x80x" * 50_000 + bytes(4)),
        (compression.ZSTD, b"\x28\xb5\x2f\xfd\x00\x00" + b"\x00\x00\x00" * 50_000 + b"\x01\x00\x00"),
    ],
    ids=["gzip", "snappy", "lz4", "zstd"],
)
def test_input_made_of_tiny_blocks_is_refused_before_it_costs_time(codec: int, packed: bytes) -> None:
    with pytest.raises(KafkaError, match="too many") as caught:
        compression.decompress(codec, packed)
    assert caught.value.code == ErrorCode.CORRUPT_MESSAGE
