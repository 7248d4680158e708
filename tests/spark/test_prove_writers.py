"""`odradek prove eos` when other producers wrote to the output too: their records are compared or
reported."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.sql import DataFrame, SparkSession

from tests.spark.test_foreach_batch import each_batch
from tests.spark.test_sink import Committed, Send, ids, write
from tests.support.command import odradek

RECORDS = 1_000
Copy = Callable[..., str]
Prove = Callable[..., dict[str, Any]]


@pytest.fixture
def source(make_topic: Callable[..., str], send: Send) -> str:
    made = make_topic(1)
    send(made, [(str(i).encode(), str(i).encode()) for i in range(RECORDS)])
    return made


@pytest.fixture
def copy(spark: SparkSession, options: dict[str, str], source: str) -> Copy:
    """All that is there, in one batch unless a limit says otherwise. Returns the query's id."""

    def run(sink: str, checkpoint: Path, **reading: str) -> str:
        query = (
            spark.readStream.format("odradek")
            .options(**options, subscribe=source, **{"startingOffsets": "earliest", **reading})
            .load()
            .writeStream.format("odradek")
            .options(**options, topic=sink, checkpointLocation=str(checkpoint))
            .trigger(availableNow=True)
            .start()
        )
        query.awaitTermination(90)
        return str(query.id)

    return run


@pytest.fixture
def prove(bootstrap: str, source: str) -> Prove:
    def ask(sink: str, *more: str, code: int) -> dict[str, Any]:
        outcome = odradek(
            "prove", "eos", "--from", source, "--to", sink, "-b", bootstrap, "-f", "json", *more
        )
        assert outcome.code == code, outcome
        found: dict[str, Any] = json.loads(outcome.text)
        assert found["proven"] is (code == 0)
        return found

    return ask


def test_one_query_under_two_checkpoints_in_one_batch_each_is_not_proven(
    copy: Copy,
    prove: Prove,
    committed: Committed,
    source: str,
    make_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    sink = make_topic(1)
    first = copy(sink, tmp_path / "first")
    found = prove(sink, code=0)
    assert (found["batches"], found["inputs"], found["outputs"]) == (1, RECORDS, RECORDS)
    second = copy(sink, tmp_path / "second")
    assert len(committed(sink)) == 2 * RECORDS
    found = prove(sink, code=3)
    assert (found["duplicates"], found["inputs"]) == (RECORDS, 2 * RECORDS)
    assert first in found["first_violation"] and second in found["first_violation"]
    checks = {v["check"] for v in found["violations"]}
    assert checks == {"ranges", "inputs"}, "more was read than the topic holds, too"
    alone = prove(sink, "--stream", second, code=0)
    assert alone["other_streams"] == [f"{first}/sink"]


def test_a_checkpoint_that_was_deleted_is_told_by_batches_that_overlap(
    copy: Copy, prove: Prove, source: str, make_topic: Callable[..., str], send: Send, tmp_path: Path
) -> None:
    sink = make_topic(1)
    copy(sink, tmp_path / "gone", maxOffsetsPerTrigger="300")
    shutil.rmtree(tmp_path / "gone")
    half = {"startingOffsets": json.dumps({source: {"0": 500}}), "maxOffsetsPerTrigger": "200"}
    copy(sink, tmp_path / "gone", **half)
    found = prove(sink, code=3)
    (overlap,) = [v for v in found["violations"] if v["check"] == "ranges"]
    assert (overlap["kind"], overlap["count"]) == ("duplicate", 500)
    assert overlap["place"] == f"{source}-0 offsets 500 to 999"
    assert "batches 0 to 2 of" in overlap["violation"] and "batches 1 to 3 of" in overlap["violation"]


def test_a_stream_that_began_where_another_ended_is_proven(
    copy: Copy, prove: Prove, source: str, make_topic: Callable[..., str], send: Send, tmp_path: Path
) -> None:
    sink = make_topic(1)
    copy(sink, tmp_path / "first")
    send(source, [(b"x", b"1")] * 20)
    copy(sink, tmp_path / "second", startingOffsets=json.dumps({source: {"0": RECORDS}}))
    found = prove(sink, code=0)
    assert (found["inputs"], found["outputs"]) == (RECORDS + 20, RECORDS + 20)


def test_a_second_sink_of_a_query_into_one_topic_is_found_and_another_topic_is_not_counted(
    spark: SparkSession,
    options: dict[str, str],
    prove: Prove,
    committed: Committed,
    source: str,
    make_topic: Callable[..., str],
    tmp_path: Path,
) -> None:
    sink, beside = make_topic(1), make_topic(1)
    told = {**options, "checkpointLocation": str(tmp_path)}

    def write_two(frame: DataFrame, batch: int) -> None:
        both = frame.selectExpr("value", f"'{sink}' topic").union(
            frame.selectExpr("value", f"'{beside}' topic")
        )
        write(both, told, sinkId="both")
        write(frame.select("value"), told, topic=beside, sinkId="again")

    each_batch(spark, options, source, tmp_path, write_two)
    assert (len(committed(sink)), len(committed(beside))) == (RECORDS, 2 * RECORDS)
    found = prove(sink, code=0)
    assert found["outputs"] == RECORDS, "the transactions have as many records elsewhere"
    found = prove(beside, code=3)
    assert found["duplicates"] == RECORDS
    assert "/again" in found["first_violation"] and "/both" in found["first_violation"]


def test_what_no_decision_covers_and_what_nobody_knows_the_input_of_is_not_proven(
    spark: SparkSession,
    options: dict[str, str],
    bootstrap: str,
    copy: Copy,
    prove: Prove,
    committed: Committed,
    make_topic: Callable[..., str],
    send: Send,
    tmp_path: Path,
    unique: Callable[[str], str],
) -> None:
    sink, name = make_topic(1), unique("stranger")
    query = copy(sink, tmp_path)
    stranger = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    stranger.init_transactions(20)
    stranger.begin_transaction()
    for i in range(RECORDS):
        stranger.produce(sink, str(i))
    stranger.commit_transaction(20)
    found = prove(sink, code=3)
    (violation,) = found["violations"]
    assert (violation["kind"], violation["count"]) == ("foreign", RECORDS)
    assert violation["violation"].startswith(f"{name} (producer ")
    assert prove(sink, "--stream", query, code=0)["other_records"] == RECORDS

    write(spark.range(7).selectExpr("cast(id as string) value"), options, topic=sink)
    found = prove(sink, code=3)
    assert sorted(v["kind"] for v in found["violations"]) == ["foreign", "unknown"]
    assert sum(ids(committed(sink)).values()) == 2 * RECORDS + 7
