"""The native record kernel's types; its functions are described in kernel_py.py and its siblings."""

from collections.abc import Sequence

from odradek.core.types import Buffer
from odradek.records.twins.columns import Column, HeaderColumns, Part, Rows
from odradek.records.twins.kernel import M, RecordTuple, RetentionRules

def crc32c(data: Buffer, value: int = 0, /) -> int: ...
def validate(
    sets: Sequence[Buffer],
    meta: type[M],
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    plain_bytes: int = -1,
    /,
) -> list[M | list[tuple[int, int, int, M | None]]]: ...
def check_records(
    data: Buffer,
    count: int,
    base_timestamp: int,
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    position: int = 0,
    /,
) -> tuple[int, int, int]: ...
def find_outsiders(
    data: Buffer,
    count: int,
    base_timestamp: int,
    min_timestamp: int,
    max_timestamp: int,
    need_keys: bool,
    most: int,
    least_delta: int = -(1 << 31),
    /,
) -> tuple[int, int, list[tuple[int, int, int, int]]]: ...
def scan_segment(data: Buffer, meta: type[M], position: int = 0, /) -> tuple[list[M], int, int]: ...
def walk(data: Buffer, count: int, position: int = 0, /) -> bytes: ...
def build(spans: Buffer, keys: Buffer, values: Buffer, headers: Buffer, room: int = 0, /) -> bytearray: ...
def allocate(size: int, /) -> bytearray: ...
def encode(records: Sequence[RecordTuple], base_timestamp: int, room: int = 0, /) -> bytearray: ...
def offset_map(slots: int, /) -> bytearray: ...
def newest_offset(slots: Buffer, secret: Buffer, key: Buffer, /) -> int: ...
def map_batches(
    data: Buffer,
    position: int,
    start_offset: int,
    slots: bytearray,
    secret: Buffer,
    used: int,
    most: int,
    /,
) -> tuple[int, int, int, int]: ...
def map_records(
    records: Buffer,
    count: int,
    base_offset: int,
    start_offset: int,
    slots: bytearray,
    secret: Buffer,
    used: int,
    most: int,
    /,
) -> tuple[int, int]: ...
def retain_batches(
    data: Buffer, position: int, out: bytearray, filled: int, rules: RetentionRules, one: bool, /
) -> tuple[int, int, int]: ...
def retain_records(
    records: Buffer,
    count: int,
    base_offset: int,
    base_timestamp: int,
    max_timestamp: int,
    attributes: int,
    rules: RetentionRules,
    /,
) -> tuple[int, int, int, int, bytearray] | None: ...
def index_batches(
    data: Buffer, position: int, interval: int, since: int, largest: int, largest_offset: int, /
) -> tuple[list[tuple[int, int, int, int]], int, int, int, int]: ...
def columns(parts: Sequence[Part], first_offset: int, last_offset: int, with_headers: bool, /) -> Rows: ...
def murmur2(data: Buffer, /) -> int: ...
def place_keys(
    key_offsets: Buffer,
    keys: Buffer,
    key_validity: Buffer | None,
    first: int,
    rows: int,
    partition_count: int,
    /,
) -> bytes: ...
def group_rows(places: Buffer, partition_count: int, /) -> tuple[bytes, bytes]: ...
def build_columns(
    order: Buffer | None,
    start: int,
    stop: int,
    first: int,
    key_column: Column | None,
    value_column: Column | None,
    header_columns: HeaderColumns | None,
    timestamp_delta: int,
    limit: int,
    room: int,
    /,
) -> tuple[bytearray, int]: ...
