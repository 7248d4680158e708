"""A node that compacts while it serves: clients see the newest values, coordinators load what is left.

Segments are as small as they may be, keys and metadata long, so that internal topics are compacted too.
"""

import pathlib
import random
import signal
import time
import uuid

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, AlterConfigOpType, ConfigEntry, ConfigResource, NewTopic

from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC
from odradek.log.checkpoints import parse_offsets
from tests.support.node import NodeProcess, running

EAGER = (
    *("--set", "log.cleaner.backoff.ms=30", "--set", "log.cleaner.min.cleanable.ratio=0.01"),
    *("--set", "offsets.topic.num.partitions=1", "--set", "offsets.topic.segment.bytes=1048576"),
    *(
        "--set",
        "transaction.state.log.num.partitions=1",
        "--set",
        "transaction.state.log.segment.bytes=1048576",
    ),
)
KEYS = 20


def wait_cleaned(data_dir: pathlib.Path, topic: str, least: int = 1, seconds: float = 20) -> None:
    deadline = time.monotonic() + seconds
    path = data_dir / "cleaner-offset-checkpoint"
    while True:
        offsets = parse_offsets(path.read_bytes()) if path.exists() else {}
        if any(tp.topic == topic and offset >= least for tp, offset in offsets.items()):
            return
        assert time.monotonic() < deadline, f"{topic} is not cleaned: {offsets}"
        time.sleep(0.02)


def records(data_dir: pathlib.Path, topic: str) -> int:
    return sum(path.stat().st_size for path in data_dir.glob(f"{topic}-0/*.log"))


def read_all(bootstrap: str, topic: str) -> dict[bytes, bytes]:
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": str(uuid.uuid4()),
            "enable.partition.eof": True,
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        found: dict[bytes, bytes] = {}
        while True:
            message = consumer.poll(10)
            assert message is not None
            if message.error():
                return found
            found[message.key()] = message.value()
    finally:
        consumer.close()


def create_topic(bootstrap: str, **configs: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.create_topics([NewTopic("t", 1, 1, config=configs)])["t"].result(10)


def set_config(bootstrap: str, kind: ConfigResource.Type, name: str, key: str, value: str) -> None:
    entry = ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET)
    resource = ConfigResource(kind, name, incremental_configs=[entry])
    admin = AdminClient({"bootstrap.servers": bootstrap})
    admin.incremental_alter_configs([resource])[resource].result(10)


def fill(node: NodeProcess, topic: str, rounds: int, **settings: object) -> dict[bytes, bytes]:
    producer = Producer({"bootstrap.servers": node.bootstrap, "linger.ms": 1, **settings})
    newest, rng = {}, random.Random(rounds)
    for i in range(rounds):
        for key in range(KEYS):
            name, value = b"key-%d" % key, b"%d/%d" % (i, key) + rng.randbytes(100)
            producer.produce(topic, key=name, value=value, partition=0)
            newest[name] = value
        producer.flush()
    return newest


@pytest.mark.parametrize("codec", ["none", "zstd"])
def test_a_topic_shrinks_under_its_clients(tmp_path: pathlib.Path, codec: str) -> None:
    with running(tmp_path / "data", *EAGER) as node:
        configs = {"cleanup.policy": "compact", "segment.bytes": str(1 << 20)}
        create_topic(node.bootstrap, **configs)
        newest = fill(node, "t", 450, **{"compression.type": codec, "batch.size": 2000})
        wait_cleaned(tmp_path / "data", "t")
        assert read_all(node.bootstrap, "t") == newest
        newest = fill(node, "t", 450, **{"compression.type": codec, "batch.size": 2000})
        deadline = time.monotonic() + 20
        # What is left is little more than the active segment.
        while records(tmp_path / "data", "t") > 1.3 * (1 << 20):
            assert time.monotonic() < deadline
            time.sleep(0.02)
        assert read_all(node.bootstrap, "t") == newest
        node.stop(signal.SIGKILL)
    with running(tmp_path / "data", *EAGER) as node:
        assert read_all(node.bootstrap, "t") == newest


def test_settings_of_the_cleaner_change_while_the_node_runs(tmp_path: pathlib.Path) -> None:
    """A pause of a day would be sat out; a topic that asks for it waits, until it does not any more."""
    with running(tmp_path / "data", "--set", "log.cleaner.backoff.ms=86400000") as node:
        configs = {
            "cleanup.policy": "compact",
            "segment.bytes": str(1 << 20),
            "min.compaction.lag.ms": "86400000",
        }
        create_topic(node.bootstrap, **configs)
        newest = fill(node, "t", 450)
        set_config(node.bootstrap, ConfigResource.Type.BROKER, "1", "log.cleaner.backoff.ms", "30")
        time.sleep(0.3)
        assert not (tmp_path / "data" / "cleaner-offset-checkpoint").exists()
        set_config(node.bootstrap, ConfigResource.Type.TOPIC, "t", "min.compaction.lag.ms", "0")
        wait_cleaned(tmp_path / "data", "t")
        assert read_all(node.bootstrap, "t") == newest
        with pytest.raises(KafkaException, match="more than double"):
            set_config(node.bootstrap, ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "3")
        set_config(node.bootstrap, ConfigResource.Type.BROKER, "1", "log.cleaner.threads", "2")


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_committed_offsets_outlive_the_compaction_of_their_topic(tmp_path: pathlib.Path, sig: int) -> None:
    expected = {}
    with running(tmp_path / "data", *EAGER) as node:
        create_topic(node.bootstrap)
        fill(node, "t", 20)
        for group in ("one", "two", "three"):
            consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
            for i in range(100):
                offset = (i * 7 + len(group)) % 300
                commit = TopicPartition("t", 0, offset, metadata="m" * 4000)
                consumer.commit(offsets=[commit], asynchronous=False)
                expected[group] = offset
            consumer.close()
        wait_cleaned(tmp_path / "data", GROUP_METADATA_TOPIC, 100)
        node.stop(sig)
    with running(tmp_path / "data", *EAGER) as node:
        for group, offset in expected.items():
            consumer = Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
            (found,) = consumer.committed([TopicPartition("t", 0)], 20)
            consumer.close()
            assert found.offset == offset, group


@pytest.mark.parametrize("sig", [signal.SIGTERM, signal.SIGKILL])
def test_fencing_outlives_the_compaction_of_the_transaction_log(tmp_path: pathlib.Path, sig: int) -> None:
    def transactional(node: NodeProcess) -> Producer:
        producer = Producer({"bootstrap.servers": node.bootstrap, "transactional.id": "tx" * 4000})
        producer.init_transactions(20)
        return producer

    with running(tmp_path / "data", *EAGER) as node:
        create_topic(node.bootstrap)
        # What is left of the log may not lose its epochs, even where tombstones would go at once.
        producer = transactional(node)
        set_config(
            node.bootstrap, ConfigResource.Type.TOPIC, TRANSACTION_STATE_TOPIC, "delete.retention.ms", "0"
        )
        for i in range(60):
            producer.begin_transaction()
            producer.produce("t", b"%d" % i, partition=0)
            producer.commit_transaction(10)
        wait_cleaned(tmp_path / "data", TRANSACTION_STATE_TOPIC, 50)
        address = node.bootstrap
        node.stop(sig)
    port = address.rpartition(":")[2]
    with running(tmp_path / "data", *EAGER, "--port", port) as node:
        successor = transactional(node)
        producer.begin_transaction()
        producer.produce("t", b"zombie", partition=0)
        with pytest.raises(KafkaException) as refused:
            producer.commit_transaction(20)
        assert refused.value.args[0].fatal()
        successor.begin_transaction()
        successor.produce("t", b"successor", partition=0)
        successor.commit_transaction(20)
