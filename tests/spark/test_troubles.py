"""What goes wrong while a query runs: one line that says what and where, nothing lost, nothing twice."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import confluent_kafka
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odradek.runtime.ports import free_port
from odradek.spark.session import cause
from tests.spark.conftest import read_committed
from tests.support.command import odradek
from tests.support.node import NodeProcess, running
from tests.support.topics import create_topic

PATIENCE = {"kafka.default.api.timeout.ms": "2000", "kafka.delivery.timeout.ms": "3000"}

pytestmark = pytest.mark.timeout(300)


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NodeProcess]:
    folder = tmp_path_factory.mktemp("troubles")
    with running(
        folder / "data", "--port", str(free_port()), "--set", "auto.create.topics.enable=false"
    ) as started:
        yield started


class Copying:
    """A query that copies topics into another one, started again and again."""

    def __init__(self, spark: SparkSession, node: NodeProcess, folder: Path, unique: Any) -> None:
        self.spark, self.node, self.folder = spark, node, folder
        self.first, self.second, self.sink = unique("first"), unique("second"), unique("sink")
        for name in (self.first, self.second, self.sink):
            create_topic(node.bootstrap, name, 1, {})
        self.sent = 0

    def send(self, topic: str, count: int) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": self.node.bootstrap})
        for _ in range(count):
            producer.produce(topic, value=str(self.sent))
            self.sent += 1
        assert producer.flush(30) == 0

    def start(self, bootstrap: str | None = None, columns: str = "value", **more: str) -> Any:
        options = {"kafka.bootstrap.servers": bootstrap or self.node.bootstrap, **PATIENCE}
        source = {name: more.pop(name) for name in ("failOnDataLoss",) if name in more}
        reader = self.spark.readStream.format("odradek").options(**options, **source)
        return (
            reader.options(subscribe=f"{self.first},{self.second}", startingOffsets="earliest")
            .load()
            .selectExpr(*columns.split(";"))
            .writeStream.format("odradek")
            .options(**options, **({"topic": self.sink} if "topic" not in columns else {}))
            .option("checkpointLocation", str(self.folder))
            .trigger(availableNow=True)
        )

    def run(self, **more: str) -> None:
        query = self.start(**more).start()
        assert query.awaitTermination(90)

    def fails(self, **more: str) -> str:
        """The one line of why."""
        with pytest.raises(PySparkException) as failure:
            self.run(**more)
        return cause(failure.value)

    def check(self, *, without: range = range(0)) -> None:
        """Everything that was sent is there, each once, and nothing is open."""
        found = Counter(
            int(message.value() or b"") for message in read_committed(self.node.bootstrap, self.sink)
        )
        assert found == Counter(n for n in range(self.sent) if n not in without)
        assert '"Ongoing"' not in self.odradek("txn", "list", "-f", "json")

    def odradek(self, *arguments: str) -> str:
        done = odradek(*arguments, "-b", self.node.bootstrap)
        assert done.code == 0, done.stderr
        return done.text


@pytest.fixture
def copying(spark: SparkSession, node: NodeProcess, tmp_path: Path, unique: Callable[[str], str]) -> Copying:
    return Copying(spark, node, tmp_path / "checkpoint", unique)


def test_topics_that_are_deleted(copying: Copying) -> None:
    copying.send(copying.first, 10)
    copying.send(copying.second, 10)
    copying.run()
    copying.odradek("topic", "delete", copying.second, "-y")
    copying.send(copying.first, 10)
    told = copying.fails()
    assert f"{copying.second}-0 was read before, but does not exist any more" in told
    assert "failOnDataLoss=false continues without it" in told
    copying.run(failOnDataLoss="false")
    copying.check()
    copying.odradek("topic", "delete", copying.sink, "-y")
    copying.send(copying.first, 5)
    told = copying.fails(failOnDataLoss="false")
    assert "UNKNOWN_TOPIC_OR_PARTITION" in told
    assert copying.sink in told
    create_topic(copying.node.bootstrap, copying.sink, 1, {})
    copying.run(failOnDataLoss="false")
    copying.check(without=range(30))


def test_a_topic_that_is_made_anew(copying: Copying) -> None:
    """It has more records than the old one had: by its offsets nobody could tell."""
    copying.send(copying.first, 10)
    copying.run()
    copying.odradek("topic", "delete", copying.first, "-y")
    create_topic(copying.node.bootstrap, copying.first, 1, {})
    copying.send(copying.first, 25)
    told = copying.fails()
    assert f"the topic {copying.first} was deleted and recreated since it was read" in told
    copying.run(failOnDataLoss="false")
    copying.check()


def test_retention_that_overtakes_a_query(copying: Copying) -> None:
    copying.send(copying.first, 10)
    copying.run()
    copying.send(copying.first, 20)
    copying.odradek("topic", "trim", copying.first, "-o", "15", "-y")
    told = copying.fails()
    assert f"{copying.first}-0 now begins at offset 15, but offsets 10 to 29 are to be read" in told
    copying.run(failOnDataLoss="false")
    copying.check(without=range(10, 15))


def test_records_that_cannot_be_written(copying: Copying) -> None:
    copying.send(copying.first, 10)
    told = copying.fails(columns="repeat('x', 3000000) value")
    assert f"a record for {copying.sink}-0 has 3000074 bytes, and the topic takes 1048588" in told
    assert f"raise max.message.bytes of {copying.sink}" in told
    assert "the column value is struct<value:binary>" in copying.fails(columns="struct(value) value")
    assert "a row has no topic" in copying.fails(columns="value;cast(null as string) topic")
    copying.run()
    copying.check()


def test_a_checkpoint_of_another_cluster(copying: Copying, bootstrap: str) -> None:
    copying.send(copying.first, 10)
    copying.run()
    for name in (copying.first, copying.second, copying.sink):
        create_topic(bootstrap, name, 1, {})
    told = copying.fails(bootstrap=bootstrap)
    assert "the checkpoint belongs to the cluster" in told
    assert bootstrap in told
    copying.check()


def test_a_broker_that_is_gone_for_longer_than_it_is_waited_for(copying: Copying) -> None:
    copying.send(copying.first, 10)
    query = copying.start().trigger(processingTime="100 milliseconds").start()
    query.processAllAvailable()
    node = copying.node
    node.kill()
    began = time.monotonic()
    with pytest.raises(PySparkException) as failure:
        query.awaitTermination(90)
    assert time.monotonic() - began < 60
    told = cause(failure.value)
    assert f"the cluster at {node.bootstrap} did not answer within the configured timeouts" in told
    assert "kafka.default.api.timeout.ms=2000" in told
    node.restart()
    copying.send(copying.first, 10)
    copying.run()
    copying.check()
