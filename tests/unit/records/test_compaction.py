"""What compaction keeps of batches, in every kernel there is: Kafka's rules, batch by batch."""

from array import array
from types import ModuleType
from typing import Any

import pytest

from odradek.records.batch import (
    HEADER_BYTES,
    LOG_APPEND_TIME,
    BatchMeta,
    Record,
    RecordTuple,
    build_batch,
    iter_batches,
    iter_records,
)
from odradek.records.header import DELETE_HORIZON_FLAG, crc_matches
from odradek.records.kernel import crc32c
from odradek.records.twins import compaction as twin
from odradek.records.twins.kernel import FULL, MALFORMED, NO_ROOM, OK, TRANSACTIONAL, encode

KERNELS: list[ModuleType] = [twin]
try:
    from odradek.records import _kernel

    KERNELS.append(_kernel)
except ImportError:
    pass

pytestmark = pytest.mark.parametrize("kernel", KERNELS, ids=lambda kernel: kernel.__name__.rsplit(".")[-1])

SECRET = bytes(range(16))
NOW = 1_700_000_000_000
HORIZON = NOW + 86_400_000
GROWTH_BYTES = 14  # what a record may grow by when its time is told from another one


def with_crc(batch: bytearray) -> bytes:
    batch[17:21] = crc32c(memoryview(batch)[21:]).to_bytes(4, "big")
    return bytes(batch)


def row(key: bytes | None, value: bytes | None = b"v", time: int = NOW) -> RecordTuple:
    return time, key, value, ()


def newest(kernel: Any, data: bytes, start: int = 0) -> bytearray:
    slots = kernel.offset_map(16)
    _, finding, _, _ = kernel.map_batches(data, 0, start, slots, SECRET, 0, 16)
    assert finding == OK
    return bytearray(slots)


def keep(kernel: Any, data: bytes, newer: bytes = b"", **given: Any) -> tuple[int, int, bytes]:
    """(where it ended, why, what stays) of batches, judged by their own keys and by newer ones."""
    known = {"latest": 1_000, "now": NOW, "named": (), "one": False, "room": 10_000, **given}
    slots = newest(kernel, known.get("map", data + newer))
    rules = (slots, SECRET, known["latest"], known["now"], HORIZON, array("q", known["named"]).tobytes())
    out = bytearray(known["room"])
    position, finding, filled = kernel.retain_batches(data, 0, out, 0, rules, known["one"])
    return position, finding, bytes(out[:filled])


def kept(kernel: Any, data: bytes, newer: bytes = b"", **given: Any) -> list[tuple[BatchMeta, list[Record]]]:
    position, finding, out = keep(kernel, data, newer, **given)
    assert (position, finding) == (len(data), OK)
    batches = list(iter_batches(out))
    assert all(crc_matches(out, batch) for batch in batches)
    assert sum(batch.size for batch in batches) == len(out)
    return [(batch, list(iter_records(out, batch))) for batch in batches]


def test_the_newest_record_of_a_key_stays_at_its_own_offset(kernel: Any) -> None:
    data = build_batch([row(b"a"), row(b"b", b"old"), row(b"b", b"new"), row(b"c")], base_offset=40)
    newer = build_batch([row(b"c")], base_offset=44)
    ((batch, records),) = kept(kernel, bytes(data), bytes(newer))
    assert [(r.offset, r.key, r.value) for r in records] == [(40, b"a", b"v"), (42, b"b", b"new")]
    assert (batch.base_offset, batch.last_offset, batch.record_count) == (40, 43, 2)


def test_a_batch_of_which_all_stays_is_not_rewritten(kernel: Any) -> None:
    data = bytes(build_batch([row(b"a"), row(b"b")], base_offset=7, producer_id=3, producer_epoch=0))
    assert keep(kernel, data) == (len(data), OK, data)


def test_batches_stay_one_behind_the_other(kernel: Any) -> None:
    data = b"".join(bytes(build_batch([row(key)], base_offset=i)) for i, key in enumerate([b"a", b"b", b"a"]))
    assert [batch.base_offset for batch, _ in kept(kernel, data)] == [1, 2]


def test_a_record_without_a_key_goes_and_one_of_an_empty_key_stays(kernel: Any) -> None:
    data = build_batch([row(None), row(b""), row(b"a")])
    ((_, records),) = kept(kernel, bytes(data))
    assert [record.key for record in records] == [b"", b"a"]


def test_beyond_the_latest_offset_everything_stays(kernel: Any) -> None:
    rows = [row(None), row(b"a"), row(b"a"), row(b"a")]
    data = bytes(build_batch(rows, base_offset=10))
    ((_, records),) = kept(kernel, data, latest=11)
    assert [record.offset for record in records] == [12, 13]
    assert keep(kernel, data, latest=9)[2] == data


def test_a_new_tombstone_stays_and_gets_a_horizon(kernel: Any) -> None:
    data = build_batch([row(b"a", b"v", NOW - 9), row(b"b", None, NOW - 5)])
    ((batch, records),) = kept(kernel, bytes(data))
    assert batch.has_delete_horizon
    assert batch.base_timestamp == HORIZON
    assert batch.max_timestamp == NOW - 5
    assert [(r.key, r.value, r.timestamp) for r in records] == [
        (b"a", b"v", NOW - 9),
        (b"b", None, NOW - 5),
    ]


def test_an_empty_value_is_no_tombstone(kernel: Any) -> None:
    data = bytes(build_batch([row(b"a", b"")]))
    assert keep(kernel, data)[2] == data


def test_a_tombstone_goes_at_its_horizon_and_not_before(kernel: Any) -> None:
    data = build_batch([row(b"a"), row(b"b", None), row(b"c")])
    ((first, _),) = kept(kernel, bytes(data))
    rewritten = keep(kernel, bytes(data))[2]
    assert keep(kernel, rewritten, now=HORIZON - 1)[2] == rewritten
    ((batch, records),) = kept(kernel, rewritten, now=HORIZON)
    assert [record.key for record in records] == [b"a", b"c"]
    assert [record.timestamp for record in records] == [NOW, NOW]
    assert (batch.base_timestamp, batch.has_delete_horizon) == (first.base_timestamp, True)


def test_a_rewritten_batch_has_the_times_of_what_stays(kernel: Any) -> None:
    times = [NOW + 9, NOW + 2, NOW + 5, NOW + 3]
    data = build_batch(
        [row(key, b"v", time) for key, time in zip((b"x", b"a", b"b", b"c"), times, strict=True)]
    )
    newer = build_batch([row(b"x")], base_offset=4)
    ((batch, records),) = kept(kernel, bytes(data), bytes(newer))
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW + 2, NOW + 5)
    assert [record.timestamp for record in records] == times[1:]


def test_a_batch_stamped_by_its_leader_keeps_its_stamp(kernel: Any) -> None:
    rows = [row(b"x", b"v", NOW + 50), row(b"a", b"v", NOW + 2)]
    data = build_batch(rows, timestamp_type=LOG_APPEND_TIME)
    newer = build_batch([row(b"x")], base_offset=2)
    ((batch, records),) = kept(kernel, bytes(data), bytes(newer))
    assert batch.timestamp_type == LOG_APPEND_TIME
    assert (batch.base_timestamp, batch.max_timestamp) == (NOW + 50, NOW + 50)
    assert [record.timestamp for record in records] == [NOW + 50]


def test_a_batch_without_records_stays_only_where_it_is_named(kernel: Any) -> None:
    """The last batch of a producer keeps its sequence, the last one of a cleaning its offset."""
    fields: dict[str, Any] = {
        "producer_id": 5,
        "producer_epoch": 1,
        "base_sequence": 70,
        "transactional": True,
    }
    data = bytes(
        build_batch([row(b"a"), row(b"a")], base_offset=20, timestamp_type=LOG_APPEND_TIME, **fields)
    )
    newer = bytes(build_batch([row(b"a")], base_offset=22))
    by = {"map": bytes(build_batch([row(b"a")], base_offset=22)), "one": True}
    others: list[tuple[int, ...]] = [(), (20,), (22,), (0, 20, 22, 40)]
    for named in others:
        assert keep(kernel, data, newer, named=named, **by) == (len(data), OK, b"")
    own: list[tuple[int, ...]] = [(21,), (0, 21), (3, 21, 40)]
    for named in own:
        ((batch, records),) = kept(kernel, data, newer, named=named, **by)
        assert records == []
        assert (batch.size, batch.base_offset, batch.last_offset) == (HEADER_BYTES, 20, 21)
        assert (batch.producer_id, batch.producer_epoch, batch.last_sequence) == (5, 1, 71)
        assert (batch.base_timestamp, batch.max_timestamp) == (-1, NOW)
        assert batch.is_transactional
        assert batch.timestamp_type == LOG_APPEND_TIME


def test_an_emptied_batch_has_no_horizon(kernel: Any) -> None:
    data = keep(kernel, bytes(build_batch([row(b"a", None)], base_offset=20)))[2]
    assert data[22] & DELETE_HORIZON_FLAG
    ((batch, _),) = kept(kernel, data, now=HORIZON, named=(20,))
    assert batch.attributes == 0


def test_an_empty_batch_in_the_log_goes_unless_it_is_named(kernel: Any) -> None:
    data = keep(
        kernel,
        bytes(build_batch([row(b"a")], base_offset=3)),
        map=bytes(build_batch([row(b"a")], base_offset=9)),
        named=(3,),
    )[2]
    assert len(data) == HEADER_BYTES
    assert keep(kernel, data) == (len(data), OK, b"")
    assert keep(kernel, data, named=(3,)) == (len(data), OK, data)


def test_the_output_must_have_room_for_a_batch_that_grows(kernel: Any) -> None:
    first, second = (
        bytes(build_batch([row(key), row(key + b"2")], base_offset=i)) for i, key in ((0, b"a"), (2, b"b"))
    )
    needed = len(second) + 2 * GROWTH_BYTES
    assert keep(kernel, first + second, room=len(first) + needed) == (
        len(first) + len(second),
        OK,
        first + second,
    )
    assert keep(kernel, first + second, room=len(first) + needed - 1) == (len(first), NO_ROOM, first)


def test_what_stays_is_written_behind_what_is_there(kernel: Any) -> None:
    data = bytes(build_batch([row(b"a")]))
    rules = (newest(kernel, data), SECRET, 1_000, NOW, HORIZON, b"")
    out = bytearray(b"before!" + bytes(500))
    assert kernel.retain_batches(data, 0, out, 7, rules, False) == (len(data), OK, 7 + len(data))
    assert out[: 7 + len(data)] == b"before!" + data


@pytest.mark.parametrize(("position", "filled"), [(-1, 0), (1_000, 0), (0, -1), (0, 11)])
def test_places_outside_their_buffers_are_refused(kernel: Any, position: int, filled: int) -> None:
    data = bytes(build_batch([row(b"a")]))
    slots = newest(kernel, data)
    with pytest.raises(ValueError, match=r"between|out of range"):
        kernel.retain_batches(data, position, bytearray(10), filled, (slots, SECRET, 0, 0, 0, b""), False)
    if position:
        with pytest.raises(ValueError, match="between"):
            kernel.map_batches(data, position, 0, slots, SECRET, 0, 16)


def test_one_batch_of_a_transaction_may_be_judged_alone(kernel: Any) -> None:
    fields: dict[str, Any] = {
        "producer_id": 5,
        "producer_epoch": 1,
        "base_sequence": 0,
        "transactional": True,
    }
    data = bytes(build_batch([row(b"a")], **fields))
    by = {"map": bytes(build_batch([row(b"x")]))}
    assert keep(kernel, data * 2, **by) == (0, TRANSACTIONAL, b"")
    assert keep(kernel, data * 2, one=True, **by) == (len(data), OK, data)
    marker = bytes(build_batch([row(b"\x00\x00\x00\x01")], control=True, **fields))
    assert keep(kernel, marker, one=True, **by) == (0, TRANSACTIONAL, b"")


def test_malformed_records_end_the_run(kernel: Any) -> None:
    good = bytes(build_batch([row(b"a")]))
    for count in (2, 0, -1, 1 << 20):
        bad = bytearray(build_batch([row(b"b")], base_offset=1))
        bad[57:61] = count.to_bytes(4, "big", signed=True)
        assert keep(kernel, good + with_crc(bad), map=good) == (len(good), MALFORMED, good)


# ---- records that were compressed ----


def rules_of(kernel: Any, *keys_at: tuple[bytes, int]) -> tuple[Any, ...]:
    slots = kernel.offset_map(16)
    for key, offset in keys_at:
        kernel.map_records(encode([row(key)], NOW), 1, offset, 0, slots, SECRET, 0, 16)
    return slots, SECRET, 1_000, NOW, HORIZON, b""


def test_records_of_which_all_stay_are_left_as_they_are(kernel: Any) -> None:
    records = encode([row(b"a"), row(b"b")], NOW)
    assert kernel.retain_records(records, 2, 40, NOW, NOW, 0, rules_of(kernel)) is None


def test_records_that_stay_are_told_with_the_fields_of_their_batch(kernel: Any) -> None:
    records = encode([row(b"a", b"v", NOW + 3), row(b"b", b"v", NOW + 1), row(b"c", b"v", NOW + 2)], NOW)
    by = rules_of(kernel, (b"a", 90))
    count, attributes, base, most, written = kernel.retain_records(records, 3, 40, NOW, NOW + 3, 3, by)
    assert (count, attributes, base, most) == (2, 3, NOW + 1, NOW + 2)
    expected = encode([row(b"x", b"v", NOW + 1), row(b"b", b"v", NOW + 1), row(b"c", b"v", NOW + 2)], NOW + 1)
    assert bytes(written) == bytes(expected)[len(expected) // 3 :]


def test_no_record_stays(kernel: Any) -> None:
    records = encode([row(b"a"), row(None)], NOW)
    count, _, _, _, written = kernel.retain_records(records, 2, 40, NOW, NOW, 0, rules_of(kernel, (b"a", 90)))
    assert (count, bytes(written)) == (0, b"")


# ---- the map ----


def test_records_before_the_start_are_not_mapped(kernel: Any) -> None:
    data = bytes(build_batch([row(b"a"), row(b"b")], base_offset=10))
    slots = kernel.offset_map(4)
    assert kernel.map_batches(data, 0, 11, slots, SECRET, 0, 4) == (len(data), OK, 1, 11)
    assert kernel.newest_offset(slots, SECRET, b"a") == -1
    assert kernel.newest_offset(slots, SECRET, b"b") == 11
    assert kernel.map_batches(data, 0, 12, slots, SECRET, 1, 4) == (len(data), OK, 1, -1)


def test_a_batch_before_the_start_is_passed_over_whatever_it_is(kernel: Any) -> None:
    fields: dict[str, Any] = {
        "producer_id": 5,
        "producer_epoch": 1,
        "base_sequence": 0,
        "transactional": True,
    }
    data = bytes(build_batch([row(b"a"), row(b"b")], base_offset=10, **fields))
    slots = kernel.offset_map(4)
    assert kernel.map_batches(data, 0, 12, slots, SECRET, 0, 4) == (len(data), OK, 0, -1)
    assert kernel.map_batches(data, 0, 11, slots, SECRET, 0, 4) == (0, TRANSACTIONAL, 0, -1)


def test_a_map_takes_as_many_keys_as_it_may_and_finds_all(kernel: Any) -> None:
    keys = [b"%d" % i for i in range(5)]
    slots = kernel.offset_map(5)
    records = encode([row(key) for key in keys], NOW)
    assert kernel.map_records(records, 5, 100, 0, slots, SECRET, 0, 5) == (5, 0)
    assert [kernel.newest_offset(slots, SECRET, key) for key in keys] == list(range(100, 105))
    assert kernel.newest_offset(slots, SECRET, b"other") == -1
    more = encode([row(b"other")], NOW)
    assert kernel.map_records(more, 1, 105, 0, slots, SECRET, 5, 5) == (5, 1)
    assert kernel.map_records(more, 1, 105, 0, slots, SECRET, 4, 9) == (4, 1), "no slot is free"
    data = bytes(build_batch([row(b"other")]))
    assert kernel.map_batches(data, 0, 0, slots, SECRET, 5, 5) == (0, FULL, 5, -1)


def test_what_is_no_map_is_refused(kernel: Any) -> None:
    with pytest.raises(ValueError, match="-1"):
        kernel.offset_map(-1)
    for slots, secret in ((bytearray(23), SECRET), (bytearray(24), SECRET[:-1])):
        with pytest.raises(ValueError, match="no map"):
            kernel.map_records(b"", 0, 0, 0, slots, secret, 0, 1)


# ---- the indexes of what was written ----


def test_an_index_entry_follows_more_than_an_interval_of_bytes(kernel: Any) -> None:
    times = [NOW + 3, NOW + 7, NOW + 7, NOW + 1]
    batches = [
        bytes(build_batch([row(b"a", b"v", time)] * 2, base_offset=10 * i)) for i, time in enumerate(times)
    ]
    size = len(batches[0])
    data = b"".join(batches)
    entries, position, since, largest, at = kernel.index_batches(data, 500, size, 0, -1, -1)
    assert entries == [(21, 500 + 2 * size, NOW + 7, 11)], "after two batches, not after one"
    assert (position, since) == (500 + 4 * size, 2 * size)
    assert (largest, at) == (NOW + 7, 11), "the first that has the largest time"
    entries, *_ = kernel.index_batches(data, 0, size - 1, 0, -1, -1)
    assert [entry[:2] for entry in entries] == [(11, size), (21, 2 * size), (31, 3 * size)]


def test_indexing_ends_at_the_first_byte_that_is_no_batch(kernel: Any) -> None:
    data = bytes(build_batch([row(b"a")], base_offset=4))
    assert kernel.index_batches(data + data[:-1], 0, 0, 1, NOW + 1, 2) == (
        [(4, 0, NOW + 1, 2)],
        len(data),
        len(data),
        NOW + 1,
        2,
    )
    assert kernel.index_batches(b"", 9, 0, 1, 5, 2) == ([], 9, 1, 5, 2)
