"""DataFrames written into topics, counted by a real client at read_committed."""

import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from confluent_kafka import Message
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odradek.client.blocking import BlockingClient
from odradek.client.partitioner import partition_of_key

Committed = Callable[[str], list[Message]]
Send = Callable[..., None]
ROWS = "cast(id as string) key", "cast(id as string) value"


def write(frame: DataFrame, options: dict[str, str], **more: str) -> None:
    frame.write.format("odradek").options(**options, **more).mode("append").save()


def ids(messages: list[Message]) -> Counter[int]:
    return Counter(int(message.value() or b"") for message in messages)


@pytest.mark.parametrize("delivery", ["exactly-once", "at-least-once"])
@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_rows_become_records_where_java_clients_would_put_them(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    committed: Committed,
    delivery: str,
    codec: str,
) -> None:
    topic = make_topic(5)
    rows = spark.range(0, 30_000, 1, 3).selectExpr(*ROWS)
    write(rows, options, topic=topic, delivery=delivery, **{"kafka.compression.type": codec})
    found = committed(topic)
    assert ids(found) == Counter(range(30_000))
    for message in found:
        assert message.partition() == partition_of_key(message.key(), 5)


def test_topics_partitions_headers_and_nulls_come_from_columns(
    spark: SparkSession, options: dict[str, str], make_topic: Callable[..., str], committed: Committed
) -> None:
    a, b = make_topic(3, prefix="a"), make_topic(2, prefix="b")
    rows = [
        (None, "1", a, 2, [("h", b"x"), ("h", None)]),
        ("k", None, a, 0, []),
        ("k", "3", b, None, None),
    ]
    schema = (
        "key string, value string, topic string, partition int, "
        "headers array<struct<key: string, value: binary>>"
    )
    write(spark.createDataFrame(rows, schema), options)
    in_a = {m.partition(): m for m in committed(a)}
    assert (in_a[2].key(), in_a[2].value(), in_a[2].headers()) == (None, b"1", [("h", b"x"), ("h", None)])
    assert (in_a[0].key(), in_a[0].value(), in_a[0].headers()) == (b"k", None, None)
    (in_b,) = committed(b)
    assert (in_b.key(), in_b.value(), in_b.headers()) == (b"k", b"3", None)
    assert in_b.partition() == partition_of_key(b"k", 2)


def test_columns_that_a_record_does_not_have_are_left_out_and_the_option_topic_goes_first(
    spark: SparkSession, options: dict[str, str], make_topic: Callable[..., str], committed: Committed
) -> None:
    """As the official connector does (test_official_connector.py has both write such rows)."""
    topic, other = make_topic(1), make_topic(1)
    frame = spark.range(10).selectExpr(*ROWS, "id", "array(id) more", f"'{other}' topic")
    write(frame, options, topic=topic)
    assert ids(committed(topic)) == Counter(range(10))
    assert committed(other) == []


def test_rows_without_keys_are_spread(
    spark: SparkSession, options: dict[str, str], make_topic: Callable[..., str], committed: Committed
) -> None:
    topic = make_topic(3)
    write(spark.range(0, 100_000, 1, 2).selectExpr("cast(id as string) value"), options, topic=topic)
    found = committed(topic)
    assert len(found) == 100_000
    assert len({m.partition() for m in found}) == 3


def test_what_cannot_become_a_record_is_told_and_nothing_is_written(
    spark: SparkSession, options: dict[str, str], topic: str, committed: Committed
) -> None:
    rows = spark.range(10)
    cases: list[tuple[DataFrame, dict[str, str], str]] = [
        (rows.selectExpr("id value"), {"topic": topic}, "the column value is bigint"),
        (rows.selectExpr("cast(id as string) valu"), {"topic": topic}, "there is no column value"),
        (rows.selectExpr("cast(id as string) key"), {"topic": topic}, "there is no column value"),
        (rows.selectExpr("cast(id as string) value"), {}, "no topic: give the option topic"),
        (rows.selectExpr("cast(id as string) value", "cast(null as string) topic"), {}, "topic is null"),
        (rows.selectExpr("cast(id as string) value"), {"topic": "no/where"}, "INVALID_TOPIC"),
        (rows.selectExpr("'x' value", "9 partition"), {"topic": topic}, "there is no partition 9"),
        (rows.selectExpr("repeat('x', 2000000) value"), {"topic": topic}, "MESSAGE_TOO_LARGE"),
        (rows.selectExpr("'x' value"), {"topic": topic, "delivry": "x"}, "did you mean delivery"),
    ]
    for frame, given, told in cases:
        with pytest.raises(PySparkException) as refusal:
            write(frame, {**options, "kafka.default.api.timeout.ms": "3000"}, **given)
        assert told in str(refusal.value)
    assert committed(topic) == []


def test_a_job_with_a_key_is_written_once_however_often_it_is_run(
    spark: SparkSession,
    options: dict[str, str],
    topic: str,
    committed: Committed,
    unique: Callable[[str], str],
) -> None:
    key = unique("job")
    for _ in range(3):
        write(spark.range(100).selectExpr(*ROWS), options, topic=topic, idempotencyKey=key)
    assert ids(committed(topic)) == Counter(range(100))


def copy(
    spark: SparkSession, options: dict[str, str], source: str, sink: str, checkpoint: Path, **more: str
) -> Any:
    return (
        spark.readStream.format("odradek")
        .options(**options, subscribe=source, startingOffsets="earliest", maxOffsetsPerTrigger="400")
        .load()
        .select("key", "value")
        .writeStream.format("odradek")
        .options(**options, topic=sink, checkpointLocation=str(checkpoint), **more)
        .trigger(availableNow=True)
        .start()
    )


def test_a_stream_is_copied_and_its_lag_can_be_seen(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    bootstrap: str,
    tmp_path: Path,
) -> None:
    source, sink = make_topic(2), make_topic(2)
    send(source, [(str(i).encode(), str(i).encode()) for i in range(1_000)])
    query = copy(spark, options, source, sink, tmp_path)
    query.awaitTermination(90)
    assert len(query.recentProgress) >= 3
    latest = [json.loads(p["sources"][0]["latestOffset"]) for p in query.recentProgress]
    assert {sum(offsets[source].values()) for offsets in latest} == {1_000}, "what there is, not what is read"
    send(source, [(str(i).encode(), str(i).encode()) for i in range(1_000, 1_100)])
    copy(spark, options, source, sink, tmp_path).awaitTermination(90)
    assert ids(committed(sink)) == Counter(range(1_100))
    with BlockingClient(bootstrap) as client:
        group = f"odradek.{query.id}"
        offsets = client.call(client.admin.committed, group)
        ends = client.call(client.admin.list_offsets, dict.fromkeys(offsets, -1))
        assert {tp.topic for tp in offsets} == {source}
        assert {tp: found.committed_offset for tp, found in offsets.items()} == {
            tp: found.offset for tp, found in ends.items()
        }


def test_another_copy_of_the_checkpoint_is_refused(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    """An older one has fewer batches: what follows them would be written a second time."""
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, str(i).encode()) for i in range(500)])
    copy(spark, options, source, sink, tmp_path / "now").awaitTermination(90)
    shutil.copytree(tmp_path / "now", tmp_path / "older")
    send(source, [(None, str(i).encode()) for i in range(500, 1_000)])
    copy(spark, options, source, sink, tmp_path / "now").awaitTermination(90)
    with pytest.raises(PySparkException, match="older copy of the checkpoint"):
        copy(spark, options, source, sink, tmp_path / "older").awaitTermination(90)
    assert ids(committed(sink)) == Counter(range(1_000))


def test_a_checkpoint_of_the_official_connector_is_adopted(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    """It has offsets of topics and nothing of whose they are; what its query has written is in no ledger."""
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, str(i).encode()) for i in range(10)])
    conf = {"spark.sql.shuffle.partitions": "2"}
    when = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1, "conf": conf})
    for name, lines in {
        "metadata": [json.dumps({"id": str(uuid4())})],
        "offsets/0": ["v1", when, json.dumps({source: {"0": 7}})],
        "commits/0": ["v1", json.dumps({"nextBatchWatermarkMs": 0})],
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("\n".join(lines))
    with pytest.raises(PySparkException, match="adoptCheckpoint=true the query begins here"):
        copy(spark, options, source, sink, tmp_path).awaitTermination(90)
    copy(spark, options, source, sink, tmp_path, adoptCheckpoint="true").awaitTermination(90)
    assert ids(committed(sink)) == Counter(range(7, 10))
