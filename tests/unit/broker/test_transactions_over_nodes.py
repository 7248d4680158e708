"""Transactions whose coordinator, data leaders and group coordinator are on different nodes."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.client.blocking import BlockingClient
from odradek.core.types import TopicPartition as Partition
from odradek.testing import Cluster
from odradek.wire.api_keys import ApiKey

TIMEOUT_S = 20
PARTITIONS = 3
IDS = ("id-0", "id-1", "id-2")
"""Their coordinators are on three nodes, as neighbouring partitions of an internal topic are."""


SETTINGS = {
    "offsets.topic.num.partitions": 6,
    "transaction.state.log.num.partitions": 6,
    "group.initial.rebalance.delay.ms": 0,
}


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as cluster:
        yield cluster


def test_a_reader_sees_what_librdkafka_committed_over_three_brokers(cluster: Cluster) -> None:
    """Its writes are verified: the client adds the partitions."""
    servers = cluster.bootstrap_servers
    _create(cluster, "source", "sink")
    producers = [Producer(_producer(servers, name)) for name in IDS]
    committed = []
    for i, producer in enumerate(producers):
        producer.init_transactions(TIMEOUT_S)
        for number, commit in enumerate((True, False, True)):
            values = [f"{i}-{number}-{p}".encode() for p in range(PARTITIONS)]
            producer.begin_transaction()
            for partition, value in enumerate(values):
                producer.produce("source", value, partition=partition)
            if commit:
                producer.commit_transaction(TIMEOUT_S)
                committed += values
            else:
                producer.flush(TIMEOUT_S)
                producer.abort_transaction(TIMEOUT_S)
    assert sorted(_read_committed(servers, "source", len(committed))) == sorted(committed)
    _copy(servers, producers[0], len(committed))
    copied = sorted(_read_committed(servers, "sink", len(committed)))
    assert copied == sorted(b"copy of " + value for value in committed)
    assert _committed_offsets(servers, "copiers", "source") == _ends(cluster, "source")
    _check_that_nodes_asked_each_other(cluster)


def test_a_write_adds_its_partition_to_a_transaction_on_another_broker(cluster: Cluster) -> None:
    """From transaction version 2 on; so does a commit of offsets."""
    servers = cluster.bootstrap_servers
    _create(cluster, "added")
    committed = []
    with BlockingClient(servers) as client:
        for i, name in enumerate(IDS):
            with client.transactional_producer(f"epoch-{name}") as producer:
                producer.init_transactions()
                for number, commit in enumerate((True, False, True, False)):
                    values = [f"{i}-{number}-{p}".encode() for p in range(PARTITIONS)]
                    producer.begin()
                    for partition, value in enumerate(values):
                        producer.send("added", value, partition=partition)
                    offsets = {Partition("added", p): 10 * i + number for p in range(PARTITIONS)}
                    producer.send_offsets(offsets, f"group-{i}")
                    if commit:
                        producer.commit()
                        committed += values
                    else:
                        producer.abort()
    assert sorted(_read_committed(servers, "added", len(committed))) == sorted(committed)
    for i in range(len(IDS)):
        assert _committed_offsets(servers, f"group-{i}", "added") == [10 * i + 2] * PARTITIONS
    _check_that_nodes_asked_each_other(cluster)


def _check_that_nodes_asked_each_other(cluster: Cluster) -> None:
    """Each in the newest version: markers, and questions to the coordinator."""
    for api_key, version in ((ApiKey.WRITE_TXN_MARKERS, 2), (ApiKey.ADD_PARTITIONS_TO_TXN, 5)):
        asked = [
            broker.look(lambda node, key=api_key: dict(node.metrics.requests[key].versions))
            for broker in cluster.brokers.values()
        ]
        assert all(versions.get(version, 0) > 0 for versions in asked), f"{api_key.name}: {asked}"


def _ends(cluster: Cluster, topic: str) -> list[int]:
    ends = []
    for partition in range(PARTITIONS):
        tp = Partition(topic, partition)
        leader = cluster.leader_of(str(tp))
        assert leader is not None
        ends.append(
            cluster.brokers[leader].look(lambda node, tp=tp: node.replicas.partition(tp).log.high_watermark)
        )
    return ends


def _create(cluster: Cluster, *names: str) -> None:
    """Topics of which every node leads a partition."""
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    created = admin.create_topics(
        [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
    )
    for future in created.values():
        future.result(TIMEOUT_S)
    cluster.wait_until_whole()
    for name in names:
        assert {cluster.leader_of(f"{name}-{p}") for p in range(PARTITIONS)} == {1, 2, 3}


def _producer(servers: str, transactional_id: str) -> dict[str, str | int]:
    return {"bootstrap.servers": servers, "transactional.id": transactional_id, "linger.ms": 0}


def _consumer(servers: str, group: str) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "isolation.level": "read_committed",
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
        }
    )


def _read_committed(servers: str, topic: str, count: int) -> list[bytes]:
    """All there is: at least so many, and what comes within half a second more."""
    consumer = _consumer(servers, "readers")
    consumer.assign([TopicPartition(topic, p, OFFSET_BEGINNING) for p in range(PARTITIONS)])
    values: list[bytes] = []
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        messages = consumer.consume(100, 0.5)
        values += [message.value() for message in messages]
        if not messages and len(values) >= count:
            break
    consumer.close()
    return values


def _copy(servers: str, producer: Producer, count: int) -> None:
    """Read as a group and write in transactions; every other one is aborted, and done again."""
    consumer = _consumer(servers, "copiers")
    consumer.subscribe(["source"])
    done = 0
    deadline = time.monotonic() + TIMEOUT_S
    is_aborted = False
    while done < count and time.monotonic() < deadline:
        messages = consumer.consume(7, 0.2)
        if not messages:
            continue
        is_aborted = not is_aborted
        producer.begin_transaction()
        for message in messages:
            producer.produce("sink", b"copy of " + message.value(), partition=message.partition())
        producer.send_offsets_to_transaction(
            consumer.position(consumer.assignment()), consumer.consumer_group_metadata(), TIMEOUT_S
        )
        if is_aborted:
            producer.flush(TIMEOUT_S)
            producer.abort_transaction(TIMEOUT_S)
            for known in consumer.committed(consumer.assignment(), TIMEOUT_S):
                consumer.seek(TopicPartition(known.topic, known.partition, max(known.offset, 0)))
        else:
            producer.commit_transaction(TIMEOUT_S)
            done += len(messages)
    consumer.close()


def _committed_offsets(servers: str, group: str, topic: str) -> list[int]:
    consumer = _consumer(servers, group)
    found = consumer.committed([TopicPartition(topic, p) for p in range(PARTITIONS)], TIMEOUT_S)
    consumer.close()
    return [known.offset for known in found]
