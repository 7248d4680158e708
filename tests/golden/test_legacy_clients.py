"""Old segments under a node: every client that knows such formats gets their records."""

import asyncio
import zlib
from collections.abc import Iterator
from typing import Any

import pytest
from aiokafka import AIOKafkaConsumer
from confluent_kafka import Consumer, TopicPartition
from kafka import KafkaConsumer
from kafka import TopicPartition as PythonTopicPartition

from odradek.testing.broker import Broker
from tests.golden import loader
from tests.golden.legacy_node import TOPICS, broker_with_old_segments
from tests.support.command import odradek

# Neither kafka-python, without a package of its own for it, nor aiokafka knows the lz4 of magic 0.
PYTHON_TOPICS = [topic for topic in TOPICS if topic not in ("v0-lz4", "v0-lz4-cleaned")]
Shown = tuple[int, int, Any, Any]


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    with broker_with_old_segments(tmp_path_factory.mktemp("legacy")) as running:
        yield running


def shown(value: bytes | None) -> Any:
    if value is None or len(value) < 100:
        return None if value is None else value.decode()
    return {"len": len(value), "crc32": zlib.crc32(value)}


def expected(topic: str) -> list[Shown]:
    return [
        (r["offset"], r["timestamp"], r["key"], r["value"]) for r in loader.legacy()[f"{topic}-0"]["records"]
    ]


@pytest.mark.parametrize("topic", TOPICS)
def test_librdkafka_reads_them(broker: Broker, topic: str) -> None:
    wanted = expected(topic)
    consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "group.id": "g", "check.crcs": True})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found: list[Shown] = []
    while len(found) < len(wanted) and (message := consumer.poll(10)) is not None:
        assert message.error() is None, message.error()
        _, timestamp = message.timestamp()
        found.append((message.offset() or 0, timestamp or -1, shown(message.key()), shown(message.value())))
    assert found == wanted
    latest = max(wanted, key=lambda record: record[1])[1]
    if latest >= 0:
        (answer,) = consumer.offsets_for_times([TopicPartition(topic, 0, latest)], timeout=10)
        assert answer.offset == next(record[0] for record in wanted if record[1] >= latest)
    consumer.close()


@pytest.mark.parametrize("topic", PYTHON_TOPICS)
def test_kafka_python_reads_them(broker: Broker, topic: str) -> None:
    wanted = expected(topic)
    consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, group_id=None)
    consumer.assign([PythonTopicPartition(topic, 0)])
    consumer.seek(PythonTopicPartition(topic, 0), 0)
    found: list[Shown] = []
    while len(found) < len(wanted):
        polled = consumer.poll(timeout_ms=10_000)
        assert polled
        for records in polled.values():
            found += [
                (r.offset, -1 if r.timestamp is None else r.timestamp, shown(r.key), shown(r.value))
                for r in records
            ]
    consumer.close()
    assert found == wanted


def test_aiokafka_reads_them(broker: Broker) -> None:
    async def read(topic: str) -> list[Shown]:
        wanted = expected(topic)
        consumer = AIOKafkaConsumer(
            topic, bootstrap_servers=broker.bootstrap_servers, auto_offset_reset="earliest"
        )
        await consumer.start()
        found: list[Shown] = []
        try:
            while len(found) < len(wanted):
                polled = await asyncio.wait_for(consumer.getmany(timeout_ms=1000), 10)
                for records in polled.values():
                    found += [
                        (r.offset, -1 if r.timestamp is None else r.timestamp, shown(r.key), shown(r.value))
                        for r in records
                    ]
        finally:
            await consumer.stop()
        return found

    for topic in PYTHON_TOPICS:
        if topic == "mixed":
            continue  # it takes the magic of a segment's first entry for that of all others
        assert asyncio.run(read(topic)) == expected(topic), topic


@pytest.mark.parametrize("topic", TOPICS)
def test_our_own_command_reads_them(broker: Broker, topic: str) -> None:
    outcome = odradek("consume", topic, "-b", broker.bootstrap_servers, "-f", "%o %k\\n")
    assert outcome.code == 0
    wanted = [f"{offset} {key or ''}".rstrip() for offset, _, key, _ in expected(topic)]
    assert [line.rstrip() for line in outcome.text.splitlines()] == wanted
