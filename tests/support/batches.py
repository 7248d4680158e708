"""Record batches made by hand for tests, independent of the package under test: right ones and wrong ones."""

import struct
import time
from collections.abc import Sequence
from typing import Any

from crc32c import crc32c


def varint(value: int) -> bytes:
    zigzag = (value << 1) ^ (value >> 63)
    out = bytearray()
    while zigzag > 127:
        out.append(zigzag & 127 | 128)
        zigzag >>= 7
    out.append(zigzag)
    return bytes(out)


def _sized(data: bytes | None) -> bytes:
    return varint(-1) if data is None else varint(len(data)) + data


def record(
    index: int,
    value: bytes | None,
    key: bytes | None = None,
    headers: Sequence[tuple[str, bytes | None]] = (),
    timestamp_delta: int = 0,
) -> bytes:
    body = b"\0" + varint(timestamp_delta) + varint(index) + _sized(key) + _sized(value)
    body += varint(len(headers)) + b"".join(_sized(k.encode()) + _sized(v) for k, v in headers)
    return varint(len(body)) + body


def batch(
    values: Sequence[bytes | None] = (b"value",),
    *,
    key: bytes | None = None,
    payload: bytes | None = None,
    count: int | None = None,
    attributes: int = 0,
    timestamp: int | None = None,
    producer_id: int = -1,
    producer_epoch: int = -1,
    base_sequence: int = -1,
    base_offset: int = 0,
    magic: int = 2,
    crc_xor: int = 0,
    **over: Any,
) -> bytes:
    """A v2 batch. `payload` replaces the encoded records, `over` single header fields, for what must fail."""
    n = len(values) if count is None else count
    now_ms = int(time.time() * 1000) if timestamp is None else timestamp
    if payload is None:
        payload = b"".join(record(i, v, key) for i, v in enumerate(values))
    after_crc = struct.pack(
        ">hiqqqhii",
        attributes,
        over.get("last_offset_delta", n - 1),
        now_ms,
        over.get("max_timestamp", now_ms),
        producer_id,
        producer_epoch,
        base_sequence,
        n,
    )
    after_crc += payload
    size = over.get("batch_length", 9 + len(after_crc))
    head = struct.pack(">qiibI", base_offset, size, -1, magic, crc32c(after_crc) ^ crc_xor)
    return head + after_crc
