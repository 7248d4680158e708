"""Brokers that leave while a batch is written or decided: who has their part now is asked."""

import asyncio
from typing import Any

import pytest

from odradek.client.admin import Admin
from odradek.client.client import Client
from odradek.core.errors import ErrorCode
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.records import kernel
from odradek.records.header import HEADER_BYTES
from odradek.spark.ledger.deciding import Decider
from odradek.spark.ledger.ledger import Stream
from odradek.spark.sink.outbox import Outbox
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, fake_broker, topic_id

pytestmark = pytest.mark.timeout(30)


def lists(*ids: str) -> Any:
    types = response_types(ApiKey.LIST_TRANSACTIONS)
    states = [
        types.TransactionState(transactional_id=id_, producer_id=1, transaction_state="Ongoing")
        for id_ in ids
    ]
    return lambda _: types.ListTransactionsResponse(transaction_states=states)


def test_transactions_are_listed_without_a_broker_that_left() -> None:
    async def story() -> None:
        async with fake_broker(1) as one, fake_broker(2) as two, Client(one.address) as client:
            one.peers = [one, two]
            for broker in (one, two):
                broker.handlers[ApiKey.LIST_TRANSACTIONS] = lists(f"of {broker.node_id}")
            await client.refresh()
            assert list(await Admin(client).list_transactions()) == [1, 2]
            two.close()
            one.peers = [one]
            one.handlers[ApiKey.LIST_TRANSACTIONS] = lists("of 1", "of 2")
            async with asyncio.timeout(5):
                found = await Admin(client).list_transactions()
            assert [state.transactional_id for state in found[1]] == ["of 1", "of 2"]

    asyncio.run(story())


def coordinates(broker: FakeBroker) -> Any:
    types = response_types(ApiKey.FIND_COORDINATOR)

    def answer(request: Any) -> Any:
        found = [
            types.Coordinator(
                key=key,
                node_id=broker.node_id,
                host="127.0.0.1",
                port=broker.port,
                error_code=0,
                error_message=None,
            )
            for key in request.coordinator_keys
        ]
        return types.FindCoordinatorResponse(coordinators=found)

    return answer


def describes(request: Any) -> Any:
    types = response_types(ApiKey.DESCRIBE_TRANSACTIONS)
    states = [
        types.TransactionState(
            error_code=0,
            transactional_id=id_,
            transaction_state="Ongoing",
            producer_id=7,
            producer_epoch=0,
            topics=[],
        )
        for id_ in request.transactional_ids
    ]
    return types.DescribeTransactionsResponse(transaction_states=states)


def test_a_coordinator_that_left_is_not_asked_again() -> None:
    async def story() -> None:
        async with fake_broker(1) as one, fake_broker(2) as two, Client(one.address) as client:
            one.peers = [one, two]
            one.handlers[ApiKey.FIND_COORDINATOR] = coordinates(two)
            for broker in (one, two):
                broker.handlers[ApiKey.DESCRIBE_TRANSACTIONS] = describes
            decider = Decider(client, Stream("q", "s"))
            await decider._describe(["a"])
            two.close()
            one.handlers[ApiKey.FIND_COORDINATOR] = coordinates(one)
            async with asyncio.timeout(5):
                assert list(await decider._describe(["a", "b"])) == ["a", "b"]

    asyncio.run(story())


class Cluster:
    """Two partitions that the first broker leads, until a test says otherwise."""

    def __init__(self, brokers: dict[int, FakeBroker]) -> None:
        self.leaders = {0: 1, 1: 1}
        self.written: list[tuple[int, int]] = []
        for node_id, broker in brokers.items():
            broker.peers = list(brokers.values())
            broker.handlers[ApiKey.METADATA] = lambda _, broker=broker: self._metadata(broker)
            broker.handlers[ApiKey.PRODUCE] = lambda request, node_id=node_id: self._produce(request, node_id)

    def _metadata(self, broker: FakeBroker) -> Any:
        types = response_types(ApiKey.METADATA)
        partitions = [
            types.MetadataResponsePartition(
                partition_index=index,
                leader_id=leader,
                leader_epoch=0,
                replica_nodes=[1, 2],
                isr_nodes=[1, 2],
            )
            for index, leader in self.leaders.items()
        ]
        topic = types.MetadataResponseTopic(name="t", topic_id=topic_id("t"), partitions=partitions)
        brokers = [
            types.MetadataResponseBroker(node_id=b.node_id, host="127.0.0.1", port=b.port)
            for b in broker.peers
        ]
        return types.MetadataResponse(cluster_id="fake", controller_id=1, brokers=brokers, topics=[topic])

    def _produce(self, request: Any, node_id: int) -> Any:
        types = response_types(ApiKey.PRODUCE)
        (topic,) = request.topic_data
        answers = []
        for partition in topic.partition_data:
            is_leader = self.leaders[partition.index] == node_id
            if is_leader:
                self.written.append((node_id, partition.index))
            code = ErrorCode.NONE if is_leader else ErrorCode.NOT_LEADER_OR_FOLLOWER
            answers.append(
                types.PartitionProduceResponse(index=partition.index, error_code=code, base_offset=0)
            )
        responses = [
            types.TopicProduceResponse(name=topic.name, topic_id=topic.topic_id, partition_responses=answers)
        ]
        return types.ProduceResponse(responses=responses)


@pytest.mark.parametrize("after", [{0: 2, 1: 1}, {0: 2, 1: 2}, {0: 2, 1: 3}])
def test_partitions_that_had_one_leader_are_written_to_several_when_they_have_moved(
    after: dict[int, int],
) -> None:
    async def story() -> None:
        async with (
            fake_broker(1) as one,
            fake_broker(2) as two,
            fake_broker(3) as three,
            Client(one.address) as client,
        ):
            cluster = Cluster({1: one, 2: two, 3: three})
            await client.refresh(["t"])
            outbox = Outbox(client, ProducerIdAndEpoch(7, 0), None, delivery_timeout_s=5)
            cluster.leaders = after
            # Together in one request, as when both were idle: the first is busy until the second is queued.
            outbox._send_ready, send = lambda: None, outbox._send_ready  # type: ignore[method-assign]
            for partition in (0, 1):
                data = kernel.encode([(0, None, b"x", ())], 0, HEADER_BYTES)
                await outbox.put(TopicPartition("t", partition), data, 1, 0)
            outbox._send_ready = send  # type: ignore[method-assign]
            outbox._send_ready()
            await outbox.flush()
            assert sorted(cluster.written) == sorted((node, index) for index, node in after.items())
            await outbox.close()

    asyncio.run(story())
