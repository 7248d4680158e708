"""Segments of magic 0 and 1, in every codec they allow: read and recovered as kafka-clients reads them."""

import dataclasses
import json
import zlib
from pathlib import Path
from typing import Any

import pytest

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation, Log
from odradek.log.lookup import MAX_TIMESTAMP, BatchSearch, TimestampOffset
from odradek.records.batch import Record, build_batch, iter_batches, iter_records
from odradek.records.check import CheckRules, check_produce
from odradek.records.header import crc_matches
from odradek.runtime.real import RealRuntime
from tests.golden import loader
from tests.support.command import odradek
from tests.unit.log.support import LogRuntime, append, batch

NAMES = sorted(loader.legacy())
# Without those that hold newer batches too, or that the cleaner of today has rewritten as such.
OLD = [name for name in NAMES if "mixed" not in name and "upgraded" not in name]
SEGMENT = "00000000000000000000.log"


def config(name: str, **changes: Any) -> TopicConfig:
    base = TopicConfig.resolve(NodeConfig.from_sources({}, {})[0])
    if name.endswith(("cleaned-0", "upgraded-0")):
        changes["cleanup_policy"] = ("compact",)
    return dataclasses.replace(base, **changes)


def content(name: str) -> bytes:
    (segment,) = loader.segments("legacy", name)
    return segment


def shown(value: bytes | None) -> Any:
    if value is None or len(value) < 100:
        return None if value is None else value.decode()
    return {"len": len(value), "crc32": zlib.crc32(value)}


def as_expected(record: Record) -> dict[str, Any]:
    return {
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown(record.key),
        "value": shown(record.value),
    }


def opened(name: str, tmp_path: Path, **changes: Any) -> Log:
    loader.unpack("legacy", tmp_path, f"{name}/")
    topic, _, partition = name.rpartition("-")
    path = str(tmp_path / name)
    log = Log.open(RealRuntime(), path, TopicPartition(topic, int(partition)), None, config(name, **changes))
    log.advance_high_watermark(log.log_end_offset)
    return log


def read_from(log: Log, offset: int, max_bytes: int = 1) -> list[dict[str, Any]]:
    """What a consumer makes of what it fetches from an offset on."""
    found = []
    while (info := log.read(offset, max_bytes, Isolation.HIGH_WATERMARK)).slice is not None:
        data = info.slice.read()
        for located in iter_batches(data):
            found += [as_expected(r) for r in iter_records(data, located) if r.offset >= offset]
            offset = located.last_offset + 1
    return found


@pytest.mark.parametrize("name", NAMES)
def test_records_and_batches_are_those_that_kafka_clients_reads(name: str) -> None:
    data, expected = content(name), loader.legacy()[name]
    found = []
    for located, theirs in zip(iter_batches(data), expected["batches"], strict=True):
        assert crc_matches(data, located) is theirs["valid"] is True
        assert (located.position, located.size, located.magic, located.crc) == tuple(
            theirs[key] for key in ("position", "size", "magic", "crc")
        )
        assert (located.last_offset, located.max_timestamp) == (
            theirs["last_offset"],
            theirs["max_timestamp"],
        )
        found += [as_expected(record) for record in iter_records(data, located)]
    assert found == expected["records"]


@pytest.mark.parametrize("name", NAMES)
def test_recovery_keeps_every_byte_and_every_offset_leads_to_its_records(name: str, tmp_path: Path) -> None:
    log = opened(name, tmp_path, index_interval_bytes=1)
    records = loader.legacy()[name]["records"]
    assert log.size_bytes == len(content(name))
    assert log.log_end_offset == records[-1]["offset"] + 1
    assert read_from(log, 0, 1 << 20) == records
    for offset in range(min(log.log_end_offset, 25)):
        assert read_from(log, offset) == [r for r in records if r["offset"] >= offset], offset
    log.close()
    again = Log.open(RealRuntime(), log.path, log.topic_partition, None, log.config, clean_shutdown=True)
    assert again.log_end_offset == log.log_end_offset


@pytest.mark.parametrize("name", NAMES)
def test_a_torn_tail_is_cut_off_behind_the_last_whole_entry(name: str, tmp_path: Path) -> None:
    batches = loader.legacy()[name]["batches"]
    loader.unpack("legacy", tmp_path, f"{name}/")
    path = tmp_path / name / SEGMENT
    path.write_bytes(content(name)[:-1])
    topic, _, partition = name.rpartition("-")
    log = Log.open(RealRuntime(), str(path.parent), TopicPartition(topic, int(partition)), None, config(name))
    assert log.size_bytes == batches[-1]["position"]
    assert log.log_end_offset == (batches[-2]["last_offset"] + 1 if len(batches) > 1 else 0)


@pytest.mark.parametrize("name", NAMES)
def test_times_lead_to_the_first_record_of_that_time(name: str, tmp_path: Path) -> None:
    log = opened(name, tmp_path, index_interval_bytes=1)
    records = loader.legacy()[name]["records"]

    def asked(timestamp: int) -> TimestampOffset | None:
        found = log.offset_for_timestamp(timestamp)
        start = 0
        while isinstance(found, BatchSearch):
            start = found.batch.last_offset + 1
            inside = found.run()
            found = inside if inside is not None else log.offset_for_timestamp(timestamp, start)
        return found

    times = sorted({r["timestamp"] for r in records if r["timestamp"] >= 0})
    for timestamp in [*times, *(t + 1 for t in times)]:
        first = next((r for r in records if r["timestamp"] >= timestamp), None)
        found = asked(timestamp)
        wanted = None if first is None else (first["timestamp"], first["offset"])
        assert (None if found is None else found[:2]) == wanted, timestamp
    latest = asked(MAX_TIMESTAMP)
    if not times:
        assert latest is None
    else:
        assert latest is not None
        assert latest.timestamp == times[-1]
        assert latest.offset == next(r["offset"] for r in records if r["timestamp"] == times[-1])


@pytest.mark.parametrize("name", NAMES)
def test_new_batches_follow_the_old_ones(name: str, tmp_path: Path) -> None:
    log = opened(name, tmp_path)
    end = log.log_end_offset
    (info,) = append(log, batch(2), epoch=7)
    assert info.first_offset == end
    assert log.epochs.entries[-1] == (7, end)
    assert [r["offset"] for r in read_from(log, end)] == [end, end + 1]
    log.close(clean=False)
    again = Log.open(RealRuntime(), log.path, log.topic_partition, None, log.config)
    assert again.log_end_offset == end + 2


def test_epochs_are_those_of_the_batches_that_have_one(tmp_path: Path) -> None:
    assert opened("mixed-0", tmp_path).epochs.entries == [(3, 400), (4, 500)]


@pytest.mark.parametrize("name", OLD)
def test_a_follower_takes_them_over_and_forgets_its_epochs(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    log = Log.open(LogRuntime(), str(tmp_path / name), TopicPartition("t", 0), None, config(name))
    newer = build_batch([(5, None, b"newer", ())], base_offset=0, leader_epoch=5)
    log.append_as_follower(bytes(newer))
    assert log.epochs.entries == [(5, 0)]
    shifted = bytearray(content(name))
    for located in iter_batches(content(name)):
        shifted[located.position : located.position + 8] = (located.base_offset + 1).to_bytes(8, "big")
    info = log.append_as_follower(bytes(shifted))
    assert info.last_offset == log.log_end_offset - 1 == loader.legacy()[name]["records"][-1]["offset"] + 1
    assert log.epochs.entries == []
    assert "clearing its leader epochs" in caplog.text
    assert log.size_bytes == len(newer) + len(shifted)


def test_a_segment_that_begins_with_a_wrapper_is_named_after_its_first_record(tmp_path: Path) -> None:
    log = Log.open(
        LogRuntime(), str(tmp_path / "t-0"), TopicPartition("t", 0), None, config("t", segment_bytes=200)
    )
    data = content("v1-gzip-0")
    for located in iter_batches(data):
        log.append_as_follower(data[located.position : located.position + located.size])
    assert log.segments.base_offsets == [0, 5, 10, 15]


@pytest.mark.parametrize("name", OLD)
def test_producing_them_is_refused_as_apache_refuses_it(name: str) -> None:
    """Apache's answer to such a batch is recorded in tests/unit/records/apache_answers.json."""
    data = content(name)
    first = next(iter(iter_batches(data)))
    for version in (3, 7, 9, 12):
        (result,) = check_produce([memoryview(bytearray(data[: first.size]))], CheckRules(), 0, version)
        assert isinstance(result, KafkaError)
        assert result.code.name == "INVALID_RECORD"


@pytest.mark.parametrize("name", NAMES)
def test_the_dump_shows_what_kafka_clients_reads(name: str, tmp_path: Path) -> None:
    loader.unpack("legacy", tmp_path, f"{name}/")
    path = str(tmp_path / name / SEGMENT)
    expected = loader.legacy()[name]
    outcome = odradek("log", "dump", "-f", "jsonl", path)
    assert (outcome.code, outcome.stderr) == (0, "")
    rows = [json.loads(line) for line in outcome.text.splitlines()]
    for row, theirs in zip(rows, expected["batches"], strict=True):
        for key in ("base_offset", "last_offset", "position", "size", "magic", "codec", "crc", "valid"):
            assert row[key] == theirs[key], (key, row)
        assert row["flags"] == (["log-append-time"] if theirs["timestamp_type"] == "LogAppendTime" else [])
    assert sum(row["count"] for row in rows) == len(expected["records"])
    outcome = odradek("log", "dump", "--records", "-o", "10:13", "-f", "jsonl", path)
    offsets = [json.loads(line)["offset"] for line in outcome.text.splitlines()]
    assert offsets == [r["offset"] for r in expected["records"] if 10 <= r["offset"] < 13]


@pytest.mark.parametrize("name", NAMES)
def test_verify_finds_nothing(name: str, tmp_path: Path) -> None:
    opened(name, tmp_path, index_interval_bytes=50).close()
    outcome = odradek("log", "verify", str(tmp_path / name))
    assert (outcome.code, outcome.text.count("\n")) == (0, 1), outcome
