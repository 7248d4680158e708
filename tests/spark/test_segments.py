"""Log directories as DataFrames: what real clients saw before the node was killed, and what Apache wrote."""

import shutil
import signal
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import confluent_kafka
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from tests.golden import loader
from tests.support.node import running
from tests.support.topics import create_topic

Load = Callable[..., DataFrame]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
MANY_SEGMENTS = ("none", "zstd")
Seen = list[tuple[Any, ...]]


class Killed(NamedTuple):
    """A data directory whose node was killed, and what clients were shown before."""

    path: Path
    committed: Seen
    everything: Seen


@pytest.fixture
def load(spark: SparkSession) -> Load:
    def make(path: object, **options: str) -> DataFrame:
        return spark.read.format("odradek.segments").options(**options).load(str(path))

    return make


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Killed:
    path = tmp_path_factory.mktemp("segments") / "data"
    with running(path) as node:
        for codec in CODECS:
            create_topic(node.bootstrap, codec, 2, {"segment.ms": "1"} if codec in MANY_SEGMENTS else {})
            _fill(node.bootstrap, codec)
        committed = _consume(node.bootstrap, "read_committed")
        everything = _consume(node.bootstrap, "read_uncommitted")
        node.stop(signal.SIGKILL)
    return Killed(path, committed, everything)


def _fill(bootstrap: str, codec: str) -> None:
    """Plain records and transactions of every end, between each other, then one that stays open."""
    settings = {"bootstrap.servers": bootstrap, "compression.type": codec, "linger.ms": 20}
    plain = confluent_kafka.Producer(settings)
    writers = []
    for name in ("x", "y"):
        producer = confluent_kafka.Producer({**settings, "transactional.id": f"{codec}-{name}"})
        producer.init_transactions(20)
        writers.append(producer)
    for turn in range(4):
        for number, writer in enumerate(writers):
            writer.begin_transaction()
            _send(writer, codec, f"txn {number} {turn}")
        _send(plain, codec, f"plain {turn}")
        writers[0].commit_transaction(20)
        if turn % 2:
            writers[1].abort_transaction(20)
        else:
            writers[1].commit_transaction(20)
    writers[0].begin_transaction()
    writers[0].produce(codec, b"open", partition=0)
    writers[0].flush(20)
    _send(plain, codec, "behind")


def _send(producer: confluent_kafka.Producer, topic: str, text: str) -> None:
    for i in range(60):
        value = f"{text} {i}".encode()
        headers = [("n", str(i).encode()), ("none", None)] if i % 3 else None
        producer.produce(topic, value, key=str(i) if i % 2 else None, partition=i % 2, headers=headers)
    assert producer.flush(20) == 0


def _consume(bootstrap: str, isolation: str) -> Seen:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": isolation,
            "enable.partition.eof": True,
        }
    )
    consumer.assign([confluent_kafka.TopicPartition(codec, p, 0) for codec in CODECS for p in (0, 1)])
    found: Seen = []
    ended = 0
    while ended < 2 * len(CODECS):
        message = consumer.poll(20)
        assert message is not None
        if message.error() is not None:
            ended += 1
            continue
        kind, time_ms = message.timestamp()
        headers = message.headers()
        found.append(
            (
                *(message.topic(), message.partition(), message.offset(), time_ms, kind - 1),
                *(message.key(), message.value(), headers and tuple(headers)),
            )
        )
    consumer.close()
    return sorted(found, key=lambda row: row[:3])


def rows(frame: DataFrame) -> Seen:
    found = frame.selectExpr("*", "unix_millis(timestamp) ms").collect()
    shown = [
        (
            *(r.topic, r.partition, r.offset, r.ms, r.timestampType),
            *(_bytes(r.key), _bytes(r.value)),
            r.headers and tuple((h.key, _bytes(h.value)) for h in r.headers),
        )
        for r in found
    ]
    return sorted(shown, key=lambda row: row[:3])


def _bytes(value: Any) -> bytes | None:
    return None if value is None else bytes(value)


def test_a_killed_node_left_what_its_clients_saw(load: Load, killed: Killed) -> None:
    assert len(killed.committed) < len(killed.everything)
    frame = load(killed.path, includeHeaders="true")
    files = list(killed.path.glob("none-*/*.log"))
    assert len(files) > 10
    assert rows(frame) == killed.committed
    assert rows(load(killed.path, includeHeaders="true", isolation="read_uncommitted")) == killed.everything


def test_indexes_are_not_needed(load: Load, killed: Killed, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    shutil.copytree(killed.path, bare, ignore=shutil.ignore_patterns("*index", "*.snapshot"))
    assert rows(load(bare, includeHeaders="true")) == killed.committed


def test_topics_and_folders_are_chosen(load: Load, killed: Killed) -> None:
    def counted(frame: DataFrame) -> dict[tuple[str, int], int]:
        return {
            (r.topic, r.partition): r["count"] for r in frame.groupBy("topic", "partition").count().collect()
        }

    def wanted(*chosen: tuple[str, int]) -> dict[tuple[str, int], int]:
        return {c: sum(row[:2] == c for row in killed.committed) for c in chosen}

    both = wanted(("lz4", 0), ("lz4", 1), ("zstd", 0), ("zstd", 1))
    assert counted(load(killed.path, topics="lz4, zstd")) == both
    assert counted(load(killed.path, topicsPattern="lz4|zs.*")) == both
    some = wanted(("gzip", 1), ("none", 0))
    assert counted(load(f"{killed.path}/gzip-1,{killed.path}/none-0")) == some
    assert load(killed.path, topics="nowhere").collect() == []


def test_a_torn_tail_is_left_out_and_damage_is_told(load: Load, killed: Killed, tmp_path: Path) -> None:
    copy = tmp_path / "none-1"
    shutil.copytree(killed.path / "none-1", copy)
    segments = sorted(copy.glob("*.log"))
    with segments[-1].open("r+b") as file:
        file.truncate(segments[-1].stat().st_size - 5)
    whole = load(killed.path / "none-1", isolation="read_uncommitted").count()
    torn = load(copy, isolation="read_uncommitted").count()
    assert 0 < torn < whole
    with segments[1].open("r+b") as file:
        file.seek(61)
        byte = file.read(1)
        file.seek(61)
        file.write(bytes([byte[0] ^ 1]))
    with pytest.raises(PySparkException) as refusal:
        load(copy).collect()
    assert f"{segments[1]}: position " in str(refusal.value)
    assert "CRC" in str(refusal.value)


def test_what_is_wrong_is_told(load: Load, killed: Killed, tmp_path: Path) -> None:
    cases: list[tuple[object, dict[str, str], str]] = [
        (tmp_path / "nowhere", {}, "No such file"),
        (tmp_path, {}, "neither the directory of a partition nor a log directory"),
        (killed.path, {"topic": "x"}, "did you mean topics?"),
    ]
    for path, options, told in cases:
        with pytest.raises(PySparkException) as refusal:
            load(path, **options).collect()
        assert told in str(refusal.value)


@pytest.mark.parametrize("kind", ["clean", "crashed"])
def test_directories_of_apache_kafka_read_as_its_consumers_read_them(
    load: Load, tmp_path: Path, kind: Any
) -> None:
    path = loader.unpack(kind, tmp_path)
    for isolation in ("read_committed", "read_uncommitted"):
        expected = [
            (topic, r["partition"], r["offset"], r["timestamp"][1], r["key"], r["value"], r["headers"])
            for topic, read in loader.expected()["topics"].items()
            for r in read.get(isolation, read["read_uncommitted"])
        ]
        topics = ",".join(loader.expected()["topics"])
        found = [
            (*row[:4], *(_shown(v) for v in row[5:7]), _shown_headers(row[7]))
            for row in rows(load(path, includeHeaders="true", isolation=isolation, topics=topics))
        ]
        assert found == sorted(expected, key=lambda row: row[:3])


def _shown(value: bytes | None) -> Any:
    """A value as expected.json.gz shows it."""
    if value is None or len(value) < 100:
        return None if value is None else value.decode()
    return {"len": len(value), "crc32": zlib.crc32(value)}


def _shown_headers(headers: Any) -> Any:
    return [[name, _shown(value)] for name, value in headers] if headers else None
