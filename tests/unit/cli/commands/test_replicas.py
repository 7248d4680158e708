"""What commands show of replicas: of three real brokers, while one of them is down, and after it."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.testing import Kafka, KafkaServer
from tests.support.command import odradek


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    found = KafkaServer.embedded({"min.insync.replicas": 2}, brokers=3)
    yield found
    found.close()


@pytest.fixture
def kafka(server: KafkaServer) -> Iterator[Kafka]:
    view = Kafka(server)
    yield view
    view.close()


def shown(kafka: Kafka, *words: str, code: int = 0) -> Any:
    outcome = odradek(*words, "-b", kafka.bootstrap_servers, "-f", "json")
    assert outcome.code == code, outcome.stderr
    return json.loads(outcome.text)


def partitions(kafka: Kafka, filter_: str) -> list[tuple[str, int]]:
    return [(row["topic"], row["partition"]) for row in shown(kafka, "topic", "list", filter_)]


def test_a_replica_on_a_broker_that_is_down_is_found_and_explained(kafka: Kafka) -> None:
    topic, alone = kafka.topic("orders"), kafka.topic("alone", partitions=3, replicas=1)
    for value in ("a", "b"):
        kafka.produce(topic, value)
    assert kafka.server.cluster is not None
    lost = kafka.server.cluster.leader_of(topic)
    assert lost is not None
    (led,) = (p for p in range(3) if kafka.server.cluster.leader_of((alone, p)) == lost)
    with kafka.faults.broker_down(lost):
        kafka.produce(topic, "c")
        (described,) = shown(kafka, "topic", "describe", topic)
        (partition,) = described["partitions"]
        assert partition["leader"] in partition["isr"] and lost not in partition["isr"]
        assert partition["offline"] == [lost]
        lags = dict(zip(partition["replicas"], partition["lag"], strict=True))
        assert lags.pop(lost) is None
        assert set(lags.values()) == {0}
        assert partition["end_offset"] == 3
        # A partition without a leader is described, too: nobody knows its offsets.
        (described,) = shown(kafka, "topic", "describe", alone)
        offsets = [row["end_offset"] for row in described["partitions"]]
        assert [row is None for row in offsets] == [p == led for p in range(3)]

        assert partitions(kafka, "--under-replicated")[-1] == (topic, 0)
        assert partitions(kafka, "--at-min-isr") == [(topic, 0)]
        assert partitions(kafka, "--offline") == [(alone, led)]
        assert (topic, 0) not in partitions(kafka, "--under-min-isr")

        problems = [row["problem"] for row in shown(kafka, "cluster", "health", code=3)]
        assert f"broker {lost} is fenced" in problems
        assert problems[-2:] == [
            f"1 partition has no leader: {alone}-{led}",
            f"1 partition is under-replicated: {topic}-0",
        ]

        (row,) = shown(kafka, "why", "under-replicated", topic, code=3)
        assert (row["topic"], row["partition"], row["replica"], row["doing"]) == (topic, 0, lost, "down")
        assert row["since"] is not None and row["behind"] > 0
        assert row["cause"].startswith(f"broker {lost} is down: nothing listens at ")
        outcome = odradek("why", "under-replicated", "-b", kafka.bootstrap_servers)
        assert outcome.code == 3
        assert "is not in sync" in outcome.stderr
        assert outcome.stderr.splitlines()[-1].startswith("  next: ")
    assert partitions(kafka, "--under-replicated") == []
    assert shown(kafka, "why", "under-replicated") == []
    assert odradek("cluster", "health", "-b", kafka.bootstrap_servers).code == 0


def test_too_few_replicas_in_sync_are_under_min_isr(kafka: Kafka) -> None:
    topic = kafka.topic("orders", config={"min.insync.replicas": 3})
    assert partitions(kafka, "--at-min-isr") == [(topic, 0)]
    with kafka.faults.broker_down(leader_of=topic):
        assert partitions(kafka, "--under-min-isr") == [(topic, 0)]
        found = shown(kafka, "cluster", "health", code=3)[-1]
        assert found["problem"] == f"1 partition is under min ISR, and refuses acks=all: {topic}-0"
        assert found["next"] == f"odradek why under-replicated {topic}"
