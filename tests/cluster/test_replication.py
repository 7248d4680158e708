"""Three whole nodes and a real client: what is acknowledged is on all replicas, and stays."""

import shutil
from collections.abc import Iterator

import pytest
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as ConsumerPosition
from confluent_kafka.admin import (  # type: ignore[attr-defined]
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewTopic,
)

from odradek.broker.node import Node
from odradek.core.types import TopicPartition
from odradek.testing.cluster import Cluster
from tests.cluster.replicas import wait_for, wait_until_equal

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


def test_records_that_only_a_deposed_leader_had_are_truncated() -> None:
    """Cut off from the others, it still takes what acks=1 does not promise."""
    config = {"broker.session.timeout.ms": 1500, "broker.heartbeat.interval.ms": 200}
    with Cluster(3, config) as cluster:
        create(cluster)
        produce(cluster, [b"kept-%d" % i for i in range(10)])
        deposed = cluster.leader_of(f"{TOPIC}-0")
        assert deposed is not None
        one, other = (n for n in cluster.brokers if n != deposed)
        with cluster.partitioned(deposed, one), cluster.partitioned(deposed, other):
            alone = cluster.brokers[deposed].bootstrap_servers
            produce(cluster, [b"lost-%d" % i for i in range(10)], acks=1, **{"bootstrap.servers": alone})
            tp = TopicPartition(TOPIC, 0)
            wait_for(lambda: cluster.brokers[one].look(lambda n: n.metadata.image.leader_of(tp)) != deposed)
            later = cluster.brokers[one].bootstrap_servers
            produce(cluster, [b"more-%d" % i for i in range(5)], **{"bootstrap.servers": later})
        data = wait_until_equal(cluster, tp, 15)
        assert b"lost" not in data and data.count(b"kept") == 10 and data.count(b"more") == 5


def test_a_follower_begins_where_the_leaders_log_begins_inside_a_batch(cluster: Cluster) -> None:
    """DeleteRecords moves the log start while a follower is down and has lost its log."""
    create(cluster)
    produce(cluster, [b"%d" % i for i in range(100)], **{"linger.ms": 500})
    leader = cluster.leader_of(f"{TOPIC}-0")
    assert leader is not None
    wiped = leader % 3 + 1
    tp = TopicPartition(TOPIC, 0)
    folder = cluster.brokers[wiped].look(lambda node: node.replicas.partition(tp).log.path)
    with cluster.down(wiped):
        shutil.rmtree(folder)
        admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
        for deleted in admin.delete_records([ConsumerPosition(TOPIC, 0, 50)]).values():
            assert deleted.result(30).low_watermark == 50
    wait_until_equal(cluster, tp, 100)
    assert cluster.brokers[wiped].look(lambda node: node.replicas.partition(tp).log.log_start_offset) == 50


def test_no_record_is_acknowledged_before_every_replica_flushed_it_where_a_topic_asks_for_that(
    cluster: Cluster,
) -> None:
    create(cluster, flush_messages="1")
    produce(cluster, [b"%d" % i for i in range(20)], **{"batch.num.messages": 1})
    tp = TopicPartition(TOPIC, 0)
    for broker in cluster.brokers.values():
        assert broker.look(lambda node: node.replicas.partition(tp).log.recovery_point) == 20


def test_a_topic_made_again_under_its_name_has_none_of_the_old_records(cluster: Cluster) -> None:
    create(cluster)
    produce(cluster, [b"old"] * 10)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    for deleted in admin.delete_topics([TOPIC]).values():
        deleted.result(30)
    create(cluster)
    produce(cluster, [b"new"] * 3)
    data = wait_until_equal(cluster, TopicPartition(TOPIC, 0), 3)
    assert b"old" not in data and data.count(b"new") == 3


def test_partitions_move_to_more_fetchers_while_the_node_runs(cluster: Cluster) -> None:
    create(cluster, partitions=12)
    admin = AdminClient({"bootstrap.servers": cluster.bootstrap_servers})
    entry = ConfigEntry("num.replica.fetchers", "2", incremental_operation=AlterConfigOpType.SET)
    for broker_id in cluster.brokers:
        resource = ConfigResource(ConfigResource.Type.BROKER, str(broker_id), incremental_configs=[entry])
        for changed in admin.incremental_alter_configs([resource]).values():
            changed.result(30)

    def fetchers(node: Node) -> set[int]:
        found = [node.replicas.fetchers.fetcher_of(TopicPartition(TOPIC, index)) for index in range(12)]
        return {key[1] for key in found if key is not None}

    wait_for(lambda: all(broker.look(fetchers) == {0, 1} for broker in cluster.brokers.values()))
    for partition in range(12):
        produce(cluster, [b"%d" % i for i in range(50)], partition)
    for partition in range(12):
        wait_until_equal(cluster, TopicPartition(TOPIC, partition), 50)
