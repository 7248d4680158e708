"""The same log directory compacted by Apache Kafka and by us: the same batches with the same records stay.

Plain and compressed topics, idempotent producers, transactions with aborts, tombstones before and after their
horizon, and a segment of magic 0 and 1. Apache's tools accept our files, and Apache serves them.
"""

import pathlib
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.core.configs import NodeConfig, TopicConfig
from odradek.core.types import TopicPartition as Partition
from odradek.log.checkpoints import parse_offsets
from odradek.log.cleaning.candidates import examine
from odradek.log.log import Log
from odradek.records import compression
from odradek.records.batch import BatchMeta, Record, iter_batches, iter_records
from odradek.runtime.ports import free_port
from odradek.runtime.real import RealClock
from tests.peer.test_dump_log import COMPLAINTS, dump
from tests.support import peer
from tests.support.cleaning import clean
from tests.unit.log.cleaning.test_legacy import entry, wrapped
from tests.unit.log.support import LogRuntime

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
KEPT, GONE = "tombstones-kept", "tombstones-gone"
TOPICS = (*CODECS, "idempotent", "txn", "append-time", KEPT, GONE)
DELETE_RETENTION_MS = 300
ALL_YOUNG = str((1 << 63) - 1)
MINUTE_MS = 60_000
# A generation of records begins a segment: its timestamps are more than segment.ms after the last one's. Only
# those of the first generation are in the past, so that with a lag of 1 ms it alone is cleaned.
GENERATIONS_MS = (-MINUTE_MS, 15 * MINUTE_MS, 45 * MINUTE_MS)


def topic_configs(topic: str) -> dict[str, str]:
    configs = {
        "cleanup.policy": "compact",
        "segment.ms": str(10 * MINUTE_MS),
        "min.cleanable.dirty.ratio": "0.0",
        "min.compaction.lag.ms": ALL_YOUNG,
        "delete.retention.ms": str(DELETE_RETENTION_MS if topic == GONE else 86_400_000),
        "index.interval.bytes": "300",
        "file.delete.delay.ms": "0",
    }
    if topic == "append-time":
        configs["message.timestamp.type"] = "LogAppendTime"
        configs["segment.ms"] = "1000"
    return configs


def rows(topic: str, generation: int) -> Iterator[list[tuple[str, str | None]]]:
    """Batches of (key, value): keys come again within and between them, some are deleted for good."""
    for batch in range(8):
        pairs: list[tuple[str, str | None]] = []
        for i in range(6):
            value = f"{topic}/{generation}/{batch}/{i}" * 3
            if topic in (KEPT, GONE) and (i + batch) % 4 == 0:
                name = f"deleted-{generation}-{i}"
                pairs.append((name, value if batch < 4 else None))
            else:
                pairs.append((f"key-{(7 * i + 3 * batch + generation) % 23}", value))
        yield pairs


def send(producer: Producer, topic: str, batch: list[tuple[str, str | None]], stamp_ms: int) -> None:
    for i, (key, value) in enumerate(batch):
        headers = [("h", b"%d" % i)] if i % 3 == 0 else None
        stamp = {} if topic == "append-time" else {"timestamp": stamp_ms + i}
        producer.produce(topic, key=key, value=value, partition=0, headers=headers, **stamp)
    producer.flush()


def produce(bootstrap: str, topic: str, now_ms: int) -> None:
    transactional = topic == "txn"
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "linger.ms": 20,
        "compression.type": topic if topic in CODECS else "none",
        "enable.idempotence": transactional or topic == "idempotent",
    }
    if transactional:
        settings["transactional.id"] = "compacted"
    producer = Producer(settings)
    if transactional:
        producer.init_transactions()
    for generation, offset_ms in enumerate(GENERATIONS_MS):
        if topic == "idempotent":
            producer = Producer(settings)  # each has a last sequence that must be kept
        for number, batch in enumerate(rows(topic, generation)):
            if transactional:
                producer.begin_transaction()
            send(producer, topic, batch, now_ms + offset_ms + 10 * number)
            if transactional:
                producer.commit_transaction() if number % 3 else producer.abort_transaction()
        if topic == "append-time":
            time.sleep(1.1)


class Batch(NamedTuple):
    """A batch without what may differ: where it stands, how well it was compressed, when its horizon is."""

    header: tuple[int, ...]
    base_timestamp: int | None
    records: tuple[Record, ...]


def segments(directory: pathlib.Path) -> dict[int, list[Batch]]:
    """The batches of all segments of a partition, by base offset."""
    found = {}
    for path in sorted(directory.glob("*.log")):
        data = path.read_bytes()
        found[int(path.stem)] = [
            Batch(
                (
                    *(meta.base_offset, meta.last_offset_delta, meta.partition_leader_epoch, meta.attributes),
                    *(meta.max_timestamp, meta.producer_id, meta.producer_epoch, meta.base_sequence),
                    *(meta.record_count, meta.magic),
                ),
                None if meta.has_delete_horizon else meta.base_timestamp,
                tuple(iter_records(data, meta)),
            )
            for meta in iter_batches(data)
        ]
    return found


def metas(directory: pathlib.Path) -> list[BatchMeta]:
    return [m for path in sorted(directory.glob("*.log")) for m in iter_batches(path.read_bytes())]


def kept(batches: dict[int, list[Batch]]) -> list[tuple[int, bytes | None, bytes | None]]:
    """Offset, key and value of the records of data."""
    return [
        (r.offset, r.key, r.value)
        for of_segment in batches.values()
        for batch in of_segment
        if not batch.header[3] & 0x20
        for r in batch.records
    ]


def wait_for(what: str, condition: Callable[[], bool], seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"waited in vain for {what}"
        time.sleep(0.05)


class Apache:
    def __init__(self, directory: pathlib.Path) -> None:
        self.directory = directory
        self.bootstrap = peer.start(
            directory,
            free_port(),
            "log.cleaner.backoff.ms=100",
            "log.message.timestamp.after.max.ms=9999999999",
        )
        self.admin = AdminClient({"bootstrap.servers": self.bootstrap})
        self.data = directory / "node-1" / "data"

    def set_lag(self, topics: tuple[str, ...], lag_ms: int) -> None:
        resources = [
            ConfigResource(
                ConfigResource.Type.TOPIC,
                topic,
                incremental_configs=[
                    ConfigEntry(
                        "min.compaction.lag.ms",
                        str(lag_ms),
                        incremental_operation=AlterConfigOpType.SET,
                    )
                ],
            )
            for topic in topics
        ]
        for future in self.admin.incremental_alter_configs(resources).values():
            future.result(30)

    def wait_cleaned(self, expected: dict[str, int]) -> None:
        path = self.data / "cleaner-offset-checkpoint"

        def all_cleaned() -> bool:
            offsets = parse_offsets(path.read_bytes()) if path.exists() else {}
            return all(offsets.get(Partition(topic, 0)) == offset for topic, offset in expected.items())

        wait_for(f"Apache to clean up to {expected}", all_cleaned)
        wait_for("its swaps", lambda: not list(self.data.glob("*-0/*.swap")))


def ours(directory: pathlib.Path, topic: str, lag_ms: int) -> tuple[Log, LogRuntime]:
    """A copy of Apache's directory, opened as after a crash, on real time."""
    runtime = LogRuntime()
    runtime.clock = RealClock()  # type: ignore[assignment]
    node = NodeConfig.from_sources({}, {})[0]
    config = TopicConfig.resolve(node, {**topic_configs(topic), "min.compaction.lag.ms": str(lag_ms)})
    log = Log.open(runtime, str(directory), Partition(topic, 0), None, config)
    log.advance_high_watermark(log.log_end_offset)
    return log, runtime


class Compacted(NamedTuple):
    """What both made of each topic after each of two cleanings."""

    apache: list[dict[str, dict[int, list[Batch]]]]
    odradek: list[dict[str, dict[int, list[Batch]]]]
    original: dict[str, dict[int, list[Batch]]]
    apache_files: pathlib.Path
    odradek_files: pathlib.Path
    running: Apache


@pytest.fixture(scope="module")
def compacted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Compacted]:
    work = tmp_path_factory.mktemp("compaction")
    apache = Apache(work / "apache")
    try:
        new = [NewTopic(topic, 1, 1, config=topic_configs(topic)) for topic in (*TOPICS, "legacy")]
        for future in apache.admin.create_topics(new).values():
            future.result(30)
        now_ms = int(time.time() * 1000)
        for topic in TOPICS:
            produce(apache.bootstrap, topic, now_ms)
        copy = work / "odradek"
        copy.mkdir()
        for topic in TOPICS:
            shutil.copytree(apache.data / f"{topic}-0", copy / f"{topic}-0")
        original = {topic: segments(copy / f"{topic}-0") for topic in TOPICS}
        theirs: list[dict[str, dict[int, list[Batch]]]] = []
        mine: list[dict[str, dict[int, list[Batch]]]] = []
        opened = {topic: ours(copy / f"{topic}-0", topic, 1) for topic in TOPICS}
        for lag_ms in (1, 0):
            expected = {}
            for topic, (log, runtime) in opened.items():
                log.update_config(
                    TopicConfig.resolve(
                        NodeConfig.from_sources({}, {})[0],
                        {**topic_configs(topic), "min.compaction.lag.ms": str(lag_ms)},
                    )
                )
                expected[topic] = examine(log, runtime.clock.now_ms()).first_uncleanable_offset
                clean(log, runtime)
                assert log.cleaned_offset == expected[topic]
            apache.set_lag(TOPICS, lag_ms)
            apache.wait_cleaned(expected)
            theirs.append({topic: segments(apache.data / f"{topic}-0") for topic in TOPICS})
            mine.append({topic: segments(copy / f"{topic}-0") for topic in TOPICS})
            time.sleep(2 * DELETE_RETENTION_MS / 1000)
        for log, runtime in opened.values():
            log.purge_deleted(runtime.clock.now_ms())
            log.close()
        shutil.copytree(
            apache.data, work / "apache-files", ignore=shutil.ignore_patterns("*.lock", "*.deleted")
        )
        yield Compacted(theirs, mine, original, work / "apache-files", copy, apache)
    finally:
        peer.stop(work / "apache")


@pytest.mark.parametrize("cleaning", [0, 1])
@pytest.mark.parametrize("topic", TOPICS)
def test_the_same_batches_stay_with_the_same_records(compacted: Compacted, topic: str, cleaning: int) -> None:
    theirs, mine = compacted.apache[cleaning][topic], compacted.odradek[cleaning][topic]
    assert list(mine) == list(theirs), "the same segments"
    for base_offset, batches in theirs.items():
        assert mine[base_offset] == batches
    before = compacted.original[topic] if cleaning == 0 else compacted.odradek[0][topic]
    if (topic, cleaning) != ("append-time", 1):  # whose generations are all in the past
        assert len(kept(mine)) < len(kept(before)), "records were really taken out"


def test_tombstones_go_after_their_horizon_only(compacted: Compacted) -> None:
    for batches in (compacted.apache[1], compacted.odradek[1]):
        # The last generation is that of the active segment.
        tombstones = {
            topic: [o for o, _, value in kept(batches[topic]) if value is None and o < 48]
            for topic in (KEPT, GONE)
        }
        assert tombstones[KEPT]
        assert not tombstones[GONE]


def test_transactions_leave_markers_empty_batches_and_the_same_index(compacted: Compacted) -> None:
    for path in (compacted.apache_files, compacted.odradek_files):
        found = metas(path / "txn-0")
        assert any(m.is_control and m.has_delete_horizon for m in found)
        assert {
            p.name: p.read_bytes() for p in sorted((path / "txn-0").glob("*.txnindex")) if p.stat().st_size
        } == {
            p.name: p.read_bytes()
            for p in sorted((compacted.apache_files / "txn-0").glob("*.txnindex"))
            if p.stat().st_size
        }
    assert any(
        m.record_count == 0 and m.producer_id >= 0 for m in metas(compacted.odradek_files / "idempotent-0")
    )


@pytest.mark.parametrize("topic", ["none", "idempotent"])
def test_indexes_have_the_same_bytes(compacted: Compacted, topic: str) -> None:
    sealed = sorted((compacted.odradek_files / f"{topic}-0").glob("*.log"))[:-1]
    assert sealed
    for path in sealed:
        for suffix in (".index", ".timeindex", ".log"):
            name = path.with_suffix(suffix).name
            mine = (compacted.odradek_files / f"{topic}-0" / name).read_bytes()
            theirs = (compacted.apache_files / f"{topic}-0" / name).read_bytes()
            assert mine == theirs, name


def test_apaches_dump_accepts_our_files(compacted: Compacted) -> None:
    directories = [compacted.odradek_files / f"{topic}-0" for topic in TOPICS]
    logs = [path for directory in directories for path in sorted(directory.glob("*.log"))]
    indexes = [
        path
        for directory in directories
        for suffix in ("index", "timeindex", "txnindex")
        for path in sorted(directory.glob(f"*.{suffix}"))
        if path.stat().st_size
    ]
    text = dump([*logs, *indexes], "--deep-iteration", "--print-data-log")
    complaints = [c for c in COMPLAINTS.findall(text) if "is followed by" not in c]
    assert not complaints, complaints
    assert text.count("Dumping") == len(logs) + len(indexes)
    sane = [path for path in indexes if path.suffix != ".txnindex"]
    text = dump(sane, "--index-sanity-check")
    assert text.count("passed sanity check") == len(sane), text


def consume(bootstrap: str, topic: str) -> list[tuple[int, bytes | None, bytes | None, int]]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": str(uuid.uuid4()),
            "auto.offset.reset": "earliest",
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found = []
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline:
            message = consumer.poll(1)
            if message is None:
                continue
            if message.error():
                return found
            found.append((message.offset(), message.key(), message.value(), message.timestamp()[1]))
        raise AssertionError(f"no end of {topic}: {len(found)} records")
    finally:
        consumer.close()


def old_segment() -> bytes:
    """What brokers of 0.8 and 0.10 wrote: messages of magic 0 and 1, alone and compressed."""
    plain = [(i, b"old-%d" % (i % 5), b"value-%d" % i) for i in range(20)]
    packed = [(20 + i, b"old-%d" % (i % 7), b"packed-%d" % i) for i in range(10)]
    last = [(30 + i, b"old-%d" % i, None if i == 2 else b"last-%d" % i) for i in range(4)]
    return (
        b"".join(entry(1, *one) for one in plain[:10])
        + b"".join(entry(0, *one) for one in plain[10:])
        + wrapped(1, packed[:5], compression.GZIP)
        + wrapped(0, packed[5:], compression.SNAPPY)
        + wrapped(1, last, compression.GZIP)
    )


def test_apache_serves_our_directory_and_compacts_old_formats_as_we_do(
    compacted: Compacted, tmp_path: pathlib.Path
) -> None:
    apache = compacted.running
    peer.stop(apache.directory)
    for topic in TOPICS:
        shutil.rmtree(apache.data / f"{topic}-0")
        shutil.copytree(compacted.odradek_files / f"{topic}-0", apache.data / f"{topic}-0")
    legacy = apache.data / "legacy-0"
    for path in legacy.glob("0*"):
        path.unlink()
    (legacy / f"{0:020d}.log").write_bytes(old_segment())
    peer.command("restart", apache.directory, "all")
    for topic in TOPICS:
        found = consume(apache.bootstrap, topic)
        expected = [
            (r.offset, r.key, r.value, r.timestamp)
            for of_segment in compacted.odradek[1][topic].values()
            for batch in of_segment
            if not batch.header[3] & 0x20
            for r in batch.records
        ]
        if topic == "txn":  # what was aborted in the last generation is still there, and not shown
            assert found == [row for row in expected if row in found]
            assert {row[1] for row in found} == {row[1] for row in expected}
        else:
            assert found == expected
    producer = Producer({"bootstrap.servers": apache.bootstrap})
    now_ms = int(time.time() * 1000)
    for key, stamp_ms in (("old-1", now_ms), ("other", now_ms), ("active", now_ms + 30 * MINUTE_MS)):
        producer.produce("legacy", key=key, value="new", partition=0, timestamp=stamp_ms)
        producer.flush()
    shutil.copytree(legacy, tmp_path / "legacy-0")
    log, runtime = ours(tmp_path / "legacy-0", "legacy", 0)
    end = examine(log, runtime.clock.now_ms()).first_uncleanable_offset
    assert end > 30
    clean(log, runtime)
    apache.set_lag(("legacy",), 0)
    apache.wait_cleaned({"legacy": end})
    assert segments(tmp_path / "legacy-0") == segments(legacy)
    assert {meta.magic for meta in metas(tmp_path / "legacy-0")} == {2}
    log.close()
