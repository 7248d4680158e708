"""Exactly once into Apache Kafka: works with two-phase commit enabled there; otherwise the error says how to
enable it."""

from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from odradek.runtime.ports import free_port
from tests.spark.conftest import read_committed
from tests.spark.test_sink import ROWS, copy, ids, write
from tests.support import peer
from tests.support.topics import create_topic

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]
SWITCHES = ("transaction.two.phase.commit.enable=true", "unstable.api.versions.enable=true")


@pytest.fixture
def apache(tmp_path: Path) -> Iterator[Callable[..., str]]:
    started: list[Path] = []

    def start(*settings: str) -> str:
        started.append(tmp_path / "apache")
        return peer.start(started[-1], free_port(), *settings)

    yield start
    for directory in started:
        peer.stop(directory)


def test_a_stream_is_copied_exactly_once_on_apache(
    apache: Callable[..., str], spark: SparkSession, tmp_path: Path
) -> None:
    bootstrap = apache(*SWITCHES)
    for name in ("in", "out"):
        create_topic(bootstrap, name, 2, {})
    producer = confluent_kafka.Producer({"bootstrap.servers": bootstrap})
    for i in range(1_000):
        producer.produce("in", key=str(i), value=str(i))
    assert producer.flush(30) == 0
    options = {"kafka.bootstrap.servers": bootstrap}
    query = copy(spark, options, "in", "out", tmp_path / "checkpoint")
    assert query.awaitTermination(120)
    assert ids(read_committed(bootstrap, "out")) == Counter(range(1_000))
    listed = peer.tool("transactions", "--bootstrap-server", bootstrap, "list").stdout
    states = Counter(line.split()[3] for line in listed.splitlines()[1:] if line.startswith("odradek."))
    assert set(states) <= {"CompleteCommit", "CompleteAbort"}, listed
    assert states["CompleteCommit"] >= 2
    groups = peer.tool(
        "consumer-groups", "--bootstrap-server", bootstrap, "--describe", "--all-groups"
    ).stdout
    lags = [line.split()[5] for line in groups.splitlines() if line.startswith(f"odradek.{query.id}")]
    assert lags == ["0", "0"], groups


def test_a_cluster_without_two_phase_commit_is_told_which_keys_to_set(
    apache: Callable[..., str], spark: SparkSession
) -> None:
    bootstrap = apache()
    create_topic(bootstrap, "out", 1, {})
    options = {"kafka.bootstrap.servers": bootstrap}
    rows = spark.range(100).selectExpr(*ROWS)
    with pytest.raises(PySparkException) as refusal:
        write(rows, options, topic="out")
    for switch in SWITCHES:
        assert switch in str(refusal.value)
    assert "delivery=at-least-once" in str(refusal.value)
    write(rows, options, topic="out", delivery="at-least-once")
    assert ids(read_committed(bootstrap, "out")) == Counter(range(100))
