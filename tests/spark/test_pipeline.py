"""Pipelines from the command line: an example that runs, progress, a clean stop, a look from outside."""

import json
import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest
from confluent_kafka import Message, Producer

from tests.spark.conftest import read_committed
from tests.support.command import odradek
from tests.support.lite import needs_spark
from tests.support.node import ODRADEK, running
from tests.support.topics import create_topic

pytestmark = [pytest.mark.timeout(300), needs_spark]


def example(folder: Path, bootstrap: str, trigger: str, *options: str) -> None:
    assert odradek("pipeline", "init", str(folder), *options).code == 0
    spec = folder / "pipeline.toml"
    text = spec.read_text().replace("localhost:9092", bootstrap).replace('"1s"', f'"{trigger}"')
    spec.write_text(text)


def start(folder: Path) -> "subprocess.Popen[str]":
    from tests.spark.support import packaged_java, spark_home

    with packaged_java(folder.parent):
        env = {**os.environ, "SPARK_HOME": spark_home(folder.parent)}
    return subprocess.Popen(
        [str(ODRADEK), "pipeline", "run", str(folder), "-f", "json"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
    )


def send(bootstrap: str, first: int, count: int) -> None:
    producer = Producer({"bootstrap.servers": bootstrap})
    for i in range(first, first + count):
        producer.produce("orders", key=f"c{i % 7}", value=str(i))
    assert producer.flush(30) == 0


def amounts(messages: list[Message]) -> list[int]:
    return sorted(int(json.loads(message.value() or b"")["amount"]) for message in messages)


def test_the_example_runs_stops_and_goes_on(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with running(tmp_path / "data") as node:
        create_topic(node.bootstrap, "orders", 2, {})
        send(node.bootstrap, 0, 1_000)
        example(folder, node.bootstrap, "200ms")
        process = start(folder)
        deadline = time.monotonic() + 120
        found: list[Message] = []
        while len(found) < 1_000 and time.monotonic() < deadline:
            assert process.poll() is None, process.communicate()
            time.sleep(0.5)
            if odradek("topic", "describe", "orders-enriched", "-b", node.bootstrap).code == 0:
                found = read_committed(node.bootstrap, "orders-enriched")
        assert process.stderr is not None
        line = next(line for line in process.stderr if " committed" in line)
        assert re.fullmatch(
            r"enriched: batch \d+ committed, [\d,]+ rows, [\d,]+ rows/s, [\d,]+ ms, lag \d+\n", line
        )
        process.send_signal(signal.SIGTERM)
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert "stopping" in err
        assert json.loads(out)[0]["sink"] == "enriched"
        (told,) = json.loads(odradek("pipeline", "status", str(folder), "-f", "json").text)
        assert (told["topic"], told["lag"], told["open"]) == ("orders-enriched", 0, 0)
        send(node.bootstrap, 1_000, 500)
        (told,) = json.loads(odradek("pipeline", "status", str(folder), "-f", "json").text)
        assert told["lag"] == 500
        spec = folder / "pipeline.toml"
        spec.write_text(spec.read_text().replace('"200ms"', '"available-now"'))
        process = start(folder)
        out, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert amounts(read_committed(node.bootstrap, "orders-enriched")) == list(range(1_500))
        (after,) = json.loads(odradek("pipeline", "status", str(folder), "-f", "json").text)
        assert after["batch"] > told["batch"]
        assert (after["lag"], after["open"]) == (0, 0)


_SLOW = """
import time

from pyspark.sql import functions as f


def transform(spark, orders):
    def slowly(value):
        time.sleep(PAUSE)
        return value.decode() + " " * 2_000

    return orders.select("key", f.udf(slowly, "string")("value").alias("value"))
"""


def test_interrupted_in_the_middle_of_a_batch_it_leaves_nothing_open_and_goes_on_later(
    tmp_path: Path,
) -> None:
    folder, count = tmp_path / "orders", 2_000

    def is_writing() -> bool:
        return '"Ongoing"' in odradek("txn", "list", "-b", node.bootstrap, "-f", "json").text

    with running(tmp_path / "data") as node:
        for topic in ("orders", "orders-enriched"):
            create_topic(node.bootstrap, topic, 1, {})
        send(node.bootstrap, 0, count)
        example(folder, node.bootstrap, "available-now")
        with (folder / "pipeline.toml").open("a") as spec:
            spec.write('"spark.sql.execution.arrow.maxRecordsPerBatch" = 50\n')  # rows come as they are made
        (folder / "transform.py").write_text(_SLOW.replace("PAUSE", "0.05"))
        process = start(folder)
        deadline = time.monotonic() + 120
        while not is_writing():
            assert process.poll() is None and time.monotonic() < deadline, process.communicate()
            time.sleep(0.2)
        process.send_signal(signal.SIGTERM)
        _, err = process.communicate(timeout=60)
        assert process.returncode == 0, err
        assert not is_writing()
        assert read_committed(node.bootstrap, "orders-enriched") == []
        (folder / "transform.py").write_text(_SLOW.replace("PAUSE", "0"))
        process = start(folder)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        found = read_committed(node.bootstrap, "orders-enriched")
        assert sorted(int(message.value() or b"") for message in found) == list(range(count))


def test_what_is_wrong_is_told_and_the_example_in_sql_runs(tmp_path: Path) -> None:
    folder = tmp_path / "orders"
    with running(tmp_path / "data") as node:
        example(folder, node.bootstrap, "available-now", "--sql")
        refused = odradek("pipeline", "init", str(folder))
        assert refused.code == 2
        assert "already exists" in refused.stderr
        (unknown,) = json.loads(odradek("pipeline", "status", str(folder), "-f", "json").text)
        assert unknown["batch"] is None
        process = start(folder)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 1
        assert "there is no topic orders" in err
        create_topic(node.bootstrap, "orders", 2, {})
        send(node.bootstrap, 0, 300)
        process = start(folder)
        _, err = process.communicate(timeout=120)
        assert process.returncode == 0, err
        assert amounts(read_committed(node.bootstrap, "orders-enriched")) == list(range(300))
    missing = odradek("pipeline", "run", str(tmp_path / "nowhere"))
    assert missing.code == 2
    assert "there is no" in missing.stderr
