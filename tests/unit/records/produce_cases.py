"""Crafted record sets, one per rule of a leader, with the kind of topic and the Produce version they go to.

What was sent to Apache Kafka 4.3.1, what it answered and what it stored stands in apache_answers.json;
`python -m tests.unit.records.ask_apache` asks a live broker again.
"""

import gzip
import zlib
from typing import NamedTuple

from odradek.records import compression
from odradek.records.batch import RecordTuple, build_batch
from odradek.records.codecs.lz4 import header_checksum as lz4_header_checksum
from odradek.records.twins.kernel import crc32c

# Topic configurations by the name the cases use. Times in ms.
TOPICS: dict[str, dict[str, str]] = {
    "plain": {},
    "compacted": {"cleanup.policy": "compact"},
    "append-time": {"message.timestamp.type": "LogAppendTime"},
    "bounded": {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "60000"},
    "bounded-compacted": {
        "cleanup.policy": "compact",
        "message.timestamp.before.max.ms": "60000",
        "message.timestamp.after.max.ms": "60000",
    },
    "small": {"max.message.bytes": "1000"},
    "small-uncompressed": {"max.message.bytes": "1000", "compression.type": "uncompressed"},
    "uncompressed": {"compression.type": "uncompressed"},
    "gzip": {"compression.type": "gzip"},
    "snappy": {"compression.type": "snappy"},
    "lz4": {"compression.type": "lz4"},
    "zstd": {"compression.type": "zstd"},
    "zstd-append-time": {"compression.type": "zstd", "message.timestamp.type": "LogAppendTime"},
}


class Case(NamedTuple):
    topic: str
    records: bytes | None
    version: int = 8


def sealed(batch: bytearray | bytes) -> bytes:
    """A batch whose length and CRC are right whatever else was changed."""
    out = bytearray(batch)
    out[8:12] = (len(out) - 12).to_bytes(4, "big")
    out[17:21] = crc32c(memoryview(out)[21:]).to_bytes(4, "big")
    return bytes(out)


def patched(batch: bytearray | bytes, position: int, value: int, size: int) -> bytes:
    out = bytearray(batch)
    out[position : position + size] = (value & ((1 << 8 * size) - 1)).to_bytes(size, "big")
    return bytes(out)


def resealed(batch: bytearray | bytes, position: int, value: int, size: int) -> bytes:
    return sealed(patched(batch, position, value, size))


def with_records(batch: bytearray | bytes, records: bytes) -> bytes:
    """The header of a batch over other record bytes (already compressed where the header says so)."""
    return sealed(bytes(batch[:61]) + records)


def varint(value: int) -> bytes:
    raw = (value << 1) ^ (value >> 63)
    out = bytearray()
    while raw > 0x7F:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def raw_record(
    offset_delta: int = 0,
    timestamp_delta: int = 0,
    key: bytes = b"\x01",
    value: bytes = b"\x02v",
    headers: bytes = b"\x00",
    attributes: int = 0,
    size: int | None = None,
) -> bytes:
    """A record of which every part can be wrong; key and value come with their length."""
    body = bytes([attributes]) + varint(timestamp_delta) + varint(offset_delta) + key + value + headers
    return varint(len(body) if size is None else size) + body


def legacy_entry(
    magic: int, value: bytes, *, offset: int = 0, attributes: int = 0, timestamp: int = 0
) -> bytes:
    stamp = timestamp.to_bytes(8, "big", signed=True) if magic else b""
    body = bytes([magic, attributes]) + stamp + b"\xff\xff\xff\xff" + len(value).to_bytes(4, "big") + value
    message = zlib.crc32(body).to_bytes(4, "big") + body
    return offset.to_bytes(8, "big") + len(message).to_bytes(4, "big") + message


def cases(now_ms: int) -> dict[str, Case]:
    """Every case by name. Timestamps are taken relative to now."""
    rows: list[RecordTuple] = [(now_ms + i, b"k%d" % i, b"value-%d" % i, ()) for i in range(3)]
    keyless: list[RecordTuple] = [(now_ms, None if i % 2 else b"k", b"v", ()) for i in range(5)]
    plain = build_batch(rows)
    one = build_batch(rows[:1])
    body = bytes(plain[61:])
    found: dict[str, Case] = {
        "valid": Case("plain", bytes(plain)),
        "valid-headers": Case("plain", bytes(build_batch([(now_ms, None, None, (("h", b"x"), ("", None)))]))),
        "null-records": Case("plain", None),
        "empty-records": Case("plain", b""),
        "partial-header": Case("plain", bytes(plain[:40])),
        "partial-batch": Case("plain", bytes(plain[:-1])),
        "trailing-partial-header": Case("plain", bytes(plain) + b"\x00" * 10),
        "trailing-zeros-17": Case("plain", bytes(plain) + b"\x00" * 17),
        "trailing-partial-batch": Case("plain", bytes(plain) + bytes(plain[:-1])),
        "trailing-bad-magic": Case("plain", bytes(plain) + patched(plain, 16, 9, 1)),
        "two-batches": Case("plain", bytes(plain) * 2),
        "length-0": Case("plain", patched(plain, 8, 0, 4)),
        "length-13": Case("plain", patched(plain, 8, 13, 4)),
        "length-14": Case("plain", patched(plain, 8, 14, 4)[:26]),
        "length-48": Case("plain", patched(plain, 8, 48, 4)[:60]),
        "length-negative": Case("plain", patched(plain, 8, -1, 4)),
        "length-huge": Case("plain", patched(plain, 8, 0x7FFFFFFF, 4)),
        "magic-3": Case("plain", patched(plain, 16, 3, 1)),
        "magic-negative": Case("plain", patched(plain, 16, -1, 1)),
        "magic-0": Case("plain", legacy_entry(0, b"old")),
        "magic-1": Case("plain", legacy_entry(1, b"old", timestamp=now_ms)),
        "magic-0-v3": Case("plain", legacy_entry(0, b"old"), 3),
        "crc": Case("plain", patched(plain, 17, 12345, 4)),
        "crc-and-base-offset": Case("plain", patched(patched(plain, 17, 12345, 4), 0, 5, 8)),
        "crc-and-size": Case("small", patched(build_batch([(now_ms, None, bytes(2000), ())]), 17, 1, 4)),
        "base-offset-5": Case("plain", patched(plain, 0, 5, 8)),
        "base-offset-negative": Case("plain", patched(plain, 0, -1, 8)),
        "leader-epoch-set": Case("plain", patched(plain, 12, 77, 4)),
        "count-0": Case("plain", resealed(plain, 57, 0, 4)),
        "count-0-last-delta-minus-1": Case("plain", resealed(resealed(plain, 57, 0, 4), 23, -1, 4)),
        "count-negative": Case("plain", resealed(plain, 57, -3, 4)),
        "count-2-of-3": Case("plain", resealed(plain, 57, 2, 4)),
        "count-and-delta-2-of-3": Case("plain", resealed(resealed(plain, 57, 2, 4), 23, 1, 4)),
        "count-and-delta-4-of-3": Case("plain", resealed(resealed(plain, 57, 4, 4), 23, 3, 4)),
        "last-offset-delta-5": Case("plain", resealed(plain, 23, 5, 4)),
        "last-offset-delta-negative": Case("plain", resealed(plain, 23, -2, 4)),
        "control": Case("plain", resealed(plain, 21, 0x20, 2)),
        "transactional-without-id": Case("plain", resealed(plain, 21, 0x10, 2)),
        "delete-horizon": Case("plain", resealed(plain, 21, 0x40, 2)),
        "unused-attribute-bit": Case("plain", resealed(plain, 21, 0x80, 2)),
        "codec-5": Case("plain", resealed(plain, 21, 5, 2)),
        "codec-7": Case("plain", resealed(plain, 21, 7, 2)),
        "log-append-time-attribute": Case("plain", resealed(plain, 21, 0x08, 2)),
        "log-append-time-attribute-no-timestamp": Case(
            "plain", resealed(build_batch([(-1, None, b"v", ())]), 21, 0x08, 2)
        ),
        "log-append-time-attribute-gzip": Case("plain", resealed(build_batch(rows, codec=1), 21, 0x09, 2)),
        "log-append-time-attribute-on-append-time": Case("append-time", resealed(plain, 21, 0x08, 2)),
        "log-append-time-attribute-bounded": Case(
            "bounded", resealed(resealed(plain, 21, 0x08, 2), 35, 5, 8)
        ),
        "log-append-time-attribute-compacted": Case("compacted", resealed(build_batch(keyless), 21, 0x08, 2)),
        "max-timestamp-wrong": Case("plain", resealed(plain, 35, 5, 8)),
        "max-timestamp-wrong-gzip": Case("plain", resealed(build_batch(rows, codec=1), 35, 5, 8)),
        "no-timestamp": Case("plain", bytes(build_batch([(-1, None, b"v", ())]))),
        "append-time": Case("append-time", bytes(plain)),
        "append-time-gzip": Case("append-time", bytes(build_batch(rows, codec=1))),
        "append-time-old": Case("append-time", bytes(build_batch([(5, None, b"v", ())]))),
        "sequence-negative": Case(
            "plain", bytes(build_batch(rows, producer_id=9, producer_epoch=0, base_sequence=-1))
        ),
        "sequence-negative-2": Case(
            "plain", bytes(build_batch(rows, producer_id=9, producer_epoch=0, base_sequence=-5))
        ),
        "sequence-0": Case(
            "plain", bytes(build_batch(rows, producer_id=9, producer_epoch=0, base_sequence=0))
        ),
        "sequence-without-producer-id": Case("plain", bytes(build_batch(rows, base_sequence=3))),
        "producer-epoch-negative": Case(
            "plain", bytes(build_batch(rows, producer_id=9, producer_epoch=-1, base_sequence=0))
        ),
        "producer-id-minus-2": Case(
            "plain", bytes(build_batch(rows, producer_id=-2, producer_epoch=0, base_sequence=-1))
        ),
        "offset-deltas-all-0": Case(
            "plain", with_records(plain, raw_record(0) + raw_record(0) + raw_record(0))
        ),
        "offset-deltas-1-2-3": Case(
            "plain", with_records(plain, raw_record(1) + raw_record(2) + raw_record(3))
        ),
        "offset-deltas-reversed": Case(
            "plain", with_records(plain, raw_record(2) + raw_record(1) + raw_record(0))
        ),
        "offset-deltas-all-0-gzip": Case(
            "plain",
            with_records(
                resealed(plain, 21, 1, 2),
                compression.compress(1, raw_record(0) + raw_record(0) + raw_record(0)),
            ),
        ),
        "offset-deltas-reversed-gzip": Case(
            "plain",
            with_records(
                resealed(plain, 21, 1, 2),
                compression.compress(1, raw_record(2) + raw_record(1) + raw_record(0)),
            ),
        ),
        "offset-deltas-all-0-to-gzip": Case(
            "gzip", with_records(plain, raw_record(0) + raw_record(0) + raw_record(0))
        ),
        "record-size-too-small": Case("plain", with_records(one, raw_record(size=5))),
        "record-size-too-large": Case("plain", with_records(one, raw_record(size=100))),
        "record-size-0": Case("plain", with_records(one, b"\x00")),
        "record-size-negative": Case("plain", with_records(one, b"\x01" + raw_record()[1:])),
        "record-attributes-set": Case("plain", with_records(one, raw_record(attributes=0x7F))),
        "varint-too-long": Case("plain", with_records(one, b"\xff" * 12)),
        "key-length-minus-2": Case("plain", with_records(one, raw_record(key=varint(-2)))),
        "key-length-beyond": Case("plain", with_records(one, raw_record(key=varint(50)))),
        "value-length-beyond": Case("plain", with_records(one, raw_record(value=varint(50)))),
        "header-count-negative": Case("plain", with_records(one, raw_record(headers=varint(-1)))),
        "header-count-beyond": Case("plain", with_records(one, raw_record(headers=varint(1000)))),
        "header-key-null": Case(
            "plain", with_records(one, raw_record(headers=varint(1) + varint(-1) + varint(-1)))
        ),
        "header-value-null": Case(
            "plain", with_records(one, raw_record(headers=varint(1) + varint(1) + b"h" + varint(-1)))
        ),
        "header-key-not-utf8": Case(
            "plain", with_records(one, raw_record(headers=varint(1) + varint(2) + b"\xff\xfe" + varint(-1)))
        ),
        "header-bytes-left": Case("plain", with_records(one, raw_record(headers=varint(0) + b"x"))),
        "records-trailing-bytes": Case("plain", with_records(plain, body + b"\x00")),
        "no-key-compacted": Case("compacted", bytes(build_batch(keyless))),
        "no-key-compacted-gzip": Case("compacted", bytes(build_batch(keyless, codec=1))),
        "no-key-compacted-v7": Case("compacted", bytes(build_batch(keyless)), 7),
        "no-key-compacted-late-malformed": Case(
            "compacted", with_records(plain, raw_record(0) + raw_record(1) + b"\x01")
        ),
        "no-key-compacted-bad-deltas": Case("compacted", with_records(plain, raw_record(0) * 3)),
        "empty-key-compacted": Case("compacted", bytes(build_batch([(now_ms, b"", b"v", ())]))),
        "timestamp-too-old": Case(
            "bounded", bytes(build_batch([(now_ms - (i % 2) * 3_600_000, None, b"v", ()) for i in range(4)]))
        ),
        "timestamp-too-new": Case(
            "bounded", bytes(build_batch([(now_ms + (i % 2) * 3_600_000, None, b"v", ()) for i in range(4)]))
        ),
        "timestamp-too-old-gzip": Case(
            "bounded", bytes(build_batch([(now_ms - 3_600_000, None, b"v", ()) for i in range(2)], codec=1))
        ),
        "timestamp-none-bounded": Case("bounded", bytes(build_batch([(-1, None, b"v", ())]))),
        "timestamp-negative-bounded": Case("bounded", bytes(build_batch([(-2, None, b"v", ())]))),
        "timestamp-negative": Case("plain", bytes(build_batch([(-2, None, b"v", ())]))),
        "timestamp-two-hours-ahead": Case(
            "plain", bytes(build_batch([(now_ms + 7_200_000, None, b"v", ())]))
        ),
        "timestamp-and-key": Case(
            "bounded-compacted",
            bytes(build_batch([(now_ms, None, b"v", ()), (now_ms - 3_600_000, b"k", b"v", ())])),
        ),
        "timestamp-and-key-same-record": Case(
            "bounded-compacted", bytes(build_batch([(now_ms - 3_600_000, None, b"v", ())]))
        ),
        "size-over": Case("small", bytes(build_batch([(now_ms, None, bytes(1000), ())]))),
        "size-exact": Case("small", _of_size(1000, now_ms)),
        "size-one-over": Case("small", _of_size(1001, now_ms)),
        "size-compressed-fits": Case("small", bytes(build_batch([(now_ms, None, bytes(5000), ())], codec=1))),
        "size-after-decompression": Case(
            "small-uncompressed", bytes(build_batch([(now_ms, None, bytes(5000), ())], codec=1))
        ),
        "zstd-v6": Case("plain", bytes(build_batch(rows, codec=4)), 6),
        "zstd-v7": Case("plain", bytes(build_batch(rows, codec=4)), 7),
        "zstd-v6-to-gzip": Case("gzip", bytes(build_batch(rows, codec=4)), 6),
    }
    for name, codec in compression.CODEC_IDS.items():
        batch = build_batch(rows, codec=codec)
        for topic in ("uncompressed", "gzip", "snappy", "lz4", "zstd"):
            found[f"{name}-to-{topic}"] = Case(topic, bytes(batch))
        found[f"{name}-to-zstd-append-time"] = Case("zstd-append-time", bytes(batch))
        if codec:
            found[f"{name}-kept"] = Case("plain", bytes(batch))
            _add_damaged(found, name, codec, batch, body)
    return found


def _of_size(size: int, now_ms: int) -> bytes:
    fill = size - len(build_batch([(now_ms, None, bytes(800), ())])) + 800
    batch = bytes(build_batch([(now_ms, None, bytes(fill), ())]))
    assert len(batch) == size
    return batch


def _add_damaged(found: dict[str, Case], name: str, codec: int, batch: bytearray, body: bytes) -> None:
    packed = bytes(batch[61:])

    def put(what: str, payload: bytes) -> None:
        found[f"{name}-{what}"] = Case("plain", with_records(batch, payload))

    put("empty-payload", b"")
    put("garbage", b"\x99" * 40)
    put("cut", packed[: len(packed) // 2])
    put("cut-last-byte", packed[:-1])
    put("trailing-garbage", packed + b"\x00\x01\x02\x03\x04")
    put("trailing-bytes-inside", compression.compress(codec, body + b"\x00"))
    put("record-missing", compression.compress(codec, body[: len(body) // 2]))
    put("malformed-inside", compression.compress(codec, b"\xff" * 30))
    put("header-key-null-inside", compression.compress(codec, _null_header_body()))
    put("twice", packed + packed)


def _null_header_body() -> bytes:
    return raw_record(0) + raw_record(1, headers=varint(1) + varint(-1) + varint(-1)) + raw_record(2)


def more_snappy_and_lz4(now_ms: int) -> dict[str, Case]:
    """Framings of one codec that clients differ in."""
    import cramjam

    rows: list[RecordTuple] = [(now_ms, b"k", b"value", ())]
    plain = build_batch(rows)
    body = bytes(plain[61:])
    snappy = resealed(plain, 21, 2, 2)
    lz4 = resealed(plain, 21, 3, 2)
    zstd = resealed(plain, 21, 4, 2)
    gz = resealed(plain, 21, 1, 2)
    linked = cramjam.lz4.Compressor(block_linked=True)
    linked.compress(body)
    checksummed = cramjam.lz4.Compressor(content_checksum=True, block_linked=False)
    checksummed.compress(body)
    framed = compression.compress(3, body)
    return {
        "snappy-raw": Case("plain", with_records(snappy, bytes(cramjam.snappy.compress_raw(body)))),
        "snappy-framed": Case("plain", with_records(snappy, bytes(cramjam.snappy.compress(body)))),
        "lz4-linked": Case("plain", with_records(lz4, bytes(linked.finish()))),
        "lz4-content-checksum": Case("plain", with_records(lz4, bytes(checksummed.finish()))),
        "lz4-block-checksum-wrong": Case("plain", with_records(lz4, _lz4_with_block_checksum(body, 0xFF))),
        "lz4-block-checksum": Case("plain", with_records(lz4, _lz4_with_block_checksum(body, 0))),
        "lz4-content-size": Case("plain", with_records(lz4, _lz4_with_content_size(body))),
        "lz4-header-checksum-wrong": Case("plain", with_records(lz4, patched(framed, 6, 0, 1))),
        "lz4-block-of-8-mb": Case("plain", with_records(lz4, framed[:7] + b"\x00\x00\x80\x00" + framed[11:])),
        "lz4-without-end-mark": Case("plain", with_records(lz4, framed[:-4])),
        "zstd-two-frames": Case(
            "plain",
            with_records(zstd, compression.compress(4, body[:5]) + compression.compress(4, body[5:])),
        ),
        "zstd-wrong-checksum": Case("plain", with_records(zstd, _zstd_with_checksum(body))),
        "gzip-two-members": Case(
            "plain", with_records(gz, gzip.compress(body[:5], mtime=0) + gzip.compress(body[5:], mtime=0))
        ),
        "gzip-wrong-crc": Case("plain", with_records(gz, _gzip_with_wrong_crc(body))),
        "zlib-instead-of-gzip": Case("plain", with_records(gz, zlib.compress(body))),
    }


def _gzip_with_wrong_crc(body: bytes) -> bytes:
    packed = bytearray(gzip.compress(body, mtime=0))
    packed[-8] ^= 0xFF
    return bytes(packed)


def _lz4_with_block_checksum(body: bytes, damage: int) -> bytes:
    import cramjam

    compressor = cramjam.lz4.Compressor(content_checksum=False, block_linked=False)
    compressor.compress(body)
    frame = bytearray(compressor.finish())
    assert frame[4] & 0x10, "the compressor writes block checksums"
    frame[-5] ^= damage
    return bytes(frame)


def _lz4_with_content_size(body: bytes) -> bytes:
    block = (len(body) | 0x80000000).to_bytes(4, "little") + body
    head = bytes([0x68, 0x40]) + len(body).to_bytes(8, "little")
    checksum = lz4_header_checksum(memoryview(head))
    return b"\x04\x22\x4d\x18" + head + bytes([checksum]) + block + bytes(4)


def _zstd_with_checksum(body: bytes) -> bytes:
    """A frame of one raw block that announces a content checksum, and a wrong one."""
    block = (len(body) << 3 | 1).to_bytes(3, "little") + body
    return b"\x28\xb5\x2f\xfd" + bytes([0x24, len(body)]) + block + b"\xde\xad\xbe\xef"


def all_cases(now_ms: int) -> dict[str, Case]:
    return {**cases(now_ms), **more_snappy_and_lz4(now_ms)}
