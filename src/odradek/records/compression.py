"""Compresses and decompresses the records of a batch, by Kafka's codec number. The codecs are in codecs/.

Decompression has a limit, because 1 MB of gzip can expand to 1 GB. Apache Kafka has no such limit. Records
above it get MESSAGE_TOO_LARGE: a Java producer then splits the batch and retries.
"""

from typing import Final, Protocol

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer
from odradek.records.codecs import CodecError, TooLargeError, gzip, lz4, snappy, zstd

NONE: Final = 0
GZIP: Final = 1
SNAPPY: Final = 2
LZ4: Final = 3
ZSTD: Final = 4

CODEC_NAMES: Final = ("none", "gzip", "snappy", "lz4", "zstd")
CODEC_IDS: Final = {name: codec for codec, name in enumerate(CODEC_NAMES)}

# 64 times the default of max.message.bytes.
DEFAULT_DECOMPRESS_LIMIT_BYTES: Final = 64 << 20


class _Codec(Protocol):
    def compress(self, data: memoryview, level: int | None) -> bytes: ...
    def decompress(self, data: memoryview, limit_bytes: int) -> bytearray: ...
    def bound(self, data: memoryview) -> int: ...


_CODECS: dict[int, _Codec] = {GZIP: gzip, SNAPPY: snappy, LZ4: lz4, ZSTD: zstd}


def compress(codec: int, data: Buffer, level: int | None = None) -> bytes:
    """Compress in the form that every Kafka client reads. A level of None is the codec's default."""
    if codec == NONE:
        return bytes(data)
    return _codec(codec).compress(memoryview(data), level)


def decompress(codec: int, data: Buffer, limit_bytes: int = DEFAULT_DECOMPRESS_LIMIT_BYTES) -> Buffer:
    """Decompress. Raises CORRUPT_MESSAGE for invalid input, MESSAGE_TOO_LARGE above the limit."""
    if codec == NONE:
        return data
    try:
        return _codec(codec).decompress(memoryview(data), limit_bytes)
    except TooLargeError:
        problem: CodecError | None = None
    except CodecError as e:
        problem = CodecError(*e.args)
    # Not raised above: the error's context would keep the codec's frames, and with them the decompressed
    # data.
    if problem is None:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"The records decompress to more than the limit of {limit_bytes} bytes.",
        )
    raise KafkaError(
        ErrorCode.CORRUPT_MESSAGE, f"Failed to decompress {CODEC_NAMES[codec]} records: {problem}."
    )


def bound(codec: int, data: Buffer) -> int:
    """An upper bound of the decompressed size; 0 if the data will be refused at once."""
    if codec not in _CODECS:
        return len(data) if codec == NONE else 0
    try:
        return _CODECS[codec].bound(memoryview(data))
    except CodecError:
        return 0


def _codec(codec: int) -> _Codec:
    found = _CODECS.get(codec)
    if found is None:
        raise KafkaError(ErrorCode.UNSUPPORTED_COMPRESSION_TYPE, f"Unknown compression type id: {codec}")
    return found
