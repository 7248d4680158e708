"""Real processes, killed: what was acknowledged is read once, groups move, replicas become equal again."""

import shutil
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]

from odradek.core.types import coordinator_partition
from odradek.records.batch import iter_batches
from tests.cluster.nodes import Processes, processes

TOPIC = "orders"
PARTITIONS = 3
SECONDS = 60.0

pytestmark = pytest.mark.timeout(240)


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Processes]:
    settings = {"offsets.topic.num.partitions": "3", "min.insync.replicas": "2"}
    with processes(tmp_path, 3, settings) as started:
        yield started


def admin_of(cluster: Processes) -> AdminClient:
    return AdminClient({"bootstrap.servers": cluster.plan.bootstrap_servers})


def create(cluster: Processes) -> None:
    admin = admin_of(cluster)  # as long as its answers are awaited
    for created in admin.create_topics([NewTopic(TOPIC, PARTITIONS, 3)]).values():
        created.result(30)


def leader_of(cluster: Processes, topic: str = TOPIC, partition: int = 0) -> int:
    found = admin_of(cluster).list_topics(topic, timeout=30).topics[topic].partitions[partition]
    return int(found.leader)


class Load(threading.Thread):
    """An idempotent producer that goes on until it is told to finish."""

    def __init__(self, cluster: Processes) -> None:
        super().__init__(name="load")
        self.acknowledged: list[bytes] = []
        self.errors: list[object] = []
        self._is_over = threading.Event()
        self._producer = Producer(
            {
                "bootstrap.servers": cluster.plan.bootstrap_servers,
                "enable.idempotence": True,
                "linger.ms": 1,
                "delivery.timeout.ms": int(SECONDS * 1000),
            }
        )

    def run(self) -> None:
        count = 0
        while not self._is_over.is_set():
            for _ in range(20):
                value = b"%d" % count
                self._producer.produce(
                    TOPIC, value, partition=count % PARTITIONS, on_delivery=self._delivered
                )
                count += 1
            self._producer.poll(0.005)
        assert self._producer.flush(SECONDS) == 0

    def _delivered(self, error: object, message: object) -> None:
        if error is None:
            self.acknowledged.append(message.value())  # type: ignore[attr-defined]
        else:
            self.errors.append(error)

    def wait_for(self, more: int) -> None:
        wanted, deadline = len(self.acknowledged) + more, time.monotonic() + SECONDS
        while len(self.acknowledged) < wanted:
            assert time.monotonic() < deadline and self.is_alive(), "the producer is stuck"
            time.sleep(0.01)

    def finish(self) -> None:
        self._is_over.set()
        self.join()


def read_all(cluster: Processes, count: int) -> list[bytes]:
    """What a reader of all partitions finds; `count` records at least."""
    consumer = Consumer(
        {
            "bootstrap.servers": cluster.plan.bootstrap_servers,
            "group.id": "reader",
            "enable.auto.commit": False,
            "enable.partition.eof": True,
            "isolation.level": "read_uncommitted",
        }
    )
    consumer.assign([TopicPartition(TOPIC, index, 0) for index in range(PARTITIONS)])
    values: list[bytes] = []
    ended: set[int] = set()
    deadline = time.monotonic() + SECONDS
    while len(values) < count or len(ended) < PARTITIONS:
        assert time.monotonic() < deadline, f"{len(values)} of {count} records were read"
        message = consumer.poll(1)
        if message is None:
            continue
        if message.error() is not None:
            ended.add(message.partition())
            continue
        values.append(message.value())
    consumer.close()
    return values


def replica_bytes(cluster: Processes, partition: int) -> dict[int, bytes]:
    """The segments of each replica, one after the other."""
    found = {}
    for node in cluster.plan.nodes:
        folder = Path(node.properties["log.dirs"], f"{TOPIC}-{partition}")
        found[node.node_id] = b"".join(path.read_bytes() for path in sorted(folder.glob("*.log")))
    return found


def end_of(data: bytes) -> int:
    last = -1
    for batch in iter_batches(data):
        last = batch.last_offset
    return last + 1


def wait_until_equal(cluster: Processes) -> None:
    """Wait until all replicas of all partitions have the same batches, byte for byte."""
    deadline = time.monotonic() + SECONDS
    for partition in range(PARTITIONS):
        while len(set((found := replica_bytes(cluster, partition)).values())) != 1:
            ends = {node_id: end_of(data) for node_id, data in found.items()}
            assert time.monotonic() < deadline, f"the replicas of {partition} differ: {ends}"
            time.sleep(0.05)


def wait_until_in_sync(cluster: Processes) -> None:
    """Wait until every replica is in the ISR of its partition."""
    admin, deadline = admin_of(cluster), time.monotonic() + SECONDS
    while True:
        partitions = admin.list_topics(TOPIC, timeout=30).topics[TOPIC].partitions
        if all(len(partition.isrs) == 3 for partition in partitions.values()):
            return
        assert time.monotonic() < deadline, {p.id: p.isrs for p in partitions.values()}
        time.sleep(0.05)


def test_what_was_acknowledged_is_read_once_after_the_leader_was_killed(cluster: Processes) -> None:
    create(cluster)
    load = Load(cluster)
    load.start()
    try:
        load.wait_for(500)
        killed = leader_of(cluster)
        cluster.kill(killed)
        load.wait_for(500)
    finally:
        load.finish()
    assert load.errors == []
    values = read_all(cluster, len(load.acknowledged))
    assert len(values) == len(set(values)), "a record was appended twice"
    assert set(load.acknowledged) <= set(values)
    cluster.restart(killed)
    wait_until_in_sync(cluster)
    wait_until_equal(cluster)


def test_a_follower_that_lost_its_disk_catches_up(cluster: Processes) -> None:
    create(cluster)
    load = Load(cluster)
    load.start()
    load.wait_for(1000)
    wiped = leader_of(cluster) % 3 + 1
    cluster.kill(wiped)
    for folder in Path(cluster.plan.nodes[wiped - 1].properties["log.dirs"]).glob(f"{TOPIC}-*"):
        shutil.rmtree(folder)
    load.wait_for(200)
    cluster.restart(wiped)
    load.wait_for(200)
    wait_until_in_sync(cluster)
    load.finish()
    assert load.errors == []
    wait_until_equal(cluster)
    assert set(load.acknowledged) <= set(read_all(cluster, len(load.acknowledged)))


def commits(consumer: Consumer, offset: int) -> bool:
    try:
        consumer.commit(offsets=[TopicPartition(TOPIC, 0, offset)], asynchronous=False)
    except KafkaException:
        return False
    return True


def test_a_group_and_its_offsets_move_when_their_coordinator_is_killed(cluster: Processes) -> None:
    create(cluster)
    load = Load(cluster)
    load.start()
    load.wait_for(100)
    load.finish()
    settings = {
        "bootstrap.servers": cluster.plan.bootstrap_servers,
        "group.id": "g",
        "auto.offset.reset": "earliest",
        "enable.auto.commit": False,
        "session.timeout.ms": 6000,
    }
    consumer = Consumer(settings)
    consumer.subscribe([TOPIC])
    read = 0
    while read < 50:
        message = consumer.poll(30)
        assert message is not None and message.error() is None, message
        read += 1
    committed = {p.partition: p.offset for p in consumer.commit(asynchronous=False)}
    partition = coordinator_partition("g", 3)
    coordinator = leader_of(cluster, "__consumer_offsets", partition)
    cluster.kill(coordinator)
    deadline = time.monotonic() + SECONDS
    while not commits(consumer, 7):
        assert time.monotonic() < deadline, "no other coordinator takes a commit"
        consumer.poll(0.1)
    consumer.close()
    assert leader_of(cluster, "__consumer_offsets", partition) != coordinator
    second = Consumer(settings)
    wanted = [TopicPartition(TOPIC, index) for index in range(PARTITIONS)]
    found = {p.partition: p.offset for p in second.committed(wanted, timeout=30)}
    second.close()
    assert found == dict.fromkeys(range(PARTITIONS), -1001) | committed | {0: 7}
    cluster.restart(coordinator)
