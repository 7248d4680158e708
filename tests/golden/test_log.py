"""Data directories that Apache Kafka 4.3.1 wrote, opened by our log: what a consumer reads, and every byte.

`clean` was stopped, `crashed` was killed; Apache recovered the one into the other, and so must we.
"""

import asyncio
import dataclasses
import shutil
import zlib
from pathlib import Path
from typing import Any, Literal

import pytest

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.types import TopicPartition
from odradek.log.log import Isolation, Log
from odradek.log.manager import LogManager
from odradek.log.producers.entry import ProducerEntry
from odradek.log.producers.rules import AppendOrigin
from odradek.records.batch import Record, iter_batches
from odradek.records.check import CheckedRecords
from odradek.runtime.real import RealRuntime
from tests.golden import loader
from tests.unit.log.support import consume

Kind = Literal["clean", "crashed"]
READ = [(topic, isolation) for topic, how in sorted(loader.expected()["topics"].items()) for isolation in how]
ISOLATIONS = {"read_uncommitted": Isolation.HIGH_WATERMARK, "read_committed": Isolation.TXN_COMMITTED}
FETCH_BYTES = 30_000
COMPACTED = {"compacted", "__consumer_offsets", "__transaction_state"}


def config(topic: str) -> TopicConfig:
    base = TopicConfig.resolve(NodeConfig.from_sources({}, {})[0])
    changes: dict[str, Any] = {"segment_bytes": 1 << 20} if topic in ("segments", "compacted") else {}
    if topic in COMPACTED:
        changes["cleanup_policy"] = ("compact",)
    return dataclasses.replace(base, **changes)


@pytest.fixture(scope="module", params=["clean", "crashed"])
def manager(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> LogManager:
    path = loader.unpack(request.param, tmp_path_factory.mktemp(request.param))
    # The clients of that day put timestamps of 2023 on some records: those producers would count as silent.
    manager = LogManager(RealRuntime(), [str(path)], producer_id_expiration_ms=1 << 60)
    manager.open()
    manager.load(config)
    return manager


def shown(value: bytes | None) -> Any:
    """A value as expected.json.gz shows it."""
    if value is None or len(value) < 100:
        return None if value is None else value.decode()
    return {"len": len(value), "crc32": zlib.crc32(value)}


def as_expected(partition: int, record: Record) -> dict[str, Any]:
    headers = [[name, shown(value)] for name, value in record.headers]
    return {
        "partition": partition,
        "offset": record.offset,
        "timestamp": record.timestamp,
        "key": shown(record.key),
        "value": shown(record.value),
        "headers": headers or None,
    }


@pytest.mark.parametrize(("topic", "isolation"), READ)
def test_every_topic_reads_as_a_real_consumer_read_it(
    manager: LogManager, topic: str, isolation: str
) -> None:
    expected = loader.expected()["topics"][topic][isolation]
    logs = sorted((tp.partition, log) for tp, log in manager.logs.items() if tp.topic == topic)
    assert logs
    found = [
        as_expected(partition, record)
        for partition, log in logs
        for record in consume(log, ISOLATIONS[isolation], FETCH_BYTES)
    ]
    wanted = [{**record, "timestamp": record["timestamp"][1]} for record in expected]
    assert found == sorted(wanted, key=lambda record: (record["partition"], record["offset"]))


def test_the_log_start_of_deleted_records_is_kept(manager: LogManager) -> None:
    log = manager.logs[TopicPartition("trimmed", 0)]
    assert (log.log_start_offset, log.log_end_offset) == (20, 50)


def as_in_a_snapshot(log: Log) -> dict[int, ProducerEntry]:
    """The last batch of every producer, with the producer's last timestamp, that of a marker included."""
    entries = {}
    for producer_id, entry in log.producers.entries.items():
        last = tuple(batch._replace(timestamp=entry.last_timestamp) for batch in entry.batches[-1:])
        entries[producer_id] = entry._replace(batches=last)
    return entries


def test_replaying_a_log_gives_the_producers_of_its_snapshot(manager: LogManager, tmp_path: Path) -> None:
    for tp, log in manager.logs.items():
        copy = tmp_path / str(tp)
        shutil.copytree(log.path, copy)
        for snapshot in copy.glob("*.snapshot"):
            snapshot.unlink()
        replayed = Log.open(RealRuntime(), str(copy), tp, None, config(tp.topic))
        assert as_in_a_snapshot(replayed) == as_in_a_snapshot(log), tp


def test_a_crashed_directory_is_recovered_into_the_bytes_that_apache_recovered(tmp_path: Path) -> None:
    path = loader.unpack("crashed", tmp_path)
    manager = LogManager(RealRuntime(), [str(path)])
    manager.open()
    manager.load(config)
    for log in manager.logs.values():
        # Its restart, in which it was fenced and elected again, gave Apache's logs the next epochs.
        log.assign_epoch_start_offset(1, log.log_end_offset)
        log.assign_epoch_start_offset(2, log.log_end_offset)
    asyncio.run(manager.close(broker_epoch=287))
    ours = {
        str(file.relative_to(path)): file.read_bytes()
        for directory in path.iterdir()
        if directory.is_dir() and directory.name != "__cluster_metadata-0"
        for file in directory.iterdir()
    }
    apache = {
        name: data
        for name, data in loader.files("clean").items()
        if "/" in name and not name.startswith("__cluster_metadata-0/")
    }
    assert sorted(ours) == sorted(apache)
    for name, data in apache.items():
        assert ours[name] == data, name
    assert (path / ".kafka_cleanshutdown").read_bytes() == b'{"version":0,"brokerEpoch":287}'
    for name in ("recovery-point", "replication", "log-start"):
        checkpoint = f"{name}-offset-checkpoint"
        (theirs,) = loader.files("clean", checkpoint).values()
        assert sorted((path / checkpoint).read_bytes().splitlines()) == sorted(theirs.splitlines())


@pytest.mark.parametrize(
    "name", ["segments-0", "codec-none-0", "codec-zstd-0", "append-time-0", "txn-0", "txn-1"]
)
def test_the_same_appends_give_the_same_files(name: str, tmp_path: Path) -> None:
    """Every batch that Apache took, appended one by one as its clients sent them."""
    topic, _, partition = name.rpartition("-")
    log = Log.open(
        RealRuntime(), str(tmp_path / name), TopicPartition(topic, int(partition)), None, config(topic)
    )
    for segment in loader.segments("clean", name):
        for batch in iter_batches(segment):
            data = bytearray(segment[batch.position : batch.position + batch.size])
            (located,) = iter_batches(data)
            origin = AppendOrigin.COORDINATOR if batch.is_control else AppendOrigin.CLIENT
            (info,) = log.append_as_leader([CheckedRecords(data, [located])], 0, origin)
            assert not isinstance(info, Exception), info
            assert (info.first_offset, info.last_offset) == (batch.base_offset, batch.last_offset)
            log.advance_high_watermark(log.log_end_offset)
    log.close()
    apache = loader.files("clean", f"{name}/")
    for path in sorted((tmp_path / name).iterdir()):
        if path.name not in ("leader-epoch-checkpoint", "partition.metadata"):
            assert path.read_bytes() == apache.pop(f"{name}/{path.name}"), path.name
    assert sorted(apache) == [f"{name}/leader-epoch-checkpoint", f"{name}/partition.metadata"]
