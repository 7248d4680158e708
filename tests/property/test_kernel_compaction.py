"""Compaction in the native and in the Python kernel: the same maps and batches, and what SipHash must be."""

from array import array
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from odradek.records.batch import RecordTuple, build_batch
from odradek.records.header import HEADER_BYTES
from odradek.records.twins import compaction as twin
from odradek.records.twins.kernel import FULL, MALFORMED, NO_ROOM, OK, SLOT_BYTES, encode
from tests.property.strategies import HEADERS, TIMESTAMPS, damaged_batches, outcome, with_crc

native = pytest.importorskip("odradek.records._kernel", reason="the native kernel was not built")

SECRET = bytes(range(16))
# SipHash-2-4-128 of the bytes 0, 1, 2, … under the key 0, 1, …, 15, from the authors' own table.
VECTORS = {
    0: "a3817f04ba25a8e66df67214c7550293",
    1: "da87c1d86b99af44347659119b22fc45",
}
KEYS = st.one_of(
    st.none(), st.sampled_from([b"", b"a", b"b", b"c", b"dd", b"longer than eight"]), st.binary(max_size=30)
)
VALUES = st.one_of(st.none(), st.binary(max_size=20))
ROWS: st.SearchStrategy[list[RecordTuple]] = st.lists(
    st.tuples(TIMESTAMPS, KEYS, VALUES, HEADERS), min_size=1, max_size=10
)
NOW = 1_700_000_000_000


@st.composite
def some_batches(draw: st.DrawFn) -> bytes:
    """Batches of a compacted log, one behind the other; sometimes one that is damaged among them."""
    offset = draw(st.integers(0, 3))
    parts = []
    for _ in range(draw(st.integers(1, 5))):
        rows = draw(ROWS)
        numbered = draw(st.booleans())
        batch = build_batch(
            rows,
            base_offset=offset,
            codec=draw(st.sampled_from((0, 0, 0, 3))),
            timestamp_type=draw(st.sampled_from((0, 0, 1))),
            producer_id=9 if numbered else -1,
            producer_epoch=1 if numbered else -1,
            base_sequence=5 if numbered else -1,
            transactional=numbered and draw(st.booleans()),
            control=draw(st.integers(0, 9)) == 0,
        )
        if draw(st.booleans()):
            batch[22] |= 0x40  # a delete horizon, around now
            batch[27:35] = draw(st.sampled_from((NOW - 1, NOW, NOW + 1, 0))).to_bytes(8, "big", signed=True)
        if draw(st.integers(0, 9)) == 0:
            del batch[HEADER_BYTES:]
            batch[57:61] = bytes(4)
        parts.append(with_crc(batch))
        offset += len(rows) + draw(st.integers(0, 2))
    if draw(st.integers(0, 3)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(damaged_batches((0, 0, 3))))
    data = b"".join(parts)
    return data[: len(data) - draw(st.sampled_from((0, 0, 0, 1, 30, 70)))]


@st.composite
def rules(draw: st.DrawFn, data: bytes) -> tuple[Any, ...]:
    """A map of the data's own keys up to somewhere, and the rest of what decides."""
    slots = twin.offset_map(draw(st.sampled_from((0, 1, 40))))
    twin.map_batches(data, 0, draw(st.integers(0, 5)), slots, SECRET, 0, draw(st.sampled_from((1, 5, 100))))
    last_offsets = array("q", sorted(draw(st.lists(st.integers(0, 40), max_size=5)))).tobytes()
    horizon = draw(st.sampled_from((NOW + 86_400_000, NOW, (1 << 63) - 1)))
    return slots, SECRET, draw(st.integers(-1, 60)), NOW, horizon, last_offsets


@pytest.mark.parametrize("kernel", [native, twin])
@pytest.mark.parametrize("size", sorted(VECTORS))
def test_the_hash_is_siphash(kernel: Any, size: int) -> None:
    slots = kernel.offset_map(1)
    record = encode([(0, bytes(range(size)), b"", ())], 0)
    assert kernel.map_records(record, 1, 41, 0, slots, SECRET, 0, 1) == (1, 0)
    assert slots[:16].hex() == VECTORS[size]
    assert int.from_bytes(slots[16:], "little") == 42
    assert kernel.newest_offset(slots, SECRET, bytes(range(size))) == 41


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_maps_are_the_same(data: st.DataObject) -> None:
    chunk = data.draw(some_batches())
    start, slots, most = (
        data.draw(st.integers(0, 8)),
        data.draw(st.integers(0, 12)),
        data.draw(st.integers(0, 9)),
    )
    position = data.draw(st.sampled_from((0, 0, min(61, len(chunk)))))
    maps = [kernel.offset_map(slots) for kernel in (native, twin)]
    found = [
        kernel.map_batches(chunk, position, start, slots, SECRET, 0, most)
        for kernel, slots in zip((native, twin), maps, strict=True)
    ]
    assert found[0] == found[1]
    assert maps[0] == maps[1]
    for key in (b"", b"a", b"dd", b"unknown"):
        assert native.newest_offset(maps[0], SECRET, key) == twin.newest_offset(maps[1], SECRET, key)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_stays_of_batches_is_the_same(data: st.DataObject) -> None:
    chunk = data.draw(some_batches())
    by = data.draw(rules(chunk))
    room, one = data.draw(st.sampled_from((0, 100, 200, 20_000))), data.draw(st.booleans())
    position, filled = data.draw(st.sampled_from(((0, 0), (0, 7), (min(61, len(chunk)), 0))))
    outs = [bytearray(room + 7) for _ in range(2)]
    found = [
        kernel.retain_batches(chunk, position, out, filled, by, one)
        for kernel, out in zip((native, twin), outs, strict=True)
    ]
    assert found[0] == found[1]
    filled = found[0][2]
    assert outs[0][:filled] == outs[1][:filled]
    state = (11, data.draw(st.sampled_from((0, 100, 4096))), 50, -1, 0)
    written = bytes(outs[0][7:filled]) if filled > 7 else b""
    assert native.index_batches(written, *state) == twin.index_batches(written, *state)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_what_stays_of_records_is_the_same(data: st.DataObject) -> None:
    batch = data.draw(st.one_of(ROWS.map(lambda rows: bytes(build_batch(rows))), damaged_batches((0,))))
    by = data.draw(rules(batch))
    count = int.from_bytes(batch[57:61], "big", signed=True) if len(batch) >= HEADER_BYTES else 1
    args = (
        batch[HEADER_BYTES:],
        data.draw(st.sampled_from((count, count, count + 1, 0, -1, 1 << 40))),
        data.draw(st.integers(0, 3)),
        data.draw(TIMESTAMPS),
        data.draw(TIMESTAMPS),
        data.draw(st.sampled_from((0, 8, 0x40, 0x48, 0x53))),
        by,
    )
    assert outcome(native.retain_records, *args) == outcome(twin.retain_records, *args)
    mapped = (*args[:3], data.draw(st.integers(0, 5)))
    if args[1] < 1000:
        maps = [bytearray(by[0]) for _ in range(2)]
        assert outcome(native.map_records, *mapped, maps[0], SECRET, 1, 9) == outcome(
            twin.map_records, *mapped, maps[1], SECRET, 1, 9
        )
        assert maps[0] == maps[1]


@pytest.mark.parametrize("kernel", [native, twin])
def test_the_ends_of_a_run_are_told_apart(kernel: Any) -> None:
    plain = bytes(build_batch([(NOW, b"a", b"1", ()), (NOW, b"b", b"2", ())]))
    slots = kernel.offset_map(8)
    assert kernel.map_batches(plain, 0, 0, slots, SECRET, 0, 1) == (0, FULL, 1, -1)
    assert kernel.map_batches(plain, 0, 0, slots, SECRET, 1, 8) == (len(plain), OK, 2, 1)
    assert kernel.map_batches(plain, 0, 2, slots, SECRET, 2, 8) == (len(plain), OK, 2, -1)
    by = (slots, SECRET, 1, NOW, NOW, b"")
    assert kernel.retain_batches(plain, 0, bytearray(80), 0, by, False)[1] == NO_ROOM
    lying = bytearray(plain)
    lying[57:61] = (3).to_bytes(4, "big")
    assert kernel.retain_batches(with_crc(lying), 0, bytearray(8000), 0, by, False)[1] == MALFORMED


@pytest.mark.parametrize("kernel", [native, twin])
@pytest.mark.parametrize(
    "arguments", [(bytearray(SLOT_BYTES + 1), SECRET), (bytearray(SLOT_BYTES), b"short")]
)
def test_what_is_no_map_or_no_secret_is_refused(kernel: Any, arguments: tuple[Any, Any]) -> None:
    with pytest.raises(ValueError, match="no map"):
        kernel.newest_offset(*arguments, b"a")
    with pytest.raises(ValueError, match="no map"):
        kernel.map_batches(b"", 0, 0, *arguments, 0, 1)
    with pytest.raises(ValueError, match="no map"):
        kernel.retain_batches(b"", 0, bytearray(1), 0, (*arguments, 0, 0, 0, b""), False)
    with pytest.raises(ValueError, match="no map"):
        kernel.retain_records(b"", 0, 0, 0, 0, 0, (*arguments, 0, 0, 0, b""))
