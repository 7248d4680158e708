"""`odradek prove eos`: a stream that delivered exactly once is proven, and what was planted is found."""

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple
from unittest import mock

import confluent_kafka.admin
import pytest
from pyspark.sql import SparkSession

from odradek.client.blocking import BlockingClient
from odradek.spark.ledger.ledger import HISTORY_TOPIC, Range, encode_decision
from odradek.spark.proving.scanning import read_history
from tests.spark.test_sink import copy
from tests.support.command import Outcome, odradek
from tests.support.node import ODRADEK

RECORDS = 900


class Copied(NamedTuple):
    bootstrap: str
    source: str
    sink: str
    query: str

    def prove(self, *more: str) -> Outcome:
        return odradek("prove", "eos", "--from", self.source, "--to", self.sink, "-b", self.bootstrap, *more)

    def facts(self, *more: str, code: int) -> dict[str, Any]:
        outcome = self.prove("-f", "json", *more)
        assert outcome.code == code, outcome
        found: dict[str, Any] = json.loads(outcome.text)
        return found


@pytest.fixture
def copied(
    spark: SparkSession,
    options: dict[str, str],
    bootstrap: str,
    make_topic: Callable[..., str],
    send: Callable[..., None],
    tmp_path: Path,
) -> Copied:
    source, sink = make_topic(2), make_topic(2)
    send(source, [(str(i).encode(), str(i).encode()) for i in range(RECORDS)])
    query = copy(spark, options, source, sink, tmp_path)
    query.awaitTermination(90)
    return Copied(bootstrap, source, sink, str(query.id))


def test_what_was_delivered_exactly_once_is_proven(copied: Copied, send: Callable[..., None]) -> None:
    found = copied.facts(code=0)
    assert found["streams"] == [f"{copied.query}/sink"]
    assert (found["inputs"], found["outputs"], found["behind"]) == (RECORDS, RECORDS, 0)
    assert found["batches"] >= 2
    assert (found["duplicates"], found["lost"], found["first_violation"]) == (0, 0, None)
    assert (found["proven"], found["violations"]) == (True, [])
    for by in ("key", "value", "header:none"):
        assert copied.facts("--by", by, code=0)["proven"], by
    send(copied.source, [(b"new", b"new")])
    assert copied.facts(code=0)["behind"] == 1
    outcome = copied.prove()
    assert "DUPLICATES       0" in outcome.text
    assert "proven: 900 offsets" in outcome.stderr


def test_planted_duplicates_are_found(copied: Copied, send: Callable[..., None]) -> None:
    send(copied.sink, [(b"17", b"17"), (b"17", b"17"), (b"23", b"23"), (b"strange", b"x")])
    found = copied.facts(code=3)
    assert (found["other_records"], found["duplicates"]) == (4, 0)
    assert [(v["kind"], v["count"]) for v in found["violations"]] == [("foreign", 4)]
    assert copied.facts("--stream", copied.query, code=0)["other_records"] == 4
    found = copied.facts("--by", "key", code=3)
    assert (found["duplicates"], found["lost"]) == (3, 0)
    told = {v["violation"] for v in found["violations"]}
    assert any(t.startswith("id 17 is once in the input (at ") and "3 times in the output" in t for t in told)
    assert any("id 23 " in t and f"{copied.source}-" in t and f"{copied.sink}-" in t for t in told)

    looks_like_one = f"odradek.{copied.query}.sink.deadbeef.0123456789ab.0"
    producer = confluent_kafka.Producer(
        {"bootstrap.servers": copied.bootstrap, "transactional.id": looks_like_one}
    )
    producer.init_transactions(20)
    producer.begin_transaction()
    for i in range(10):
        producer.produce(copied.sink, str(i), key=str(i), partition=1)
    producer.commit_transaction(20)
    found = copied.facts("--stream", copied.query, code=3)
    assert (found["duplicates"], found["lost"]) == (10, 0)
    assert looks_like_one in found["first_violation"]
    assert f"{copied.sink}-1 offsets " in found["first_violation"]
    outcome = copied.prove()
    assert outcome.code == 3
    assert f"error: {looks_like_one}" in outcome.stderr


def test_planted_losses_are_found(copied: Copied) -> None:
    with BlockingClient(copied.bootstrap) as client:
        last = [(s, d) for s, d in read_history(client) if s.query == copied.query][-1]
    stream, decision = last
    ends = json.loads(decision.range.end[0])
    skipped = json.loads(decision.range.end[0])
    skipped[copied.source]["0"] += 5
    doctored = decision._replace(
        batch=decision.batch + 1,
        range=Range((json.dumps(skipped),), (json.dumps(skipped),)),
        participants=(),
    )
    producer = confluent_kafka.Producer({"bootstrap.servers": copied.bootstrap})
    producer.produce(HISTORY_TOPIC, encode_decision(stream, doctored))
    producer.flush(20)
    found = copied.facts(code=3)
    assert (found["duplicates"], found["lost"]) == (0, 5)
    end = ends[copied.source]["0"]
    assert found["violations"][0]["place"] == f"{copied.source}-0 offsets {end} to {end + 4}"
    assert found["violations"][0]["batch"] == decision.batch + 1

    admin = confluent_kafka.admin.AdminClient({"bootstrap.servers": copied.bootstrap})
    for future in admin.delete_records([confluent_kafka.TopicPartition(copied.sink, 0, 7)]).values():
        future.result(20)
    found = copied.facts("--by", "value", code=3)
    assert (found["duplicates"], found["lost"]) == (0, 7)
    checks = {v["check"]: v for v in found["violations"]}
    assert checks["transactions"]["count"] == 7
    assert f"{copied.sink}-0 begins at offset 7" in checks["transactions"]["violation"]
    assert "nowhere in the output" in checks["rows"]["violation"]


def test_what_cannot_be_proven_is_told(copied: Copied, topic: str) -> None:
    def prove(*arguments: str) -> Outcome:
        return odradek("prove", "eos", "-b", copied.bootstrap, *arguments)

    outcome = prove("--from", topic, "--to", copied.sink)
    assert (outcome.code, outcome.text) == (1, "")
    assert f"found no decision of a query that reads {topic} and writes {copied.sink}" in outcome.stderr
    outcome = prove("--from", "nowhere", "--to", copied.sink)
    assert outcome.code == 1
    assert "topic nowhere: UNKNOWN_TOPIC_OR_PARTITION" in outcome.stderr
    assert copied.prove("--by", "offset").code == 2
    assert copied.prove("--stream", "nobody").code == 1
    assert copied.prove("--stream", copied.query).code == 0
    with mock.patch("importlib.util.find_spec", return_value=None):
        outcome = copied.prove()
    assert (outcome.code, outcome.text) == (1, "")
    assert (
        outcome.stderr
        == "error: pyspark is not installed\n  next: pip install '.[spark]' in a checkout of odradek\n"
    )


@pytest.mark.timeout(300)
def test_the_command_starts_a_spark_of_its_own_and_keeps_it_quiet(copied: Copied) -> None:
    arguments = ("--from", copied.source, "--to", copied.sink, "-b", copied.bootstrap, "--master", "local[1]")
    done = subprocess.run(
        [str(ODRADEK), "prove", "eos", *arguments, "--by", "key"], capture_output=True, text=True, timeout=200
    )
    assert done.returncode == 0, done
    assert "PROVEN           true" in done.stdout
    told = done.stderr.splitlines()
    assert (told[0], told[-1][:7]) == ("starting Spark", "proven:")
    assert all(line.startswith("proving: ") for line in told[1:-1])
