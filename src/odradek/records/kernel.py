"""The record kernel, native where it was built, Python otherwise; nothing else may import either of the two.

`NATIVE` says which one this process runs. Both have the same functions, findings and columns.
"""

from odradek.records.kernel_py import (
    BAD_COUNT,
    BAD_CRC,
    BAD_LENGTH,
    BAD_MAGIC,
    BAD_OFFSET_DELTA,
    BAD_TIMESTAMP,
    COLUMNS,
    COMPRESSED,
    HEADER_COUNT,
    HEADERS_LENGTH,
    HEADERS_POSITION,
    KEY_LENGTH,
    KEY_POSITION,
    LEGACY,
    MALFORMED,
    NO_KEY,
    OFFSET_DELTA,
    OK,
    PARTIAL,
    TIMESTAMP_DELTA,
    VALUE_LENGTH,
    VALUE_POSITION,
    Headers,
    RecordTuple,
    wrap64,
)

try:
    from odradek.records._kernel import (
        allocate,
        build,
        check_records,
        crc32c,
        encode,
        find_outsiders,
        scan_segment,
        validate,
        walk,
    )

    NATIVE = True
except ImportError:
    from odradek.records.kernel_py import (
        allocate,
        build,
        check_records,
        crc32c,
        encode,
        find_outsiders,
        scan_segment,
        validate,
        walk,
    )

    NATIVE = False

__all__ = [
    "BAD_COUNT",
    "BAD_CRC",
    "BAD_LENGTH",
    "BAD_MAGIC",
    "BAD_OFFSET_DELTA",
    "BAD_TIMESTAMP",
    "COLUMNS",
    "COMPRESSED",
    "HEADERS_LENGTH",
    "HEADERS_POSITION",
    "HEADER_COUNT",
    "KEY_LENGTH",
    "KEY_POSITION",
    "LEGACY",
    "MALFORMED",
    "NATIVE",
    "NO_KEY",
    "OFFSET_DELTA",
    "OK",
    "PARTIAL",
    "TIMESTAMP_DELTA",
    "VALUE_LENGTH",
    "VALUE_POSITION",
    "Headers",
    "RecordTuple",
    "allocate",
    "build",
    "check_records",
    "crc32c",
    "encode",
    "find_outsiders",
    "scan_segment",
    "validate",
    "walk",
    "wrap64",
]
