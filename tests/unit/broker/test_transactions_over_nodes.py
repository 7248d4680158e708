"""Transactions whose coordinator, data leaders and group coordinator are on different nodes."""

import pathlib
import time

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, coordinator_partition
from tests.support.three_nodes import ThreeNodes, three_nodes

TIMEOUT_S = 20
PARTITIONS = 3


def test_transactions_span_brokers(tmp_path: pathlib.Path) -> None:
    with three_nodes(tmp_path) as cluster:
        servers = cluster.bootstrap_servers
        _create(servers, "source", "sink")
        assert {cluster.leader_of("sink", p) for p in range(PARTITIONS)} == {1, 2, 3}
        producers = [Producer(_producer(servers, f"id-{i}")) for i in range(3)]
        committed = []
        for i, producer in enumerate(producers):
            producer.init_transactions(TIMEOUT_S)
            for round_, outcome in enumerate(("commit", "abort", "commit")):
                values = [f"{i}-{round_}-{p}".encode() for p in range(PARTITIONS)]
                producer.begin_transaction()
                for partition, value in enumerate(values):
                    producer.produce("source", value, partition=partition)
                if outcome == "abort":
                    producer.flush(TIMEOUT_S)
                    producer.abort_transaction(TIMEOUT_S)
                else:
                    producer.commit_transaction(TIMEOUT_S)
                    committed += values
        assert sorted(_read_committed(servers, "source", len(committed))) == sorted(committed)

        _copy(servers, producers[0], len(committed))
        copied = sorted(_read_committed(servers, "sink", len(committed)))
        assert copied == sorted(b"copy of " + value for value in committed)
        assert _committed_offsets(servers, "copiers") == [cluster_end(cluster, p) for p in range(PARTITIONS)]
        leaders = {
            cluster.leader_of(TRANSACTION_STATE_TOPIC, coordinator_partition(f"id-{i}", 6)) for i in range(3)
        }
        group_leader = cluster.leader_of(GROUP_METADATA_TOPIC, coordinator_partition("copiers", 6))
        assert leaders == {1, 2, 3} and group_leader in leaders


def cluster_end(cluster: ThreeNodes, partition: int) -> int:
    leader = cluster.leader_of("source", partition)
    assert leader is not None
    return cluster.look(
        lambda nodes: nodes[leader].replicas.find("source", partition).log.high_watermark  # type: ignore
    )


def _create(servers: str, *names: str) -> None:
    admin = AdminClient({"bootstrap.servers": servers})
    created = admin.create_topics(
        [NewTopic(name, num_partitions=PARTITIONS, replication_factor=1) for name in names]
    )
    for future in created.values():
        future.result(TIMEOUT_S)


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


def _committed_offsets(servers: str, group: str) -> list[int]:
    consumer = _consumer(servers, group)
    found = consumer.committed([TopicPartition("source", p) for p in range(PARTITIONS)], TIMEOUT_S)
    consumer.close()
    return [known.offset for known in found]
