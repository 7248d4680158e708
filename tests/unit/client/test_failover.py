"""Clients of three real brokers when one of them stands still: it takes connections and answers nobody, as a
broker whose packets are dropped. Another one is elected when its session has ended."""

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from odradek.client.client import Client
from odradek.client.consumer import READ_COMMITTED, Consumer
from odradek.client.producer import Producer
from odradek.core.types import TopicPartition
from odradek.testing import Cluster, Kafka, KafkaServer

WHOLE_S = 30


@pytest.fixture(scope="module")
def server() -> Iterator[KafkaServer]:
    settings = {"broker.session.timeout.ms": 2_000, "min.insync.replicas": 2}
    found = KafkaServer.embedded(settings, brokers=3)
    yield found
    found.close()


@pytest.fixture
def kafka(server: KafkaServer) -> Iterator[Kafka]:
    view = Kafka(server)
    yield view
    view.close()


class Flow:
    """A producer and a consumer of one partition, until all of `count` records have passed."""

    def __init__(self, tp: TopicPartition, count: int) -> None:
        self.tp, self.count = tp, count
        self.acknowledged: list[tuple[float, int]] = []
        self.read: list[tuple[float, bytes | None]] = []

    async def produce(self, client: Client) -> None:
        async with Producer(client, linger_ms=1) as producer:
            for i in range(self.count):
                sent = await producer.send(self.tp.topic, b"%d" % i, partition=self.tp.partition)
                sent.add_done_callback(self._on_delivery)
                await asyncio.sleep(0.001)

    def _on_delivery(self, delivered: Any) -> None:
        self.acknowledged.append((asyncio.get_running_loop().time(), delivered.result().offset))

    async def consume(self, client: Client, group: str) -> None:
        async with Consumer(
            client, group_id=group, isolation_level=READ_COMMITTED, auto_offset_reset="earliest"
        ) as consumer:
            consumer.subscribe([self.tp.topic])
            while len(self.read) < self.count:
                records = await consumer.poll(100)
                now = asyncio.get_running_loop().time()
                self.read += [(now, record.value) for record in records]


def test_records_flow_on_within_a_second_of_the_election_none_lost_and_none_twice(kafka: Kafka) -> None:
    cluster = kafka.server.cluster
    assert cluster is not None
    tp = TopicPartition(kafka.topic("orders"), 0)
    leader = cluster.leader_of(tp)
    assert leader is not None
    flow = Flow(tp, 3_000)

    async def scenario() -> float:
        servers = kafka.bootstrap_servers
        async with asyncio.timeout(WHOLE_S), Client(servers) as one, Client(servers) as other:
            producing = asyncio.ensure_future(flow.produce(one))
            consuming = asyncio.ensure_future(flow.consume(other, kafka.group()))
            while len(flow.read) < 500:
                await asyncio.sleep(0.01)
            with kafka.faults.paused(leader):
                elected_at = await _election(cluster, tp, leader)
                await producing
                await consuming
            return elected_at

    elected_at = asyncio.run(scenario())
    assert [offset for _, offset in flow.acknowledged] == list(range(flow.count))
    assert [value for _, value in flow.read] == [b"%d" % i for i in range(flow.count)]
    for times in (
        [at for at, _ in flow.acknowledged if at > elected_at],
        [at for at, _ in flow.read if at > elected_at],
    ):
        assert times[0] - elected_at < 1


async def _election(cluster: Cluster, tp: TopicPartition, before: int) -> float:
    """When another broker has learned of another leader."""
    while cluster.leader_of(tp) in (None, before):
        await asyncio.sleep(0.01)
    return asyncio.get_running_loop().time()
