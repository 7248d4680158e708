"""Topics read as DataFrames, batch and stream, beside what real clients wrote."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import confluent_kafka.admin
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odradek.spark.session import allow_several_streams, stream_environment
from tests.spark.conftest import read_committed
from tests.support.node import running
from tests.support.topics import create_topic

Read = Callable[..., DataFrame]
Send = Callable[..., None]


def values(frame: DataFrame) -> list[str]:
    return sorted(row.value.decode() for row in frame.select("value").collect())


def test_the_columns_are_the_official_connectors(
    read: Read, send: Send, make_topic: Callable[..., str]
) -> None:
    topic = make_topic(2)
    send(topic, [{"key": b"k", "value": b"v", "partition": 1, "timestamp": 1_700_000_000_123}])
    frame = read(topic)
    assert [(f.name, f.dataType.simpleString()) for f in frame.schema.fields] == [
        ("key", "binary"),
        ("value", "binary"),
        ("topic", "string"),
        ("partition", "int"),
        ("offset", "bigint"),
        ("timestamp", "timestamp"),
        ("timestampType", "int"),
    ]
    (row,) = frame.selectExpr("*", "unix_millis(timestamp) ms").collect()
    assert (bytes(row.key), bytes(row.value), row.topic, row.partition, row.offset) == (
        b"k",
        b"v",
        topic,
        1,
        0,
    )
    assert (row.ms, row.timestampType) == (1_700_000_000_123, 0)


def test_nulls_and_headers_are_shown(read: Read, send: Send, topic: str) -> None:
    send(
        topic,
        [
            {"key": None, "value": None},
            {"key": b"", "value": b"", "headers": [("a", b"1"), ("a", None), ("ü", b"")]},
        ],
    )
    first, second = read(topic, includeHeaders="true").orderBy("offset").collect()
    assert (first.key, first.value, first.headers) == (None, None, None)
    assert (bytes(second.key), bytes(second.value)) == (b"", b"")
    assert [(h.key, None if h.value is None else bytes(h.value)) for h in second.headers] == [
        ("a", b"1"),
        ("a", None),
        ("ü", b""),
    ]


@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4", "zstd"])
def test_every_codec_and_many_batches(
    read: Read, send: Send, make_topic: Callable[..., str], codec: str
) -> None:
    topic = make_topic(3)
    sent = [f"{i:06d}" for i in range(20_000)]
    send(topic, [(v.encode(), v.encode()) for v in sent], **{"compression.type": codec, "linger.ms": 5})
    assert values(read(topic)) == sent
    pieces = read(topic, minPartitions="7")
    assert pieces.rdd.getNumPartitions() >= 7
    assert values(pieces) == sent


def test_offsets_and_times_bound_a_batch(read: Read, send: Send, topic: str) -> None:
    send(topic, [{"value": str(i).encode(), "timestamp": 1_000 + i} for i in range(10)])
    bounded = read(
        topic, startingOffsets=f'{{"{topic}": {{"0": 3}}}}', endingOffsets=f'{{"{topic}": {{"0": 7}}}}'
    )
    assert values(bounded) == ["3", "4", "5", "6"]
    assert values(read(topic, startingTimestamp="1008")) == ["8", "9"]
    assert values(read(topic, endingTimestamp="1002")) == ["0", "1"]
    by_time = read(topic, startingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1005}}}}')
    assert values(by_time) == ["5", "6", "7", "8", "9"]
    until = read(topic, endingOffsetsByTimestamp=f'{{"{topic}": {{"0": 1005}}}}', endingOffsets="latest")
    assert values(until) == ["0", "1", "2", "3", "4"]
    beyond = read(topic, endingOffsetsByTimestamp=f'{{"{topic}": {{"0": 5000}}}}')
    assert len(values(beyond)) == 10, "nothing is as young: to the end"
    with pytest.raises(PySparkException, match="no record at or after the time"):
        read(topic, startingTimestamp="5000").collect()
    late = read(topic, startingTimestamp="5000", startingOffsetsByTimestampStrategy="latest")
    assert values(late) == []


def test_partitions_that_are_assigned_are_read_and_no_others(
    spark: SparkSession, options: dict[str, str], send: Send, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(3)
    send(topic, [{"value": str(i).encode(), "partition": i % 3} for i in range(30)])
    assigned = {"assign": f'{{"{topic}": [0, 2]}}'}
    found = spark.read.format("odradek").options(**options, **assigned).load()
    expected = sorted(str(i) for i in range(30) if i % 3 != 1)
    assert values(found) == expected
    query = stream_of(spark, options, tmp_path, **assigned).trigger(availableNow=True).start()
    query.awaitTermination(60)
    rows = spark.read.parquet(str(tmp_path / "data")).collect()
    assert sorted(row.value for row in rows) == expected
    with pytest.raises(PySparkException, match=f"there is no partition {topic}-7"):
        spark.read.format("odradek").options(**options, assign=f'{{"{topic}": [7]}}').load().collect()


def test_a_task_has_no_more_records_than_allowed(read: Read, send: Send, topic: str) -> None:
    send(topic, [(None, str(i).encode()) for i in range(1_000)])
    pieces = read(topic, maxRecordsPerPartition="150")
    sizes = [len(part) for part in pieces.select("value").rdd.glom().collect()]
    assert len(sizes) == 7
    assert max(sizes) <= 150
    assert sum(sizes) == 1_000
    assert values(pieces) == sorted(str(i) for i in range(1_000))


def test_aborted_records_and_open_transactions_are_not_shown(
    read: Read, send: Send, bootstrap: str, topic: str, unique: Callable[[str], str]
) -> None:
    def transact(end: str) -> confluent_kafka.Producer:
        producer = confluent_kafka.Producer(
            {"bootstrap.servers": bootstrap, "transactional.id": unique("txn")}
        )
        producer.init_transactions(20)
        producer.begin_transaction()
        for i in range(100):
            producer.produce(topic, f"{end} {i}".encode())
        producer.flush(20)
        if end == "committed":
            producer.commit_transaction(20)
        elif end == "aborted":
            producer.abort_transaction(20)
        return producer

    transact("committed")
    transact("aborted")
    send(topic, [(None, b"plain")])
    left = transact("open")
    shown = [*(f"committed {i}" for i in range(100)), "plain"]
    assert values(read(topic)) == sorted(shown)
    everything = values(read(topic, isolation="read_uncommitted"))
    assert len(everything) == 301
    left.abort_transaction(20)


def test_what_is_wrong_is_told(read: Read, spark: SparkSession, options: dict[str, str], topic: str) -> None:
    cases: list[tuple[dict[str, str], str]] = [
        ({"subscribe": "nowhere"}, "there is no topic nowhere"),
        ({"subscribe": topic, "startngOffsets": "earliest"}, "did you mean startingOffsets"),
        ({"subscribe": topic, "kafka.interceptor.classes": "x"}, "no Java client to load classes into"),
        ({"subscribe": topic, "kafka.value.deserializer": "x"}, "keys and values are bytes"),
        ({"subscribe": topic, "startingOffsets": f'{{"{topic}": {{"7": 0}}}}'}, f"{topic}-7 is not read"),
    ]
    for given, told in cases:
        with pytest.raises(PySparkException) as refusal:
            spark.read.format("odradek").options(**options, **given).load().collect()
        assert told in str(refusal.value)


def test_retention_that_overtook_the_offsets_is_told(
    read: Read, send: Send, topic: str, bootstrap: str, spark: SparkSession
) -> None:
    send(topic, [(None, str(i).encode()) for i in range(10)])
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    place = confluent_kafka.TopicPartition(topic, 0, 6)
    for future in admin.delete_records([place]).values():
        future.result(20)
    given = {"startingOffsets": f'{{"{topic}": {{"0": 2}}}}'}
    with pytest.raises(
        PySparkException, match="now begins at offset 6, but offsets 2 to 9 are to be"
    ) as refusal:
        read(topic, **given).collect()
    assert "4 are gone" in str(refusal.value)
    assert values(read(topic, failOnDataLoss="false", **given)) == ["6", "7", "8", "9"]
    assert values(read(topic)) == ["6", "7", "8", "9"]


def stream_of(spark: SparkSession, options: dict[str, str], sink: Path, **more: str) -> Any:
    return (
        spark.readStream.format("odradek")
        .options(**options, startingOffsets="earliest", **more)
        .load()
        .selectExpr("topic", "partition", "offset", "cast(value as string) value")
        .writeStream.format("parquet")
        .option("checkpointLocation", str(sink / "checkpoint"))
        .option("path", str(sink / "data"))
    )


def test_a_stream_reads_what_is_there_in_limited_batches(
    spark: SparkSession, options: dict[str, str], send: Send, make_topic: Callable[..., str], tmp_path: Path
) -> None:
    topic = make_topic(3)
    send(topic, [(str(i).encode(), str(i).encode()) for i in range(1_000)])
    query = stream_of(spark, options, tmp_path, subscribe=topic, maxOffsetsPerTrigger="300")
    query = query.trigger(availableNow=True).start()
    query.awaitTermination(90)
    batches = [p["numInputRows"] for p in query.recentProgress]
    assert len(batches) >= 4
    assert max(batches) <= 303
    found = spark.read.parquet(str(tmp_path / "data"))
    assert sorted(int(r.value) for r in found.collect()) == list(range(1_000))


def test_a_stream_that_begins_adds_nothing_to_what_all_streams_share(
    spark: SparkSession, options: dict[str, str], topic: str, send: Send, tmp_path: Path
) -> None:
    """Two that begin at the same time would break it: Spark does not lock it."""
    shared = stream_environment(spark)
    for key in list(shared):
        if key.startswith("SPARK_"):
            shared.remove(key)  # what streams of other tests have added
    send(topic, [(None, b"1")])
    allow_several_streams(spark)
    before = set(shared)
    reader = spark.readStream.format("odradek").options(**options, subscribe=topic).load()
    writer = reader.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    query = writer.trigger(availableNow=True).start()
    query.awaitTermination(60)
    assert set(shared) == before


def test_partitions_and_topics_that_appear_are_read_from_their_beginning(
    spark: SparkSession,
    options: dict[str, str],
    send: Send,
    make_topic: Callable[..., str],
    bootstrap: str,
    tmp_path: Path,
) -> None:
    first = make_topic(1, prefix="grows")
    pattern = f"{first}.*"
    send(first, [(None, b"a")])

    def run() -> set[str]:
        query = (
            stream_of(spark, options, tmp_path, subscribePattern=pattern).trigger(availableNow=True).start()
        )
        query.awaitTermination(60)
        return {row.value for row in spark.read.parquet(str(tmp_path / "data")).collect()}

    assert run() == {"a"}
    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
    for future in admin.create_partitions([confluent_kafka.admin.NewPartitions(first, 3)]).values():
        future.result(20)
    for future in admin.create_topics([confluent_kafka.admin.NewTopic(f"{first}-more", 2, 1)]).values():
        future.result(20)
    send(first, [{"value": b"b", "partition": 2}])
    send(f"{first}-more", [{"value": b"c", "partition": 1}])
    assert run() == {"a", "b", "c"}


def test_partitions_and_topics_that_appear_while_a_query_runs_are_read_from_their_beginning(
    spark: SparkSession,
    options: dict[str, str],
    send: Send,
    make_topic: Callable[..., str],
    bootstrap: str,
    tmp_path: Path,
) -> None:
    first = make_topic(1, prefix="running")
    send(first, [(None, b"a")])
    writer = stream_of(spark, options, tmp_path, subscribePattern=f"{first}.*")
    query = writer.trigger(processingTime="100 milliseconds").start()

    def found() -> set[str]:
        query.processAllAvailable()
        return {row.value for row in spark.read.parquet(str(tmp_path / "data")).collect()}

    try:
        assert found() == {"a"}
        admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": bootstrap})
        for future in admin.create_partitions([confluent_kafka.admin.NewPartitions(first, 2)]).values():
            future.result(20)
        for future in admin.create_topics([confluent_kafka.admin.NewTopic(f"{first}-more", 2, 1)]).values():
            future.result(20)
        send(first, [{"value": b"b", "partition": 1}, {"value": b"c", "partition": 0}])
        send(f"{first}-more", [{"value": b"d", "partition": 1}])
        assert found() == {"a", "b", "c", "d"}
        send(f"{first}-more", [{"value": b"e", "partition": 0}])
        assert found() == {"a", "b", "c", "d", "e"}
        assert query.isActive
    finally:
        query.stop()
    assert query.exception() is None


def test_gaps_of_compaction_are_no_loss(spark: SparkSession, tmp_path: Path) -> None:
    """Some micro-batches and tasks begin, end or lie in a gap as a whole."""
    eager = ("--set", "log.cleaner.backoff.ms=30", "--set", "log.cleaner.min.cleanable.ratio=0.01")
    with running(tmp_path / "node", *eager) as node:
        topic = "compacted"
        create_topic(node.bootstrap, topic, 1, {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)})
        producer = confluent_kafka.Producer({"bootstrap.servers": node.bootstrap, "batch.num.messages": 10})
        for i in range(3_000):
            key = f"once {i}" if i % 700 == 0 else f"{i % 5}"
            producer.produce(topic, key=key, value=f"{i:04d}".ljust(1_000))
            producer.poll(0)
        assert producer.flush(30) == 0

        def offsets() -> list[int]:
            return [message.offset() for message in read_committed(node.bootstrap, topic)]

        deadline = time.monotonic() + 60
        before, left = offsets(), offsets()
        while len(left) > 2_000 or left != before:
            assert time.monotonic() < deadline, len(left)
            time.sleep(0.3)
            before, left = left, offsets()
        assert {0, 700, 1_400, 2_100, 2_800} <= set(left)
        options = {"kafka.bootstrap.servers": node.bootstrap}
        reader = spark.read.format("odradek").options(**options, subscribe=topic)
        assert sorted(row.offset for row in reader.load().collect()) == left
        pieces = reader.option("maxRecordsPerPartition", "50").load()
        assert sorted(row.offset for row in pieces.collect()) == left
        limited = stream_of(spark, options, tmp_path, subscribe=topic, maxOffsetsPerTrigger="100")
        query = limited.trigger(availableNow=True).start()
        query.awaitTermination(90)
        rows = spark.read.parquet(str(tmp_path / "data")).collect()
        assert sorted(row.offset for row in rows) == left
