"""Writes in foreachBatch: they belong to a batch of a query, which may be run again, and may be left out."""

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import DataFrame, SparkSession

from odradek.client.blocking import BlockingClient
from odradek.spark.ledger.ledger_log import LedgerLog
from odradek.spark.pipelines.pipeline import Pipeline
from odradek.spark.pipelines.pipeline_spec import parse
from tests.spark.test_sink import Committed, Send, ids, write


def each_batch(
    spark: SparkSession,
    options: dict[str, str],
    source: str,
    checkpoint: Path,
    program: Callable[[DataFrame, int], None],
    **more: str,
) -> None:
    """Run a program over all that is there."""
    reader = spark.readStream.format("odradek").options(
        **options, subscribe=source, startingOffsets="earliest", **more
    )
    writer = reader.load().writeStream.foreachBatch(program).option("checkpointLocation", str(checkpoint))
    writer.trigger(availableNow=True).start().awaitTermination(90)


def test_writes_in_foreach_batch_belong_to_the_batch(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    """The program fails after its first write, is run again with the same batch, and writes nothing twice."""
    source, first, second = make_topic(1), make_topic(1), make_topic(1)
    send(source, [(None, str(i).encode()) for i in range(300)])
    told = {**options, "checkpointLocation": str(tmp_path)}

    def run(fails: bool) -> None:
        def write_both(frame: DataFrame, batch: int) -> None:
            write(frame.select("value"), told, topic=first, sinkId="first")
            if fails:
                raise RuntimeError("on purpose")
            write(frame.select("value"), told, topic=second, sinkId="second")

        each_batch(spark, options, source, tmp_path, write_both)

    with pytest.raises(PySparkException, match="on purpose"):
        run(fails=True)
    assert ids(committed(first)) == Counter(range(300))
    run(fails=False)
    assert ids(committed(first)) == ids(committed(second)) == Counter(range(300))


def test_two_writes_of_a_batch_to_one_sink_are_refused(
    spark: SparkSession, options: dict[str, str], make_topic: Callable[..., str], send: Send, tmp_path: Path
) -> None:
    """Else the second would be taken for the first one run again, and be lost."""
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, b"1")])

    def write_twice(frame: DataFrame, batch: int) -> None:
        for _ in range(2):
            write(frame.select("value"), options, topic=sink, checkpointLocation=str(tmp_path))

    for _ in range(2):
        with pytest.raises(PySparkException, match="give each write in foreachBatch its own sinkId"):
            each_batch(spark, options, source, tmp_path, write_twice)


def test_a_write_may_begin_late_and_leave_batches_out(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, str(i).encode()) for i in range(60)])
    seen: list[int] = []

    def write_some(frame: DataFrame, batch: int) -> None:
        seen.append(batch)
        if batch in (1, 2, 5):
            told = {"checkpointLocation": str(tmp_path), "sinkId": "errors"}
            write(frame.select("value"), options, topic=sink, **told)

    each_batch(spark, options, source, tmp_path, write_some, maxOffsetsPerTrigger="10")
    assert seen == list(range(6))
    assert ids(committed(sink)) == Counter([*range(10, 30), *range(50, 60)])


def test_a_write_that_is_told_of_the_checkpoint_knows_its_batch_by_its_offsets(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    bootstrap: str,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    """A copy of the checkpoint that is one batch behind is refused, and the query's lag can be seen."""
    source, sink, group = make_topic(1), make_topic(1), unique("group")

    def run(checkpoint: Path) -> None:
        told = {"checkpointLocation": str(checkpoint), "offsets.group": group}

        def copy(frame: DataFrame, batch: int) -> None:
            write(frame.select("value"), options, topic=sink, **told)

        each_batch(spark, options, source, checkpoint, copy)

    for number, (first, last) in enumerate([(0, 10), (10, 20), (20, 30)]):
        send(source, [(None, str(i).encode()) for i in range(first, last)])
        if number == 2:
            with pytest.raises(PySparkException, match="batch 1 was committed with other records"):
                run(tmp_path / "older")
        run(tmp_path / "now")
        if number == 0:
            shutil.copytree(tmp_path / "now", tmp_path / "older")
    assert ids(committed(sink)) == Counter(range(30))
    with BlockingClient(bootstrap) as client:
        (found,) = client.call(client.admin.committed, group).values()
    assert found.committed_offset == 30


def test_a_write_that_is_not_told_of_the_checkpoint_is_refused_and_one_of_another_query_too(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    """Else a copy of the checkpoint that is one batch older would lose its next batch: it would be taken for
    the one that was committed last."""
    source, sink = make_topic(1), make_topic(1)
    send(source, [(None, b"1")])

    def run(checkpoint: Path, **told: str) -> None:
        def copy(frame: DataFrame, batch: int) -> None:
            write(frame.select("value"), options, topic=sink, **told)

        each_batch(spark, options, source, checkpoint, copy)

    with pytest.raises(PySparkException, match=r'Add this line to the write.*"checkpointLocation"'):
        run(tmp_path / "one")
    run(tmp_path / "one", checkpointLocation=str(tmp_path / "one"))
    with pytest.raises(PySparkException, match="belongs to the query"):
        run(tmp_path / "two", checkpointLocation=str(tmp_path / "one"))
    assert ids(committed(sink)) == Counter([1])


def test_a_batch_with_other_rows_is_not_taken_for_the_one_that_was_committed(
    spark: SparkSession,
    options: dict[str, str],
    topic: str,
    committed: Committed,
    unique: Callable[[str], str],
) -> None:
    """Where no checkpoint is known, as in a job that numbers its batches itself."""
    named = {"topic": topic, "idempotencyKey": unique("days"), "batchId": "7"}

    def run(rows: int, **more: str) -> None:
        write(spark.range(rows).selectExpr("cast(id as string) value"), options, **named, **more)

    run(3)
    with pytest.raises(PySparkException, match="was committed with 3 records, and has 5 now"):
        run(5)
    run(5, adoptCheckpoint="true")
    assert ids(committed(topic)) == Counter(range(3))


def test_a_write_from_a_thread_is_told_its_batch(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    """A thread of Python's does not have what Spark says of the job."""
    source, sink, key = make_topic(1), make_topic(1), unique("stream")
    send(source, [(None, str(i).encode()) for i in range(30)])

    def run(fails: bool) -> None:
        def write_beside(frame: DataFrame, batch: int) -> None:
            def in_thread() -> None:
                made = frame.sparkSession.createDataFrame(frame.select("value").collect(), "value binary")
                write(made, options, topic=sink, idempotencyKey=key, batchId=str(batch))

            beside = Thread(target=in_thread)
            beside.start()
            beside.join()
            if fails:
                raise RuntimeError("on purpose")

        each_batch(spark, options, source, tmp_path, write_beside, maxOffsetsPerTrigger="10")

    with pytest.raises(PySparkException, match="on purpose"):
        run(fails=True)
    run(fails=False)
    assert ids(committed(sink)) == Counter(range(30))


def test_batches_that_a_job_numbers_itself_do_not_go_back(
    spark: SparkSession,
    options: dict[str, str],
    topic: str,
    committed: Committed,
    bootstrap: str,
    unique: Callable[[str], str],
) -> None:
    key = unique("days")

    def run(day: int) -> None:
        frame = spark.range(day, day + 1).selectExpr("cast(id as string) value")
        write(frame, options, topic=topic, idempotencyKey=key, batchId=str(day))

    for day in (20261101, 20261101, 20261104, 20261104):
        run(day)
    with pytest.raises(PySparkException, match=r"batch 20261102 .*was committed, 20261104"):
        run(20261102)
    assert ids(committed(topic)) == Counter([20261101, 20261104])
    with BlockingClient(bootstrap) as client:
        known = client.call(LedgerLog(client.client).read).entries
    assert len([stream for stream in known if key.encode() in stream]) == 1


def test_changed_rows_of_a_state_are_written_once_in_update_mode(
    spark: SparkSession,
    options: dict[str, str],
    make_topic: Callable[..., str],
    send: Send,
    committed: Committed,
    tmp_path: Path,
) -> None:
    """Spark refuses the mode to every sink in Python; in foreachBatch it gives it, and a pipeline does so."""
    source, sink = make_topic(1), make_topic(1)
    (tmp_path / "count.sql").write_text(
        "SELECT cast(key AS string) key, cast(count(*) AS string) value FROM words GROUP BY key"
    )
    given = {
        "name": "counting",
        "trigger": "available-now",
        "transform": "count.sql",
        "cluster": options,
        "sources": {"words": {"subscribe": source, "startingOffsets": "earliest"}},
        "sinks": {"counts": {"topic": sink, "outputMode": "update"}},
    }

    def run() -> None:
        pipeline = Pipeline(parse(given, tmp_path), spark)
        pipeline.start()
        pipeline.queries["counts"].awaitTermination(90)

    send(source, [(b"a", b""), (b"b", b""), (b"a", b"")])
    run()
    send(source, [(b"b", b"")])
    run()
    found = [(message.key(), message.value()) for message in committed(sink)]
    assert sorted(found[:2]) == [(b"a", b"2"), (b"b", b"1")]
    assert found[2:] == [(b"b", b"2")], "only what has changed"

    counts = spark.readStream.format("odradek").options(**options, subscribe=source).load().groupBy("key")
    refused = counts.count().selectExpr("cast(count as string) value").writeStream.format("odradek")
    refused = refused.options(**options, topic=sink, checkpointLocation=str(tmp_path / "refused"))
    with pytest.raises(PySparkException, match="odradek does not support Update mode"):
        refused.outputMode("update").trigger(availableNow=True).start().awaitTermination(90)
