"""One Spark session for all tests, on the Java that comes with the package, whatever the machine has."""

import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import confluent_kafka
import pytest

from tests.support.command import odradek

if TYPE_CHECKING:  # it may not be installed: its tests are skipped then
    from pyspark.sql import DataFrame, SparkSession


_KILLS = ("test_kills", "test_stateful")
_WITHOUT_SPARK = ("test_protocol", "test_stream_reader", "test_many")
"""Our side of the protocol alone."""


@pytest.hookimpl(tryfirst=True)  # before xdist looks at the groups
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Three xdist groups, of about the same length: the tests that share a session, those whose drivers are
    processes that are killed, and those that start other programs.

    All wait more than they compute; a fourth Spark at the same time would be too much for two cores.
    """
    for item in items:
        if item.path.is_relative_to(Path(__file__).parent) and item.path.stem not in _WITHOUT_SPARK:
            item.add_marker(pytest.mark.xdist_group(_group(item)))


def _group(item: pytest.Item) -> str:
    if item.path.stem in _KILLS:
        return "spark-kills"
    return "spark" if "spark" in getattr(item, "fixturenames", ()) else "spark-programs"


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> "Iterator[SparkSession]":
    from tests.spark.support import packaged_java, session

    scratch = tmp_path_factory.mktemp("warehouse")
    with packaged_java(scratch):
        made = session("local[*]", scratch)
    yield made
    made.stop()


@pytest.fixture
def options(bootstrap: str) -> dict[str, str]:
    return {"kafka.bootstrap.servers": bootstrap}


@pytest.fixture
def read(spark: "SparkSession", options: dict[str, str]) -> "Callable[..., DataFrame]":
    def load(topic: str, **more: Any) -> "DataFrame":
        return spark.read.format("odradek").options(**options, subscribe=topic, **more).load()

    return load


@pytest.fixture
def send(bootstrap: str) -> Callable[..., None]:
    """Records by a client of another make: (key, value), or dicts of what confluent-kafka's produce takes."""

    def produce(topic: str, records: Sequence[Any], **settings: Any) -> None:
        producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap, **settings})
        for record in records:
            given = record if isinstance(record, dict) else {"key": record[0], "value": record[1]}
            producer.produce(topic, **given)
        assert producer.flush(30) == 0

    return produce


@pytest.fixture
def committed(bootstrap: str) -> Callable[[str], list[confluent_kafka.Message]]:
    """Everything a real client is shown of a topic at read_committed, up to where the topic ends for it."""

    def consume(topic: str) -> list[confluent_kafka.Message]:
        return read_committed(bootstrap, topic)

    return consume


def read_committed(bootstrap: str, topic: str) -> list[confluent_kafka.Message]:
    consumer = confluent_kafka.Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": "judge",
            "enable.auto.commit": False,
            "isolation.level": "read_committed",
            "enable.partition.eof": True,
        }
    )
    try:
        partitions = consumer.list_topics(topic, 20).topics[topic].partitions
        consumer.assign([confluent_kafka.TopicPartition(topic, p, 0) for p in partitions])
        ended: set[int] = set()
        found: list[confluent_kafka.Message] = []
        while len(ended) < len(partitions):
            message = consumer.poll(20)
            assert message is not None, "the broker does not answer"
            error = message.error()
            if error is None:
                found.append(message)
            else:
                assert error.code() == confluent_kafka.KafkaError._PARTITION_EOF, error
                ended.add(message.partition())
        return found
    finally:
        consumer.close()


def check_nothing_open(bootstrap: str) -> None:
    """A transaction of two phases that was forgotten would hold up readers for ever."""
    listed = odradek("txn", "list", "-b", bootstrap, "-f", "json")
    assert listed.code == 0, listed
    assert '"Ongoing"' not in listed.text, listed.text
    assert '"Prepare' not in listed.text, listed.text


@pytest.fixture
def progress() -> Callable[[Any], list[dict[str, Any]]]:
    return lambda query: [json.loads(p.json) if hasattr(p, "json") else p for p in query.recentProgress]
