"""Three whole nodes and a real client: what is acknowledged is on all replicas, and stays."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.core.types import TopicPartition
from odradek.testing.cluster import Cluster
from tests.cluster.replicas import wait_until_equal

TOPIC = "orders"


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3) as started:
        yield started


def create(cluster: Cluster, partitions: int = 1, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    config = {name.replace("_", "."): value for name, value in configs.items()}
    topic = NewTopic(TOPIC, partitions, 3, config=config)
    for created in admin.create_topics([topic]).values():
        created.result(30)


def produce(cluster: Cluster, values: list[bytes], partition: int = 0, **settings: object) -> None:
    """Until all are acknowledged."""
    errors: list[object] = []
    producer = Producer({"bootstrap.servers": cluster.bootstrap_servers, "acks": "all", **settings})
    for value in values:
        producer.produce(
            TOPIC, value, partition=partition, on_delivery=lambda e, m: errors.append(e) if e else None
        )
    assert producer.flush(30) == 0 and errors == []


def test_what_a_client_produced_with_acks_all_is_on_all_replicas(cluster: Cluster) -> None:
    create(cluster, partitions=3)
    for partition in range(3):
        produce(cluster, [b"%d" % i for i in range(1000)], partition)
    for partition in range(3):
        assert wait_until_equal(cluster, TopicPartition(TOPIC, partition), 1000)
