"""Producers at full speed into topics that flush every record, while the node is killed again and again.

Acknowledged records are at their acknowledged offsets, and records of an idempotent producer are there once.
`make soak-storage` runs for ten minutes; here it is less than one.
"""

import array
import os
import pathlib
import random
import threading
import time

import pytest
from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from odradek.runtime.ports import free_port
from tests.support.node import NodeProcess

STRIKING_S = float(os.environ.get("ODRADEK_SOAK_SECONDS", "25"))
PARTITIONS = 3
TOPICS = {"idempotent": True, "plain": False}
CONFIG = {"flush.messages": "1", "segment.bytes": str(4 << 20)}
UNKNOWN = -1
SILENCE_S = 30.0


class Load:
    """One producer to its own topic, as fast as it can; `told` holds where each record was said to be."""

    def __init__(self, bootstrap: str, topic: str, idempotent: bool) -> None:
        self.topic = topic
        self.told = array.array("q")
        self.acknowledged = 0
        self.unsent: int | None = None
        self._producing = True
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": idempotent,
                "acks": "all",
                "linger.ms": 1,
                "queue.buffering.max.messages": 5_000,
                "delivery.timeout.ms": 2_147_483_647,
                "reconnect.backoff.max.ms": 200,
            }
        )
        self._thread = threading.Thread(target=self._run)
        self._thread.start()

    def _run(self) -> None:
        producer, told, topic = self._producer, self.told, self.topic
        while self._producing:
            number = len(told)
            try:
                producer.produce(topic, b"v" * 400, b"%d" % number, on_delivery=self._delivered)
                told.append(UNKNOWN)
            except BufferError:
                producer.poll(0.05)
            if number % 500 == 0:
                producer.poll(0)
        self.unsent = producer.flush(60)

    def _delivered(self, error: KafkaError | None, message: Message) -> None:
        if error is None:
            self.told[int(message.key())] = _place(message)
            self.acknowledged += 1

    def stop(self) -> None:
        self._producing = False
        self._thread.join()


def _place(message: Message) -> int:
    """Partition and offset as one number."""
    return int(message.offset()) * PARTITIONS + int(message.partition())


def read(bootstrap: str, topic: str, count: int) -> "tuple[array.array[int], dict[int, list[int]]]":
    """Where each record was found first, and all places of those that are there more than once."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "auditor", "enable.partition.eof": True})
    consumer.assign([TopicPartition(topic, partition, 0) for partition in range(PARTITIONS)])
    found = array.array("q", [UNKNOWN]) * count
    repeated: dict[int, list[int]] = {}
    ended = 0
    deadline = time.monotonic() + SILENCE_S
    while ended < PARTITIONS:
        messages = consumer.consume(1000, 0.5)
        if messages:
            deadline = time.monotonic() + SILENCE_S
        assert time.monotonic() < deadline, f"{topic} cannot be read to its end"
        for message in messages:
            error = message.error()
            if error is None:
                number = int(message.key())
                if found[number] == UNKNOWN:
                    found[number] = _place(message)
                else:
                    repeated.setdefault(number, [found[number]]).append(_place(message))
            elif error.code() == KafkaError._PARTITION_EOF:
                ended += 1
            else:
                raise KafkaException(error)
    consumer.close()
    return found, repeated


@pytest.mark.timeout(2 * STRIKING_S + 120)
def test_what_was_acknowledged_outlives_every_kill(tmp_path: pathlib.Path) -> None:
    rng = random.Random(5)
    port = free_port()
    bootstrap = f"127.0.0.1:{port}"
    node = NodeProcess(tmp_path / "data", "--port", str(port))
    loads: list[Load] = []
    kills = 0
    try:
        admin = AdminClient({"bootstrap.servers": bootstrap})
        topics = [NewTopic(name, PARTITIONS, 1, config=CONFIG) for name in TOPICS]
        for created in admin.create_topics(topics).values():
            created.result(30)
        loads = [Load(bootstrap, name, idempotent) for name, idempotent in TOPICS.items()]
        deadline = time.monotonic() + STRIKING_S
        while time.monotonic() < deadline or kills < 5:
            time.sleep(rng.uniform(0.3, 2))
            node.kill()
            node.restart()
            kills += 1
        for load in loads:
            load.stop()
        for load in loads:
            assert load.unsent == 0
            assert load.acknowledged > 1000
            found, repeated = read(bootstrap, load.topic, len(load.told))
            missing = [n for n, place in enumerate(load.told) if place != UNKNOWN and found[n] == UNKNOWN]
            moved = [
                n
                for n, place in enumerate(load.told)
                if place not in (UNKNOWN, found[n]) and place not in repeated.get(n, ())
            ]
            print(
                f"{load.topic}: {kills} kills, {len(load.told)} sent, {load.acknowledged} acknowledged, "
                f"{len(repeated)} there more than once"
            )
            assert not missing, f"{len(missing)} acknowledged records are missing: {missing[:5]}"
            assert not moved, f"{len(moved)} records are not where they were said to be: {moved[:5]}"
            if TOPICS[load.topic]:
                assert not repeated, f"{len(repeated)} records are there more than once: {list(repeated)[:5]}"
    finally:
        for load in loads:
            load._producing = False
        node.stop()
