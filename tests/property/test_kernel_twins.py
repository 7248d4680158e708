"""The native and the Python kernel give the same answer to the same bytes, sound or damaged."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.records.batch import BatchMeta
from odradek.records.twins import kernel as kernel_py
from tests.property.strategies import BYTES, RECORDS, batches, damaged_batches, outcome, record_sections

native = pytest.importorskip("odradek.records._kernel", reason="the native kernel was not built")

SETS = st.lists(
    st.one_of(
        batches(),
        damaged_batches(),
        st.lists(st.one_of(batches(), damaged_batches()), max_size=3).map(b"".join),
        st.binary(max_size=80),
    ),
    max_size=3,
)
BOUNDS = st.sampled_from([(-(1 << 63), (1 << 63) - 1), (1_699_999_995_000, 1_700_000_005_000), (0, 0)])


@settings(deadline=None)
@given(st.binary(max_size=5000), st.integers(0, 0xFFFFFFFF))
def test_crc_is_the_same(data: bytes, value: int) -> None:
    assert native.crc32c(data, value) == kernel_py.crc32c(data, value)
    assert native.crc32c(data) == kernel_py.crc32c(data)


def test_crc_is_the_same_at_every_length_and_alignment() -> None:
    data = bytes(i * 7 + (i >> 8) & 0xFF for i in range(8000))
    view = memoryview(data)
    for length in [*range(420), *range(3060, 3090), 6144, 7000, 7900]:
        for start in (0, 1, 5):
            piece = view[start : start + length]
            assert native.crc32c(piece) == kernel_py.crc32c(piece)


@settings(max_examples=800, deadline=None)
@given(SETS, BOUNDS, st.booleans(), st.sampled_from((-1, 70, 100, 1000)))
def test_validate_is_the_same(
    sets: list[bytes], bounds: tuple[int, int], need_keys: bool, plain_bytes: int
) -> None:
    args = (sets, BatchMeta, *bounds, need_keys)
    assert native.validate(*args) == kernel_py.validate(*args)
    for readonly in (True, False):
        some = [data if readonly else bytearray(data) for data in sets]
        args = (some, BatchMeta, *bounds, need_keys, plain_bytes)
        assert native.validate(*args) == kernel_py.validate(*args)


@settings(max_examples=500, deadline=None)
@given(SETS)
def test_scan_segment_is_the_same(sets: list[bytes]) -> None:
    data = b"".join(sets)
    for position in (0, min(len(data), 61)):
        assert native.scan_segment(data, BatchMeta, position) == kernel_py.scan_segment(
            data, BatchMeta, position
        )


@settings(max_examples=800, deadline=None)
@given(record_sections(), BOUNDS, st.booleans(), st.integers(0, 9))
def test_check_records_and_walk_are_the_same(
    section: tuple[bytes, int], bounds: tuple[int, int], need_keys: bool, position: int
) -> None:
    data, count = section
    position = min(position, len(data)) if position < 3 else 0
    args = (data, count, 1_700_000_000_000, *bounds, need_keys, position)
    assert native.check_records(*args) == kernel_py.check_records(*args)
    for most in (0, 1, 100):
        for least_delta in ((), (2,)):
            args = (data, count, 1_700_000_000_000, *bounds, need_keys, most, *least_delta)
            assert outcome(native.find_outsiders, *args) == outcome(kernel_py.find_outsiders, *args)
    walked = outcome(native.walk, data, count, position)
    assert walked == outcome(kernel_py.walk, data, count, position)
    if isinstance(walked, bytes):
        built = native.build(walked, data, data, data)
        assert built == kernel_py.build(walked, data, data, data)


@settings(deadline=None)
@given(RECORDS, st.integers(0, 70))
def test_encode_is_the_same_and_is_read_back(records: list[Any], room: int) -> None:
    base = records[0][0]
    encoded = native.encode(records, base, room)
    assert encoded == kernel_py.encode(records, base, room)
    assert encoded[:room] == bytes(room)
    spans = native.walk(encoded, len(records), room)
    assert native.build(spans, encoded, encoded, encoded, room) == encoded


@settings(deadline=None)
@given(st.lists(st.integers(-2, 40), min_size=9, max_size=9), BYTES)
def test_build_refuses_the_same_spans(row: list[int], data: bytes | None) -> None:
    spans = b"".join(number.to_bytes(8, "little", signed=True) for number in row)
    args = (spans, data or b"", data or b"", data or b"")
    assert outcome(native.build, *args) == outcome(kernel_py.build, *args)


@pytest.mark.parametrize(
    "row_change", [(0, 1 << 31), (8, 1 << 31), (8, -1), (7, -1), (3, 1 << 62), (2, 1 << 62)]
)
def test_build_refuses_numbers_that_do_not_fit(row_change: tuple[int, int]) -> None:
    row = [0] * kernel_py.COLUMNS
    row[row_change[0]] = row_change[1]
    if row_change[0] == 2:
        row[3] = 1 << 62
    spans = b"".join(number.to_bytes(8, "little", signed=True) for number in row)
    for kernel in (native, kernel_py):
        with pytest.raises(ValueError, match=r"span|range|null"):
            kernel.build(spans, b"abc", b"abc", b"abc")


def test_wrong_arguments_are_refused_not_followed() -> None:
    with pytest.raises(TypeError):
        native.validate([b""], int, 0, 0, False)
    with pytest.raises(TypeError):
        native.validate(["text"], BatchMeta, 0, 0, False)
    with pytest.raises(TypeError):
        native.encode([(0, "text", None, ())], 0)
    with pytest.raises(ValueError, match="not between"):
        native.walk(b"", 0, 1)
    with pytest.raises(ValueError, match="not between"):
        native.find_outsiders(b"", 0, 0, 0, 0, False, 1 << 40)
    with pytest.raises(ValueError, match="cannot hold"):
        native.walk(b"", 1 << 40)
    with pytest.raises(ValueError, match="expected"):
        native.encode([(0, None, None)], 0)
