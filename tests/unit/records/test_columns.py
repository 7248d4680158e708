"""Records to Arrow's columns and back, in every kernel there is; the columns are plain buffers here."""

from array import array
from types import ModuleType
from typing import Any

import pytest

from odradek.records.batch import HEADER_BYTES, RecordTuple, build_batch
from odradek.records.twins import columns as twin
from odradek.records.twins.kernel import encode

KERNELS: list[ModuleType] = [twin]
try:
    from odradek.records import _kernel

    KERNELS.append(_kernel)
except ImportError:
    pass

pytestmark = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__.rsplit(".")[-1])

LEAST, MOST = -(1 << 63), (1 << 63) - 1
ROWS: list[RecordTuple] = [
    (1_700_000_000_000, b"k0", b"v0", ()),
    (1_700_000_000_001, None, b"", (("a", b"1"), ("b", None))),
    (1_700_000_000_000, b"", None, (("", b""),)),
]


def ints(*numbers: int) -> bytes:
    return array("i", numbers).tobytes()


def longs(*numbers: int) -> bytes:
    return array("q", numbers).tobytes()


def part(records: Any, base_offset: int = 0, append_time: int = -1) -> tuple[Any, ...]:
    data = encode(records, records[0][0])
    return (data, 0, len(data), len(records), base_offset, records[0][0], append_time)


def strings(*items: bytes | None) -> tuple[bytes, bytes, bytes | None]:
    """A column as Arrow lays it out."""
    offsets = [0]
    for item in items:
        offsets.append(offsets[-1] + len(item or b""))
    bits = sum((item is not None) << i for i, item in enumerate(items))
    validity = None if None not in items else bits.to_bytes((len(items) + 7) // 8, "little")
    return ints(*offsets), b"".join(item or b"" for item in items), validity


# ---- reading ----


def test_records_become_columns(kernel: Any) -> None:
    assert kernel.columns([part(ROWS, 40)], 0, MOST, True) == (
        3,
        longs(40, 41, 42),
        longs(1_700_000_000_000_000, 1_700_000_000_001_000, 1_700_000_000_000_000),
        ints(0, 2, 2, 2),
        b"k0",
        b"\x05",
        ints(0, 2, 2, 2),
        b"v0",
        b"\x03",
        (ints(0, 0, 2, 3), b"\x06", ints(0, 1, 2, 2), b"ab", ints(0, 1, 1, 1), b"1", b"\x05"),
    )


def test_what_is_never_null_has_no_bitmap(kernel: Any) -> None:
    rows = [(0, b"k", b"v", (("h", b"x"),)) for _ in range(9)]
    found = kernel.columns([part(rows)], 0, MOST, True)
    assert (found[5], found[8], found[9][1], found[9][6]) == (None, None, None, None)
    rows = [(0, None, None, (("h", None),)) for _ in range(9)]
    found = kernel.columns([part(rows)], 0, MOST, True)
    assert (found[5], found[8], found[9][1], found[9][6]) == (bytes(2), bytes(2), None, bytes(2))


def test_headers_are_left_out_unless_asked_for(kernel: Any) -> None:
    with_headers = kernel.columns([part(ROWS)], 0, MOST, True)
    without = kernel.columns([part(ROWS)], 0, MOST, False)
    assert without[9] is None
    assert without[:9] == with_headers[:9]


def test_nothing_gives_empty_columns(kernel: Any) -> None:
    nothing = (0, b"", b"", ints(0), b"", None, ints(0), b"", None)
    headers = (ints(0), None, ints(0), b"", ints(0), b"", None)
    assert kernel.columns([], 0, MOST, False) == (*nothing, None)
    assert kernel.columns([], 0, MOST, True) == (*nothing, headers)
    assert kernel.columns([(b"", 0, 0, 0, 0, 0, -1)], 0, MOST, True) == (*nothing, headers)
    assert kernel.columns([part(ROWS)], 3, MOST, True) == (*nothing, headers)


def test_records_outside_the_offsets_are_left_out(kernel: Any) -> None:
    parts = [part(ROWS, base) for base in (10, 13, 20)]
    for first, last, expected in [
        (0, MOST, (10, 11, 12, 13, 14, 15, 20, 21, 22)),
        (11, 20, (11, 12, 13, 14, 15, 20)),
        (12, 12, (12,)),
        (16, 19, ()),
        (20, 10, ()),
    ]:
        rows, offsets, *_ = kernel.columns(parts, first, last, False)
        assert (rows, offsets) == (len(expected), longs(*expected))


def test_parts_may_be_of_one_buffer_or_of_many(kernel: Any) -> None:
    batches = [bytes(build_batch(ROWS)), bytes(build_batch(ROWS[1:]))]
    fetched = b"".join(batches)
    middle, end = len(batches[0]), len(fetched)
    first, second = (3, 0, 1_700_000_000_000, -1), (2, 3, 1_700_000_000_001, -1)
    view = memoryview(fetched)
    expected = kernel.columns(
        [(fetched, HEADER_BYTES, middle, *first), (fetched, middle + HEADER_BYTES, end, *second)],
        0,
        MOST,
        True,
    )
    assert expected[0] == 5
    for parts in [
        [(view, HEADER_BYTES, middle, *first), (view, middle + HEADER_BYTES, end, *second)],
        [
            (bytearray(batches[0]), HEADER_BYTES, middle, *first),
            (view[middle + HEADER_BYTES :], 0, end - middle - HEADER_BYTES, *second),
        ],
        (
            [fetched, HEADER_BYTES, middle, *first],
            (array("b", fetched), middle + HEADER_BYTES, end, *second),
        ),
    ]:
        assert kernel.columns(parts, 0, MOST, True) == expected


def test_the_append_time_stands_for_all_timestamps(kernel: Any) -> None:
    assert kernel.columns([part(ROWS, append_time=7)], 0, MOST, False)[2] == longs(7000, 7000, 7000)
    assert kernel.columns([part(ROWS, append_time=0)], 0, MOST, False)[2] == longs(0, 0, 0)


@pytest.mark.parametrize(
    ("time_ms", "time_us"),
    [
        (-1, -1000),
        (MOST, MOST),
        (LEAST, LEAST),
        (9_223_372_036_854_775, 9_223_372_036_854_775_000),
        (9_223_372_036_854_776, MOST),
        (-9_223_372_036_854_775, -9_223_372_036_854_775_000),
        (-9_223_372_036_854_776, LEAST),
    ],
)
def test_a_time_that_microseconds_cannot_tell_is_cut(kernel: Any, time_ms: int, time_us: int) -> None:
    assert kernel.columns([part([(time_ms, None, None, ())])], 0, 0, False)[2] == longs(time_us)


@pytest.mark.parametrize(
    "changes",
    [
        {1: -1},
        {1: 1},
        {1: 99},
        {1: 5, 2: 5, 3: -1},
        {1: 1_000, 2: 1_000, 3: 0},
        {2: -1},
        {2: 10},
        {2: 1000},
        {3: 2},
        {3: 4},
        {3: -1},
        {3: 1 << 40},
    ],
    ids=str,
)
def test_a_part_must_hold_its_records_and_nothing_else(kernel: Any, changes: dict[int, int]) -> None:
    wrong = list(part(ROWS))
    for field, value in changes.items():
        wrong[field] = value
    with pytest.raises(ValueError, match=r"records|malformed|bytes"):
        kernel.columns([part(ROWS), tuple(wrong)], 0, MOST, True)


def test_a_record_out_of_range_must_be_sound_too(kernel: Any) -> None:
    data, *rest = part(ROWS)
    data[-1] ^= 0x10
    with pytest.raises(ValueError, match="malformed"):
        kernel.columns([(data, *rest)], 100, MOST, False)


@pytest.mark.parametrize("with_headers", [False, True])
def test_a_header_without_a_name_is_refused(kernel: Any, with_headers: bool) -> None:
    record = bytes([16, 0, 0, 0, 1, 1, 2, 1, 1])  # one header: a null name, a null value
    with pytest.raises(ValueError, match="malformed"):
        kernel.columns([(record, 0, len(record), 1, 0, 0, -1)], 0, MOST, with_headers)


@pytest.mark.parametrize("record", [(0, bytes(1 << 20), None, ()), (0, None, bytes(1 << 20), ())])
def test_a_column_too_large_for_its_offsets_is_refused(kernel: Any, record: RecordTuple) -> None:
    with pytest.raises(ValueError, match="larger"):
        kernel.columns([part([record])] * 2048, 0, MOST, False)


def test_header_columns_too_large_for_their_offsets_are_refused(kernel: Any) -> None:
    record: RecordTuple = (0, None, None, (("n" * (1 << 20), None),))
    with pytest.raises(ValueError, match="larger"):
        kernel.columns([part([record])] * 2048, 0, MOST, True)
    assert kernel.columns([part([record])] * 2048, 0, MOST, False)[0] == 2048


def test_a_part_that_is_none_is_refused(kernel: Any) -> None:
    with pytest.raises(TypeError):
        kernel.columns([("text", 0, 0, 0, 0, 0, -1)], 0, MOST, False)
    with pytest.raises(ValueError, match=r"expected|unpack"):
        kernel.columns([(b"", 0, 0, 0)], 0, MOST, False)


# ---- places ----


# Hashes as signed 32-bit numbers, taken from Apache Kafka's own Utils.murmur2.
HASHES = {
    b"21": -973932308,
    b"foobar": -790332482,
    b"a-little-bit-long-string": -985981536,
    b"a-little-bit-longer-string": -1486304829,
    b"lkjh234lh9fiuh90y23oiuhsafujhadof229phr9h19h89h8": -58897971,
    b"abc": 479470107,
}


def test_hashes_are_those_of_java(kernel: Any) -> None:
    assert {key: kernel.murmur2(key) for key in HASHES} == {key: n & 0xFFFFFFFF for key, n in HASHES.items()}
    assert kernel.murmur2(memoryview(b"xabc")[1:]) == HASHES[b"abc"]


def test_keys_are_placed_by_their_hash(kernel: Any) -> None:
    keys = [*HASHES, None]
    for count in (1, 3, 12, 0x7FFFFFFF):
        expected = [(signed & 0x7FFFFFFF) % count for signed in HASHES.values()]
        assert kernel.place_keys(*strings(*keys), 0, 7, count) == ints(*expected, -1)
        assert kernel.place_keys(*strings(None, *keys), 3, 3, count) == ints(*expected[2:5])
    assert kernel.place_keys(b"", b"", None, 0, 0, 1) == b""


@pytest.mark.parametrize(
    ("offsets", "validity", "first", "rows", "count"),
    [
        (ints(0, 1, 2), None, 0, 3, 5),
        (ints(0, 1, 2), None, 1, 2, 5),
        (ints(0, 1, 2), b"", 0, 2, 5),
        (ints(*range(3), *[2] * 10), b"\xff", 0, 9, 5),
        (ints(0, 3), None, 0, 1, 5),
        (ints(1, 0), None, 0, 1, 5),
        (ints(-1, 0), None, 0, 1, 5),
        (ints(1, 0), b"\0", 0, 1, 5),
        (ints(0, 1)[:-1], None, 0, 1, 5),
        (b"", None, 0, 1, 5),
        (ints(0, 1, 2), None, -1, 1, 5),
        (ints(0, 1, 2), None, 0, -1, 5),
        (ints(0, 1, 2), None, 0, 1, 0),
        (ints(0, 1, 2), None, 0, 1, -1),
        (ints(0, 1, 2), None, 0, 1, 1 << 31),
        (ints(0, 1, 2), None, 0, 0x7FFFFFFF, 5),
        (ints(0, 1, 2), None, 0x7FFFFFFF, 1, 5),
    ],
)
def test_keys_that_are_not_in_the_column_are_refused(
    kernel: Any, offsets: bytes, validity: bytes | None, first: int, rows: int, count: int
) -> None:
    with pytest.raises(ValueError, match=r"not between|no partitions|does not have|element"):
        kernel.place_keys(offsets, b"ab", validity, first, rows, count)


def test_rows_are_grouped_in_their_order(kernel: Any) -> None:
    assert kernel.group_rows(ints(2, 0, 2, 3, 0), 5) == (ints(0, 2, 2, 4, 5, 5), ints(1, 4, 0, 2, 3))
    assert kernel.group_rows(b"", 2) == (ints(0, 0, 0), b"")
    assert kernel.group_rows(array("i", [0, 0]), 1) == (ints(0, 2), ints(0, 1))


@pytest.mark.parametrize(
    ("places", "count"),
    [(ints(0, -1), 2), (ints(0, 2), 2), (ints(0, 1)[:-1], 2), (b"", 0), (b"", -1), (ints(-1 << 31), 2)],
)
def test_a_place_that_is_no_partition_is_refused(kernel: Any, places: bytes, count: int) -> None:
    with pytest.raises(ValueError, match=r"not between|not one of|no partitions|no 32-bit"):
        kernel.group_rows(places, count)


# ---- writing ----

KEYS = strings(b"k0", None, b"", b"k3")
VALUES = strings(b"v0", b"", None, b"v3")
HEADERS = (ints(0, 0, 2, 3, 3), b"\x06", *strings(b"a", b"b", b"")[:2], *strings(b"1", None, b""))
TABLE: list[RecordTuple] = [*((0, *row[1:]) for row in ROWS), (0, b"k3", b"v3", ())]


def test_rows_become_records(kernel: Any) -> None:
    built = kernel.build_columns(None, 0, 4, 0, KEYS, VALUES, HEADERS, 0, 1 << 30, 61)
    assert built == (encode(TABLE, 0, 61), 4)
    assert isinstance(built[0], bytearray)
    assert kernel.build_columns(None, 1, 3, 0, KEYS, VALUES, HEADERS, 0, 1 << 30, 0) == (
        encode(TABLE[1:3], 0),
        3,
    )


def test_rows_are_taken_in_the_order_given(kernel: Any) -> None:
    order = ints(3, 1, 1, 0)
    assert kernel.build_columns(order, 0, 4, 0, KEYS, VALUES, HEADERS, 0, 1 << 30, 0) == (
        encode([TABLE[row] for row in (3, 1, 1, 0)], 0),
        4,
    )
    assert kernel.build_columns(order, 1, 2, 0, KEYS, VALUES, HEADERS, 0, 1 << 30, 0) == (
        encode([TABLE[1]], 0),
        2,
    )


def test_rows_of_a_slice_begin_at_its_first(kernel: Any) -> None:
    for order in (None, ints(0, 1)):
        built = kernel.build_columns(order, 0, 2, 2, KEYS, VALUES, HEADERS, 0, 1 << 30, 0)
        assert built == (encode(TABLE[2:], 0), 2)


def test_a_column_may_be_null_all_through(kernel: Any) -> None:
    rows: list[RecordTuple] = [(0, None, None, ())] * 3
    assert kernel.build_columns(None, 0, 3, 9, None, None, None, 0, 1 << 30, 0) == (encode(rows, 0), 3)
    rows = [(0, None, record[2], ()) for record in TABLE]
    assert kernel.build_columns(None, 0, 4, 0, None, VALUES, None, 0, 1 << 30, 0) == (encode(rows, 0), 4)


@pytest.mark.parametrize("delta", [0, -1, 63, 64, 100_000, MOST, LEAST])
def test_records_share_a_timestamp_delta(kernel: Any, delta: int) -> None:
    rows: list[RecordTuple] = [(delta, None, None, ())] * 2
    assert kernel.build_columns(None, 0, 2, 0, None, None, None, delta, 1 << 30, 0) == (encode(rows, 0), 2)


def test_records_end_before_the_limit_but_never_before_the_first(kernel: Any) -> None:
    sizes = [len(encode(TABLE[:n], 0)) for n in range(5)]
    for limit in [LEAST, -1, *range(sizes[4] + 2), MOST]:
        fitting = max(1, *(n for n in range(5) if sizes[n] <= max(0, limit)))
        for room in (0, 61):
            built = kernel.build_columns(None, 0, 4, 0, KEYS, VALUES, HEADERS, 0, limit, room)
            assert built == (encode(TABLE[:fitting], 0, room), fitting)


def test_no_rows_are_no_records(kernel: Any) -> None:
    assert kernel.build_columns(None, 2, 2, 0, KEYS, VALUES, HEADERS, 0, 100, 61) == (bytearray(61), 2)
    assert kernel.build_columns(b"", 0, 0, 5, (b"", b"", None), None, None, 0, 100, 0) == (bytearray(), 0)


def test_a_null_list_has_no_headers_whatever_its_offsets_say(kernel: Any) -> None:
    headers = (ints(0, 3, 3), b"\x02", *HEADERS[2:])
    assert kernel.build_columns(None, 0, 2, 0, None, None, headers, 0, 1 << 30, 0) == (
        encode([(0, None, None, ())] * 2, 0),
        2,
    )


def test_buffers_may_be_longer_than_their_rows_and_of_any_kind(kernel: Any) -> None:
    def pad(buffer: Any) -> Any:
        return None if buffer is None else memoryview(b"x" + bytes(buffer) + bytes(64))[1:]

    key, value, headers = (tuple(map(pad, column)) for column in (KEYS, VALUES, HEADERS))
    order = memoryview(array("i", [0, 1, 2, 3]))
    built = kernel.build_columns(order, 0, 4, 0, key, value, headers, 0, 1 << 30, 0)
    assert built == (encode(TABLE, 0), 4)


def change(column: tuple[Any, ...], field: int, value: bytes | None) -> tuple[Any, ...]:
    return (*column[:field], value, *column[field + 1 :])


@pytest.mark.parametrize(
    "changes",
    [
        {"start": -1},
        {"start": 5},
        {"stop": 5},
        {"stop": -1},
        {"stop": 1 << 31},
        {"first": -1},
        {"first": 1},
        {"first": 0x7FFFFFFF},
        {"room": -1},
        {"order": ints(0, 1, 2)},
        {"order": ints(0, 1, 2, 4)},
        {"order": ints(0, 1, 2, -1)},
        {"order": ints(0, 1, 2, 0x7FFFFFFF)},
        {"order": ints(0, 1, 2, 3)[:-1]},
        {"key": change(KEYS, 0, KEYS[0][:-1])},
        {"key": change(KEYS, 0, b"")},
        {"key": change(KEYS, 1, KEYS[1][:-1])},
        {"key": change(KEYS, 2, b"")},
        {"key": change(KEYS, 0, ints(0, 2, 1, 2, 4))},
        {"value": change(VALUES, 0, ints(-1, 2, 2, 2, 4))},
        {"value": change(VALUES, 0, ints(0, 2, 2, 2, 5))},
        {"value": VALUES[:2]},
        {"headers": change(HEADERS, 0, ints(0, 0, 2, 4, 4))},
        {"headers": change(HEADERS, 0, ints(0, 0, 2, 1, 3))},
        {"headers": change(HEADERS, 0, ints(-1, 0, 2, 3, 3))},
        {"headers": change(HEADERS, 0, ints(0, 0, 2, 3))},
        {"headers": change(HEADERS, 1, b"")},
        {"headers": change(HEADERS, 2, ints(0, 1, 2))},
        {"headers": change(HEADERS, 2, ints(0, 1, 3, 2))},
        {"headers": change(HEADERS, 3, b"")},
        {"headers": change(HEADERS, 4, ints(0, 1, 1))},
        {"headers": change(change(HEADERS, 0, ints(0, 0, 2, 3, 4)), 4, ints(0, 1, 1, 1, 1))},
        {"headers": change(HEADERS, 4, ints(0, 2, 1, 1))},
        {"headers": change(HEADERS, 5, b"")},
        {"headers": change(HEADERS, 6, b"")},
        {"headers": HEADERS[:6]},
    ],
    ids=str,
)
def test_what_is_not_in_its_buffers_is_refused(kernel: Any, changes: dict[str, Any]) -> None:
    given: dict[str, Any] = {"order": None, "start": 0, "stop": 4, "first": 0, "key": KEYS, "value": VALUES}
    given |= {"headers": HEADERS, "delta": 0, "limit": 1 << 30, "room": 0}
    assert kernel.build_columns(*given.values())[1] == 4
    with pytest.raises(
        ValueError, match=r"not between|negative|order|in its columns|element|expected|unpack"
    ):
        kernel.build_columns(*{**given, **changes}.values())


def test_what_is_read_can_be_written_again(kernel: Any) -> None:
    records: list[RecordTuple] = [(7, *record[1:]) for record in ROWS] * 20
    batch = build_batch(records)
    read = kernel.columns([(batch, HEADER_BYTES, len(batch), 60, 0, 7, -1)], 0, MOST, True)
    rows, key, value, headers = read[0], read[3:6], read[6:9], read[9]
    assert (rows, read[2]) == (60, longs(*[7000] * 60))
    built, end = kernel.build_columns(None, 0, rows, 0, key, value, headers, 0, MOST, HEADER_BYTES)
    assert (built[HEADER_BYTES:], end) == (batch[HEADER_BYTES:], 60)
