"""A broker asks the coordinator of a transaction, here or there, and hears the same answers from both."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.client.broker_connections import BrokerConnections, Endpoint
from odradek.coordinators.transactions.add_partitions import AddPartitionsToTxnManager
from odradek.coordinators.transactions.remote_coordinators import TransactionCoordinators
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER, TRANSACTION_STATE_TOPIC, ProducerIdAndEpoch, TopicPartition
from odradek.runtime.real import RealRuntime
from odradek.runtime.reply import Reply
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, fake_broker, in_turn

HERE, THERE = 1, 2
PRODUCER = ProducerIdAndEpoch(7, 3)
A0, B1 = TopicPartition("a", 0), TopicPartition("b", 1)
BOTH = [A0, B1]


class Local:
    """The coordinator on this node: it knows every transaction."""

    def partition_for(self, transactional_id: str) -> int:
        return 9

    def add_partitions(self, *question: Any) -> Reply[ErrorCode]:
        assert question == ("x", PRODUCER, BOTH, 2)
        return Reply(ErrorCode.NONE)

    def verify_partitions(self, *question: Any) -> Reply[list[ErrorCode]]:
        assert question == ("x", PRODUCER, BOTH)
        return Reply([ErrorCode.NONE] * 2)


class World:
    def __init__(self, broker: FakeBroker) -> None:
        self.broker = broker
        self.leader: int | None = THERE
        endpoints: dict[int, Endpoint] = {THERE: ("127.0.0.1", broker.port)}
        connections = BrokerConnections(RealRuntime(), "test", 5_000, endpoints.get)
        self.channel = TransactionCoordinators(HERE, Local(), self._leader_of, connections)
        self.manager = AddPartitionsToTxnManager(
            self.channel, verifies=True, retry_backoff_ms=1, max_backoff_ms=1_000
        )

    def _leader_of(self, tp: TopicPartition) -> int | None:
        assert tp == TopicPartition(TRANSACTION_STATE_TOPIC, 9)
        return self.leader

    def answers(self, *answers: Any) -> None:
        self.broker.handlers[ApiKey.ADD_PARTITIONS_TO_TXN] = in_turn(*answers)

    def add(self) -> Reply[ErrorCode]:
        return self.manager.add("x", PRODUCER, BOTH)

    def verify(self) -> Reply[list[ErrorCode]]:
        return self.manager.verify("x", PRODUCER, BOTH)


def answer(*codes: int, error_code: int = 0) -> Any:
    types = response_types(ApiKey.ADD_PARTITIONS_TO_TXN)
    topics = [
        types.AddPartitionsToTxnTopicResult(
            name=tp.topic,
            results_by_partition=[
                types.AddPartitionsToTxnPartitionResult(
                    partition_index=tp.partition, partition_error_code=code
                )
            ],
        )
        for tp, code in reversed(list(zip(BOTH, codes, strict=False)))
    ]
    result = types.AddPartitionsToTxnResult(transactional_id="x", topic_results=topics)
    return types.AddPartitionsToTxnResponse(error_code=error_code, results_by_transaction=[result])


def run(scenario: Callable[[World], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with fake_broker(THERE) as broker:
            world = World(broker)
            await scenario(world)
            await world.channel.close()

    asyncio.run(main())


async def refusal(reply: Reply[Any]) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        await reply
    return refused.value.code


def test_the_coordinator_of_this_node_is_asked_without_a_wait() -> None:
    async def scenario(world: World) -> None:
        world.leader = HERE
        assert world.add().value is ErrorCode.NONE
        assert world.verify().value == [ErrorCode.NONE] * 2

    run(scenario)


@pytest.mark.parametrize("newest", [5, 4])
@pytest.mark.parametrize("verify_only", [False, True])
def test_another_broker_is_asked_by_a_request_of_brokers(newest: int, verify_only: bool) -> None:
    async def scenario(world: World) -> None:
        world.broker.api_limits[ApiKey.ADD_PARTITIONS_TO_TXN] = (0, newest)
        world.answers(answer(0, 0))
        reply: Reply[Any] = world.verify() if verify_only else world.add()
        assert await reply == ([ErrorCode.NONE] * 2 if verify_only else ErrorCode.NONE)
        (_, version, request) = world.broker.seen[-1]
        (transaction,) = request.transactions
        assert version == newest
        assert transaction.verify_only is verify_only
        assert (transaction.transactional_id, transaction.producer_id) == ("x", 7)
        assert transaction.producer_epoch == 3
        assert {topic.name: list(topic.partitions) for topic in transaction.topics} == {"a": [0], "b": [1]}

    run(scenario)


def test_verification_answers_partition_by_partition_in_the_order_of_the_question() -> None:
    async def scenario(world: World) -> None:
        world.answers(answer(0, ErrorCode.TRANSACTION_ABORTABLE), answer(0))
        assert await world.verify() == [ErrorCode.NONE, ErrorCode.TRANSACTION_ABORTABLE]
        assert await world.verify() == [ErrorCode.NONE, ErrorCode.NETWORK_EXCEPTION]

    run(scenario)


def test_a_refusal_to_add_is_the_error_of_the_reply() -> None:
    async def scenario(world: World) -> None:
        world.answers(
            answer(ErrorCode.PRODUCER_FENCED, ErrorCode.PRODUCER_FENCED),
            answer(0),
            answer(12_345, 12_345),
            answer(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
        )
        assert await refusal(world.add()) is ErrorCode.PRODUCER_FENCED
        assert await refusal(world.add()) is ErrorCode.NETWORK_EXCEPTION
        assert await refusal(world.add()) is ErrorCode.UNKNOWN_SERVER_ERROR
        assert await refusal(world.add()) is ErrorCode.CLUSTER_AUTHORIZATION_FAILED

    run(scenario)


def test_a_coordinator_that_has_yet_to_hear_of_a_topic_is_asked_again_later() -> None:
    """Its image may be behind that of the leader, for whom the topic exists."""

    async def scenario(world: World) -> None:
        codes = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.OPERATION_NOT_ATTEMPTED)
        world.answers(answer(*codes))
        assert await refusal(world.add()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await world.verify() == [ErrorCode.COORDINATOR_NOT_AVAILABLE] * 2

    run(scenario)


@pytest.mark.parametrize("leader", [NO_LEADER, None, THERE + 1], ids=["none now", "no topic", "unknown"])
def test_where_nobody_coordinates_the_client_is_to_retry(leader: int | None) -> None:
    async def scenario(world: World) -> None:
        world.leader = leader
        assert await refusal(world.add()) is ErrorCode.COORDINATOR_NOT_AVAILABLE
        assert await refusal(world.verify()) is ErrorCode.COORDINATOR_NOT_AVAILABLE

    run(scenario)


def test_a_broken_connection_is_an_error_that_the_client_retries() -> None:
    async def scenario(world: World) -> None:
        world.answers(HangUp)
        assert await refusal(world.verify()) is ErrorCode.NETWORK_EXCEPTION

    run(scenario)


def test_a_broker_without_requests_of_brokers_is_not_asked_in_those_of_clients() -> None:
    async def scenario(world: World) -> None:
        world.broker.api_limits[ApiKey.ADD_PARTITIONS_TO_TXN] = (0, 3)
        assert await refusal(world.add()) is ErrorCode.UNSUPPORTED_VERSION
        assert world.broker.requests(ApiKey.ADD_PARTITIONS_TO_TXN) == []

    run(scenario)


def test_another_broker_is_asked_again_while_the_last_transaction_is_being_ended() -> None:
    async def scenario(world: World) -> None:
        busy = answer(*[ErrorCode.CONCURRENT_TRANSACTIONS] * 2)
        world.answers(busy, busy, answer(0, 0))
        await world.manager.add_with_retries("x", PRODUCER, BOTH)
        assert len(world.broker.requests(ApiKey.ADD_PARTITIONS_TO_TXN)) == 3

    run(scenario)
