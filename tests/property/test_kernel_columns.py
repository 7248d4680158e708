"""Columns in the native and in the Python kernel: the same answers to the same bytes, sound or damaged."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.records.batch import HEADER_BYTES, BatchMeta, RecordTuple, iter_batches, iter_records
from odradek.records.twins import columns as twin
from odradek.records.twins.kernel import encode
from tests.property.strategies import BYTES, HEADERS, RECORDS, TIMESTAMPS, batches, outcome, record_sections

native = pytest.importorskip("odradek.records._kernel", reason="the native kernel was not built")

LEAST, MOST = -(1 << 63), (1 << 63) - 1
OFFSETS = st.one_of(st.integers(-2, 12), st.sampled_from((LEAST, -(1 << 31), 1 << 31, MOST)))
NUMBERS = st.one_of(st.integers(-2, 60), st.sampled_from((-(1 << 31), (1 << 31) - 1)))
ROWS: st.SearchStrategy[list[RecordTuple]] = st.lists(
    st.tuples(st.just(0), BYTES, BYTES, HEADERS), max_size=12
)


@st.composite
def parts(draw: st.DrawFn) -> list[Any]:
    """Sections that hold, or nearly hold, the records they are said to, in one buffer or each in its own."""
    drawn = draw(st.lists(record_sections(), max_size=4))
    one = b"".join(data for data, _ in drawn)
    found, position = [], 0
    for data, count in drawn:
        shared = draw(st.booleans())
        start = position if shared else 0
        end = start + len(data) + draw(st.sampled_from((0, 0, 0, 0, 0, 0, 0, 0, 1, -1)))
        base = (draw(OFFSETS), draw(TIMESTAMPS), draw(st.sampled_from((-1, -1, -2, 0, 5, MOST))))
        found.append((one if shared else bytearray(data), start, end, count, *base))
        position += len(data)
    return found


@st.composite
def tables(draw: st.DrawFn, damaged: bool) -> tuple[list[RecordTuple], list[bytes | None]]:
    """Rows, and the buffers of their columns: keys, values, headers; with a little damage if asked."""
    rows = draw(ROWS)
    data = encode(rows, 0)
    read = twin.columns([(data, 0, len(data), len(rows), 0, 0, -1)], 0, MOST, True)
    assert read[9] is not None
    buffers: list[bytes | None] = [*read[3:9], *read[9]]
    for _ in range(draw(st.integers(1, 3)) if damaged else 0):
        i = draw(st.integers(0, len(buffers) - 1))
        buffer = bytearray(buffers[i] or b"")
        damage = draw(st.sampled_from(("number", "bits", "cut", "pad", "no bitmap")))
        if damage == "number" and len(buffer) >= 4:
            at = draw(st.integers(0, len(buffer) // 4 - 1)) * 4
            buffer[at : at + 4] = draw(NUMBERS).to_bytes(4, "little", signed=True)
        elif damage == "bits" and buffer:
            buffer[draw(st.integers(0, len(buffer) - 1))] = draw(st.integers(0, 255))
        elif damage == "cut":
            del buffer[draw(st.integers(0, len(buffer))) :]
        elif damage == "pad":
            buffer += bytes(draw(st.integers(1, 9)))
        buffers[i] = None if damage == "no bitmap" and i in (2, 5, 7, 12) else bytes(buffer)
    return rows, buffers


def unpack(buffers: list[bytes | None]) -> tuple[Any, Any, Any]:
    return tuple(buffers[:3]), tuple(buffers[3:6]), tuple(buffers[6:])


@settings(max_examples=400, deadline=None)
@given(parts(), OFFSETS, OFFSETS, st.booleans())
def test_columns_are_the_same(some: list[Any], first: int, last: int, with_headers: bool) -> None:
    for bounds in ((LEAST, MOST), (first, last)):
        args = (some, *bounds, with_headers)
        assert outcome(native.columns, *args) == outcome(twin.columns, *args)


@settings(max_examples=300, deadline=None)
@given(st.lists(batches((0,)), max_size=4), st.integers(0, 1 << 40), st.data())
def test_columns_hold_what_the_batches_hold(some: list[bytes], base_offset: int, data: st.DataObject) -> None:
    fetched = b"".join(some)
    sections, records = [], []
    for batch in iter_batches(fetched):
        assert isinstance(batch, BatchMeta)
        end = batch.position + batch.size
        meta = (batch.record_count, base_offset, batch.base_timestamp, -1)
        sections.append((fetched, batch.position + HEADER_BYTES, end, *meta))
        for i, record in enumerate(iter_records(fetched, batch)):
            records.append((base_offset + i, record))
        base_offset += batch.record_count + data.draw(st.integers(0, 3))
    first = data.draw(st.sampled_from([LEAST, *(offset for offset, _ in records)]))
    expected = [(offset, record) for offset, record in records if offset >= first]
    rows, offsets, timestamps, *columns, headers = native.columns(sections, first, MOST, True)
    assert array("q", offsets).tolist() == [offset for offset, _ in expected]
    assert array("q", timestamps).tolist() == [
        max(LEAST, min(MOST, record.timestamp * 1000)) for _, record in expected
    ]
    assert strings(*columns[:3], rows) == [record.key for _, record in expected]
    assert strings(*columns[3:], rows) == [record.value for _, record in expected]
    starts = array("i", headers[0]).tolist()
    assert (headers[1] is None) == all(record.headers for _, record in expected)
    assert headers[1] is None or bits(headers[1], rows) == [bool(record.headers) for _, record in expected]
    names = [(name or b"").decode() for name in strings(headers[2], headers[3], None, starts[-1])]
    pairs = list(zip(names, strings(*headers[4:], starts[-1]), strict=True))
    for i, (_, record) in enumerate(expected):
        assert tuple(pairs[starts[i] : starts[i + 1]]) == tuple(record.headers)


def bits(bitmap: bytes, rows: int) -> list[bool]:
    assert len(bitmap) == (rows + 7) // 8
    assert int.from_bytes(bitmap, "little") < 1 << rows
    return [bool(bitmap[i // 8] >> i % 8 & 1) for i in range(rows)]


def strings(offsets: bytes, data: bytes, validity: bytes | None, rows: int) -> list[bytes | None]:
    starts = array("i", offsets)
    assert (len(starts), starts[0], starts[-1]) == (rows + 1, 0, len(data))
    valid = [True] * rows if validity is None else bits(validity, rows)
    return [data[starts[i] : starts[i + 1]] if valid[i] else None for i in range(rows)]


@settings(max_examples=300, deadline=None)
@given(tables(damaged=False), st.data())
def test_rows_are_built_the_same_and_are_read_back(
    table: tuple[list[RecordTuple], list[bytes | None]], data: st.DataObject
) -> None:
    rows, buffers = table
    columns = unpack(buffers)
    first = data.draw(st.integers(0, len(rows)))
    count = len(rows) - first
    order = data.draw(
        st.one_of(st.none(), st.permutations(range(count)).map(lambda numbers: array("i", numbers)))
    )
    limit, room = data.draw(st.sampled_from((0, 100, 400, MOST))), data.draw(st.sampled_from((0, 61)))
    at, taken = 0, []
    while at < count:
        args = (order, at, count, first, *columns, 0, limit, room)
        built, after = native.build_columns(*args)
        assert (built, after) == twin.build_columns(*args)
        assert after == at + 1 or len(built) - room <= limit
        numbers = range(at, after) if order is None else order[at:after]
        assert built == encode([rows[first + number] for number in numbers], 0, room)
        section = (built, room, len(built), after - at, 0, 0, -1)
        taken.append(native.columns([section], 0, MOST, True))
        at = after
    assert sum(some[0] for some in taken) == count
    if order is None and first == 0 and len(taken) == 1:
        assert [*taken[0][3:9], *taken[0][9]] == buffers


@settings(max_examples=800, deadline=None)
@given(tables(damaged=True), st.integers(0, 3), st.integers(0, 14), st.lists(NUMBERS, max_size=12), st.data())
def test_damaged_columns_are_refused_or_built_the_same(
    table: tuple[list[RecordTuple], list[bytes | None]],
    first: int,
    stop: int,
    numbers: list[int],
    data: st.DataObject,
) -> None:
    key, value, headers = unpack(table[1])
    columns = [data.draw(st.sampled_from((one, one, None))) for one in (key, value, headers)]
    limit = data.draw(st.sampled_from((0, 100, MOST)))
    for order in (None, array("i", numbers), array("i", range(stop))):
        args = (order, data.draw(st.integers(-1, 3)), stop, first, *columns, 0, limit, 0)
        assert outcome(native.build_columns, *args) == outcome(twin.build_columns, *args)


@settings(max_examples=400, deadline=None)
@given(tables(damaged=True), st.integers(0, 3), st.integers(0, 14), st.integers(-1, 9), st.lists(NUMBERS))
def test_places_and_orders_are_the_same(
    table: tuple[list[RecordTuple], list[bytes | None]],
    first: int,
    rows: int,
    partition_count: int,
    numbers: list[int],
) -> None:
    args = (*table[1][:3], first, rows, partition_count)
    placed = outcome(native.place_keys, *args)
    assert placed == outcome(twin.place_keys, *args)
    for places in (placed, array("i", numbers), array("i", (n % 7 for n in numbers)), b"abc"):
        if places is not ValueError:
            assert outcome(native.group_rows, places, partition_count) == outcome(
                twin.group_rows, places, partition_count
            )


@settings(deadline=None)
@given(st.binary(max_size=100), RECORDS)
def test_hashes_are_the_same(data: bytes, records: list[RecordTuple]) -> None:
    assert native.murmur2(data) == twin.murmur2(data)
    keys = [record[1] for record in records]
    section = encode(records, records[0][0])
    read = native.columns([(section, 0, len(section), len(keys), 0, 0, -1)], 0, MOST, False)
    places = native.place_keys(*read[3:6], 0, len(keys), 7)
    assert array("i", places).tolist() == [
        -1 if key is None else (twin.murmur2(key) & 0x7FFFFFFF) % 7 for key in keys
    ]
