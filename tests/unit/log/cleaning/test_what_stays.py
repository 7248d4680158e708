"""What a cleaning leaves: newest values, offsets, sequences, tombstones and markers for a while."""

from pathlib import Path
from typing import Any

import pytest

from odradek.core.errors import KafkaError
from odradek.log.log import Isolation, Log
from odradek.log.producers.rules import AppendOrigin
from odradek.records import compression
from odradek.records.batch import LOG_APPEND_TIME
from odradek.records.header import HEADER_BYTES, crc_matches
from tests.support.cleaning import SETTINGS, batches, clean, clean_all, keyed, pairs
from tests.unit.log.support import NOW_MS, LogRuntime, append, config, marker, open_log, records

COMPACT: dict[str, Any] = {
    "cleanup_policy": ("compact",),
    "segment_bytes": 1 << 20,
    "index_interval_bytes": 100,
    "delete_retention_ms": 1000,
    "file_delete_delay_ms": 0,
}
CODECS = range(5)


@pytest.fixture
def log(runtime: LogRuntime, tmp_path: Path) -> Log:
    return open_log(runtime, tmp_path, changes=COMPACT)


def roll(log: Log) -> None:
    """End the segment, with something in the next one, so that all before it can be cleaned."""
    log.roll()


def only_batch(log: Log) -> Any:
    ((meta, found),) = batches(log)
    return meta, found


def files_are_sound(log: Log) -> None:
    for segment in log.segments.all():
        for meta in segment.scan(0):
            data = segment.read_batch(meta)
            assert crc_matches(data, meta._replace(position=0))


@pytest.mark.parametrize("codec", CODECS)
def test_the_newest_value_of_every_key_stays_at_its_offset(log: Log, runtime: LogRuntime, codec: int) -> None:
    append(log, keyed([(b"a", b"1"), (b"b", b"2"), (b"a", b"3")], codec=codec))
    append(log, keyed([(b"c", b"4"), (b"b", b"5")], codec=codec))
    roll(log)
    append(log, keyed([(b"a", b"6")], codec=codec))
    clean(log, runtime)
    assert pairs(log) == [(2, b"a", b"3"), (3, b"c", b"4"), (4, b"b", b"5"), (5, b"a", b"6")]
    files_are_sound(log)
    # What is dirty now is cleaned against what was clean.
    roll(log)
    clean(log, runtime)
    assert pairs(log) == [(3, b"c", b"4"), (4, b"b", b"5"), (5, b"a", b"6")]
    assert log.cleaned_offset == 6


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_keeps_all_its_records_is_copied_as_it_is(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    append(log, keyed([(b"a", b"1"), (b"b", None)], codec=codec, timestamp=NOW_MS))
    append(log, keyed([(b"c", b"1"), (b"d", b"2")], codec=codec))
    before = Path(log.segments.first.file.path).read_bytes()
    roll(log)
    clean(log, runtime)
    after = Path(log.segments.first.file.path).read_bytes()
    first, second = (meta.size for meta, _ in batches(log))
    assert after[first:] == before[-second:]
    assert after[:first] != before[:-second], "the tombstone has a horizon now"
    clean_all(log, runtime)
    assert Path(log.segments.first.file.path).read_bytes() == after


@pytest.mark.parametrize("codec", CODECS)
def test_a_batch_that_loses_records_keeps_what_its_producer_gave_it(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    append(
        log,
        keyed(
            [(b"a", b"1"), (b"b", b"2"), (b"c", b"3"), (b"a", b"4")],
            producer_id=7,
            producer_epoch=3,
            base_sequence=10,
            codec=codec,
            timestamp=NOW_MS,
            step_ms=5,
        ),
        keyed([(b"c", b"5")], timestamp=NOW_MS - 50),
        epoch=9,
    )
    ((before, _), _) = batches(log)
    roll(log)
    clean(log, runtime)
    (after, found), _ = batches(log)
    assert [(r.offset, r.key, r.timestamp) for r in found] == [(1, b"b", NOW_MS + 5), (3, b"a", NOW_MS + 15)]
    assert after.record_count == 2
    assert (after.base_timestamp, after.max_timestamp) == (NOW_MS + 5, NOW_MS + 15)
    kept = ("base_offset", "last_offset_delta", "partition_leader_epoch", "attributes")
    kept += ("producer_id", "producer_epoch", "base_sequence", "last_sequence")
    assert [getattr(after, name) for name in kept] == [getattr(before, name) for name in kept]


def test_the_largest_timestamp_is_that_of_what_is_left(log: Log, runtime: LogRuntime) -> None:
    append(log, keyed([(b"a", b"1"), (b"b", b"2")], timestamp=NOW_MS, step_ms=-10), keyed([(b"a", b"3")]))
    roll(log)
    clean(log, runtime)
    (meta, _), _ = batches(log)
    assert (meta.base_timestamp, meta.max_timestamp) == (NOW_MS - 10, NOW_MS - 10)


@pytest.mark.parametrize("codec", [compression.NONE, compression.LZ4])
def test_records_stamped_by_the_broker_keep_their_time(log: Log, runtime: LogRuntime, codec: int) -> None:
    fields: dict[str, Any] = {"timestamp_type": LOG_APPEND_TIME, "codec": codec}
    append(log, keyed([(b"a", b"1"), (b"b", b"2"), (b"c", None)], timestamp=NOW_MS, **fields))
    append(log, keyed([(b"a", b"3")], **fields))
    roll(log)
    clean(log, runtime)
    (meta, found), _ = batches(log)
    assert [(r.offset, r.timestamp) for r in found] == [(1, NOW_MS + 2), (2, NOW_MS + 2)]
    assert (meta.max_timestamp, meta.timestamp_type) == (NOW_MS + 2, LOG_APPEND_TIME)


def test_records_without_a_key_go(log: Log, runtime: LogRuntime) -> None:
    append(log, keyed([(None, b"1"), (b"a", b"2"), (None, b"3")]))
    roll(log)
    append(log, keyed([(None, b"4")]))
    clean(log, runtime)
    assert pairs(log) == [(1, b"a", b"2"), (3, None, b"4")]


# --- empty batches ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_the_last_batch_of_a_producer_stays_without_records(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 2, "codec": codec}
    append(log, keyed([(b"a", b"1"), (b"b", b"1")], base_sequence=0, **producer))
    append(log, keyed([(b"a", b"2"), (b"b", b"2")], base_sequence=2, **producer))
    append(log, keyed([(b"a", b"3"), (b"b", b"3")]))
    roll(log)
    clean(log, runtime)
    (empty, none), (_, found) = batches(log)
    assert none == []
    assert (empty.size, empty.record_count) == (HEADER_BYTES, 0)
    assert (empty.base_offset, empty.last_offset) == (2, 3)
    assert (empty.base_sequence, empty.last_sequence) == (2, 3)
    assert (empty.producer_id, empty.producer_epoch) == (7, 2)
    assert (empty.base_timestamp, empty.max_timestamp) == (-1, NOW_MS + 1)
    assert empty.attributes == 0, "no codec, no horizon"
    assert [r.offset for r in found] == [4, 5]
    files_are_sound(log)
    clean_all(log, runtime)
    assert batches(log)[0][0] == empty


def test_a_producers_sequence_outlives_its_records_and_a_restart(
    log: Log, runtime: LogRuntime, tmp_path: Path
) -> None:
    producer: dict[str, Any] = {"producer_id": 7, "producer_epoch": 0}
    append(log, keyed([(b"a", b"1"), (b"b", b"1")], base_sequence=0, **producer))
    append(log, keyed([(b"a", b"2"), (b"b", b"2")]))
    roll(log)
    clean(log, runtime)
    log.close()
    for path in Path(log.path).glob("*.snapshot"):
        path.unlink()
    again = open_log(runtime, tmp_path, changes=COMPACT)
    again.advance_high_watermark(again.log_end_offset)
    (info,) = append(again, keyed([(b"a", b"1"), (b"b", b"1")], base_sequence=0, **producer))
    assert (info.duplicate, info.first_offset) == (True, 0)
    append(again, keyed([(b"a", b"3")], base_sequence=2, **producer))


def test_the_last_batch_of_a_cleaning_stays_so_that_readers_come_to_the_end(
    log: Log, runtime: LogRuntime
) -> None:
    append(log, keyed([(b"a", b"1")]), keyed([(b"a", None)]))
    roll(log)
    clean(log, runtime)
    runtime.clock.ms += 2000
    clean_all(log, runtime)
    meta, found = only_batch(log)
    assert (meta.base_offset, meta.last_offset, found) == (1, 1, [])
    append(log, keyed([(b"b", b"1")]))
    roll(log)
    clean(log, runtime)
    assert [meta.base_offset for meta, _ in batches(log)] == [2]


# --- tombstones -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", CODECS)
def test_a_tombstone_stays_until_its_horizon_has_passed(log: Log, runtime: LogRuntime, codec: int) -> None:
    append(log, keyed([(b"a", b"1"), (b"a", None), (b"b", b"2")], codec=codec, timestamp=NOW_MS - 9999))
    append(log, keyed([(b"z", b"1")]))
    roll(log)
    clean(log, runtime)
    (meta, found), _ = batches(log)
    assert [(r.key, r.value, r.timestamp) for r in found] == [
        (b"a", None, NOW_MS - 9998),
        (b"b", b"2", NOW_MS - 9997),
    ]
    assert meta.has_delete_horizon
    assert meta.base_timestamp == NOW_MS + 1000
    assert meta.max_timestamp == NOW_MS - 9997
    runtime.clock.ms = NOW_MS + 999
    clean_all(log, runtime)
    assert batches(log)[0] == (meta, found)
    runtime.clock.ms = NOW_MS + 1000
    clean_all(log, runtime)
    (meta, found), _ = batches(log)
    assert [(r.key, r.timestamp) for r in found] == [(b"b", NOW_MS - 9997)]
    assert (meta.has_delete_horizon, meta.base_timestamp) == (True, NOW_MS + 1000), "once set, it stays"


def test_delete_retention_is_the_topics(log: Log, runtime: LogRuntime) -> None:
    append(log, keyed([(b"a", None)]), keyed([(b"z", b"1")]))
    roll(log)
    log.update_config(config(**{**COMPACT, "delete_retention_ms": 0}))
    clean(log, runtime)
    assert pairs(log)[0] == (0, b"a", None), "its horizon is now, which counts from the next cleaning on"
    clean_all(log, runtime)
    assert pairs(log) == [(1, b"z", b"1")]


def test_a_tombstone_that_a_newer_value_follows_goes_at_once(log: Log, runtime: LogRuntime) -> None:
    append(log, keyed([(b"a", None), (b"a", b"1")]))
    roll(log)
    clean(log, runtime)
    assert pairs(log) == [(1, b"a", b"1")]


# --- transactions -----------------------------------------------------------------------------------------


def txn(pairs_: Any, sequence: int, *, producer_id: int = 7, **fields: Any) -> Any:
    return keyed(
        pairs_,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=sequence,
        transactional=True,
        **fields,
    )


def end(log: Log, *, committed: bool, producer_id: int = 7) -> None:
    append(log, marker(committed=committed, producer_id=producer_id), origin=AppendOrigin.COORDINATOR)


@pytest.mark.parametrize("codec", [compression.NONE, compression.ZSTD])
def test_aborted_data_goes_and_takes_no_other_value_with_it(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    append(log, keyed([(b"a", b"kept"), (b"b", b"old")], codec=codec))
    append(log, txn([(b"a", b"aborted")], 0, codec=codec))
    end(log, committed=False)
    append(log, txn([(b"b", b"new")], 1, codec=codec))
    end(log, committed=True)
    append(log, keyed([(b"z", b"1")]))
    roll(log)
    clean(log, runtime)
    assert pairs(log) == [(0, b"a", b"kept"), (4, b"b", b"new"), (6, b"z", b"1")]
    assert [meta.base_offset for meta, _ in batches(log) if meta.is_control] == [3, 5]
    read = [(r.offset, r.value) for r in records(log, isolation=Isolation.TXN_COMMITTED)]
    assert [value for _, value in read if value in (b"kept", b"new", b"aborted")] == [b"kept", b"new"]


def test_a_marker_goes_after_its_data_and_its_horizon(log: Log, runtime: LogRuntime) -> None:
    append(log, txn([(b"a", b"1")], 0, producer_id=8))
    end(log, committed=False, producer_id=8)
    append(log, txn([(b"a", b"2")], 1, producer_id=8))
    end(log, committed=True, producer_id=8)
    append(log, keyed([(b"a", b"3")]))
    append(log, keyed([(b"z", b"1")]))
    roll(log)

    def markers() -> list[tuple[int, bool, int]]:
        return [
            (meta.base_offset, meta.has_delete_horizon, len(found))
            for meta, found in batches(log)
            if meta.is_control
        ]

    assert log.segments.first.has_txn_index
    clean(log, runtime)  # the data of both is met, and goes
    assert markers() == [(1, False, 1), (3, False, 1)]
    assert [t.first_offset for t in log.segments.first.txn_index.entries] == [0]
    clean_all(log, runtime)  # nothing is left of the aborted one: its marker gets a horizon
    assert markers() == [(1, True, 1), (3, False, 1)], "the batch of the last sequence is there, empty"
    assert not log.segments.first.has_txn_index
    runtime.clock.ms += 1000
    clean_all(log, runtime)
    assert markers() == [(3, False, 1)]


def test_the_marker_of_a_producer_without_data_stays_for_its_epoch(log: Log, runtime: LogRuntime) -> None:
    append(log, txn([(b"a", b"1")], 0, producer_id=8))
    end(log, committed=True, producer_id=8)
    # A later epoch ends nothing, and fences what came before it.
    append(log, marker(committed=False, producer_id=8, epoch=1), origin=AppendOrigin.COORDINATOR)
    append(log, keyed([(b"a", b"2")]))
    append(log, keyed([(b"z", b"1")]))
    roll(log)
    for _ in range(4):
        clean_all(log, runtime)
        runtime.clock.ms += 2000
    (fence,) = [(meta, found) for meta, found in batches(log) if meta.is_control]
    assert (fence[0].base_offset, fence[0].producer_epoch, fence[1]) == (2, 1, [])


def test_an_open_transaction_is_not_touched(log: Log, runtime: LogRuntime) -> None:
    append(log, keyed([(b"a", b"1")]))
    roll(log)
    append(log, txn([(b"a", b"2")], 0))
    roll(log)
    append(log, keyed([(b"a", b"3")]))
    roll(log)
    clean(log, runtime)
    assert [offset for offset, _, _ in pairs(log)] == [0, 1, 2]
    assert log.cleaned_offset == 1


# --- more keys than the map takes -------------------------------------------------------------------------


def test_what_the_map_does_not_take_waits_for_the_next_round(log: Log, runtime: LogRuntime) -> None:
    for value in (b"1", b"2"):
        for key in range(40):
            append(log, keyed([(b"%d" % key, value)]))
    roll(log)
    few = SETTINGS._replace(dedupe_buffer_bytes=24 * 20)
    rounds = 0
    while log.cleaned_offset != 80:
        before = log.cleaned_offset or 0
        clean(log, runtime, settings=few)
        assert (log.cleaned_offset or 0) > before
        rounds += 1
    assert rounds == 5, "18 keys fit each time"
    assert sorted(pairs(log)) == [(40 + key, b"%d" % key, b"2") for key in range(40)]


@pytest.mark.parametrize("codec", [compression.NONE, compression.GZIP])
def test_one_batch_of_more_keys_than_the_map_takes_is_cleaned_nevertheless(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    append(log, keyed([(b"%d" % i, b"1") for i in range(100)], codec=codec))
    append(log, keyed([(b"%d" % i, b"2") for i in range(100)], codec=codec))
    roll(log)
    clean(log, runtime, settings=SETTINGS._replace(dedupe_buffer_bytes=24 * 20))
    clean(log, runtime, settings=SETTINGS._replace(dedupe_buffer_bytes=24 * 20))
    assert sorted(pairs(log)) == [(100 + i, b"%d" % i, b"2") for i in range(100)]


def test_the_load_factor_bounds_the_keys_of_a_round(log: Log, runtime: LogRuntime) -> None:
    for key in range(40):
        append(log, keyed([(b"%d" % key, b"1")]))
    roll(log)
    for load_factor, cleaned in ((0.5, 10), (0.9, 18)):
        log.compaction.cleaned_offset = None
        settings = SETTINGS._replace(dedupe_buffer_bytes=24 * 20, load_factor=load_factor)
        clean(log, runtime, settings=settings)
        assert log.cleaned_offset == cleaned


# --- damage -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("codec", [compression.NONE, compression.SNAPPY])
def test_a_batch_whose_checksum_is_wrong_is_not_written_anew_with_a_right_one(
    log: Log, runtime: LogRuntime, codec: int
) -> None:
    append(log, keyed([(b"a", b"1"), (b"b", b"2")], codec=codec), keyed([(b"a", b"3")]))
    roll(log)
    path = Path(log.segments.first.file.path)
    data = bytearray(path.read_bytes())
    data[70] ^= 1
    path.write_bytes(data)
    with pytest.raises(KafkaError):
        clean(log, runtime)
    assert path.read_bytes() == data
