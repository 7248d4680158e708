"""Tests as users of the pytest plugin write them, annotated. Never run: two checkers read it in `make check`.

An ignored error that is none any more is an error, so each of them proves that a name is not just anything.
"""

from collections.abc import Iterator
from typing import assert_type

import pytest

import odradek.testing
from odradek.client import ConsumerRecord, Delivery
from odradek.testing import Broker, Kafka, KafkaServer


@pytest.fixture(scope="session")
def countries(kafka_server: KafkaServer) -> str:
    assert_type(kafka_server.bootstrap_servers, str)
    client = kafka_server.client
    with client.producer() as producer:
        producer.send("countries", b"Prague", key=b"CZ", headers=[("source", b"atlas")])
        producer.flush()
    return "countries"


@pytest.fixture
def orders(kafka: Kafka) -> Iterator[str]:
    topic = kafka.topic("orders", partitions=3, config={"retention.ms": 60_000, "cleanup.policy": "delete"})
    assert_type(topic, str)
    yield topic
    print(kafka)


@pytest.mark.kafka(config={"num.partitions": 3})
def test_everything(kafka: Kafka, orders: str) -> None:
    delivery = kafka.produce(orders, "42", key=b"ada", headers={"trace": b"1"}, partition=0)
    assert_type(delivery, Delivery)
    assert_type(delivery.offset, int)
    records = kafka.records(orders, n=1, timeout=5)
    assert_type(records, list[ConsumerRecord])
    assert_type(records[0].key, bytes | None)
    assert [name for name, _ in records[0].headers] == ["trace"]
    assert_type(kafka.values(orders), list[bytes | None])
    assert_type(kafka.group("billing"), str)
    kafka.faults.errors("Produce", "NOT_LEADER_OR_FOLLOWER", times=2)
    with kafka.faults.broker_down(leader_of=f"{orders}-0"):
        pass
    kafka.clock.advance(days=1, hours=1)
    kafka.assert_exactly_once(source=orders, sink=kafka.topic("invoices"), group="billing")


def test_mistakes_are_found(kafka: Kafka) -> None:
    kafka.topics("orders")  # type: ignore[attr-defined]
    kafka.values(1)  # type: ignore[arg-type]
    kafka.clock.advance(weeks=1)  # type: ignore[call-arg]
    odradek.testing.Kafkaa  # type: ignore[attr-defined]  # noqa: B018


def outside_pytest() -> list[str]:
    with Broker({"num.partitions": 3, "auto.create.topics.enable": False}) as broker:
        assert_type(broker, Broker)
        broker.advance(60)
        return [broker.bootstrap_servers, *broker.log_tail()]
