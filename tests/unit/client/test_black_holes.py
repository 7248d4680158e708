"""A broker that swallows everything, and resets nothing: the client asks another one whether it still leads
or coordinates, and goes on there within a second of the election."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from odradek.client.admin import Admin
from odradek.client.client import Client
from odradek.client.consumer import Consumer
from odradek.client.producer import Producer
from odradek.client.transactional import TransactionalProducer
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, fake_broker, in_turn
from tests.unit.client.test_client import coordinator
from tests.unit.client.test_consumer import Log
from tests.unit.client.test_producer_faults import ModelBroker

TP = TopicPartition("t", 0)
SWALLOWED = ("requests", "answers")


@asynccontextmanager
async def two_brokers() -> AsyncIterator[tuple[FakeBroker, FakeBroker]]:
    """Broker 1 leads; both know each other."""
    async with fake_broker(1) as one, fake_broker(2) as two:
        one.peers = two.peers = [one, two]
        two.leader = 1
        yield one, two


def elect(broker: FakeBroker) -> None:
    """The cluster as this broker knows it has another leader: itself."""
    broker.leader = broker.node_id
    broker.leader_epoch += 1


async def until(condition: Callable[[], object]) -> None:
    async with asyncio.timeout(10):
        while not condition():
            await asyncio.sleep(0.005)


async def within_a_second(work: Any) -> Any:
    async with asyncio.timeout(1):
        return await work


def share(model: ModelBroker, one: FakeBroker, two: FakeBroker) -> None:
    """What one broker has written, the other has, too: it was replicated before."""
    for api_key in (ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.PRODUCE, ApiKey.END_TXN):
        two.handlers[api_key] = one.handlers[api_key]
    two.features = one.features


@pytest.mark.parametrize("swallowed", SWALLOWED)
def test_an_idempotent_producer_goes_on_at_the_new_leader_once_and_in_order(swallowed: str) -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            model = ModelBroker(one, 2, [])
            share(model, one, two)
            async with Client([one.address]) as client, Producer(client, batch_bytes=200) as producer:
                first = [await producer.send("t", b"%d" % i) for i in range(10)]
                await asyncio.gather(*first)
                one.swallows = swallowed
                later = [await producer.send("t", b"%d" % i) for i in range(10, 60)]
                await until(lambda: two.requests(ApiKey.METADATA))
                assert not any(delivery.done() for delivery in later)
                elect(two)
                found = await within_a_second(asyncio.gather(*later))
            assert [entry.value for entry in model.log] == [b"%d" % i for i in range(60)]
            assert [delivery.offset for delivery in found] == list(range(10, 60))

    asyncio.run(scenario())


def test_a_leader_that_is_slow_and_leads_is_waited_for() -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            model = ModelBroker(one, 2, [])
            share(model, one, two)
            produce, asked_at = one.handlers[ApiKey.PRODUCE], asyncio.Event()

            async def slowly(request: Any) -> Any:
                asked_at.set()
                await until(lambda: len(two.requests(ApiKey.METADATA)) >= 2)
                return produce(request)

            one.handlers[ApiKey.PRODUCE] = slowly
            async with Client([one.address]) as client, Producer(client) as producer:
                assert (await (await producer.send("t", b"a"))).offset == 0
            assert len(one.requests(ApiKey.PRODUCE)) == 1
            assert two.requests(ApiKey.PRODUCE) == []

    asyncio.run(scenario())


def test_what_may_not_be_sent_twice_is_waited_for() -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            model = ModelBroker(one, 2, [])
            share(model, one, two)
            async with Client([one.address], request_timeout_ms=1_000) as client:
                await client.refresh(["t"])
                one.swallows = "requests"
                elect(two)
                async with Producer(client, acks=1) as producer:
                    began = asyncio.get_running_loop().time()
                    await (await producer.send("t", b"a"))
                assert asyncio.get_running_loop().time() - began >= 1

    asyncio.run(scenario())


@pytest.mark.parametrize("swallowed", SWALLOWED)
def test_a_transaction_is_committed_by_the_new_coordinator(swallowed: str) -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            model = ModelBroker(one, 2, [])
            share(model, one, two)
            two.handlers[ApiKey.FIND_COORDINATOR] = in_turn(
                lambda _: coordinator(1), lambda _: coordinator(2)
            )
            async with Client([one.address]) as client, TransactionalProducer(client, "x") as producer:
                await producer.init_transactions()
                producer.begin()
                await (await producer.send("t", b"a"))
                one.swallows = swallowed
                committing = asyncio.ensure_future(producer.commit())
                await until(lambda: two.requests(ApiKey.FIND_COORDINATOR))
                await within_a_second(committing)
            assert model.visible == [b"a"]

    asyncio.run(scenario())


def test_a_consumer_goes_on_at_the_new_leader() -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            Log(one, 10)
            Log(two, 20)
            async with (
                Client([one.address]) as client,
                Consumer(client, auto_offset_reset="earliest", max_wait_ms=50) as consumer,
            ):
                consumer.assign([TP])
                values = [r.value for r in await consumer.poll(5_000)]
                one.swallows = "requests"
                while len(values) < 20:
                    polled = asyncio.ensure_future(consumer.poll(5_000))
                    if two.leader == 1:
                        await until(lambda: two.requests(ApiKey.METADATA))
                        elect(two)
                    values += [r.value for r in await within_a_second(polled)]
            assert values == [b"%d" % i for i in range(20)]
            assert two.requests(ApiKey.FETCH)[0].topics[0].partitions[0].current_leader_epoch == 1

    asyncio.run(scenario())


def test_a_commit_goes_to_the_new_coordinator() -> None:
    types = response_types(ApiKey.OFFSET_COMMIT)
    part = types.OffsetCommitResponsePartition(partition_index=0)
    topic = types.OffsetCommitResponseTopic(name="t", partitions=[part])
    committed = types.OffsetCommitResponse(topics=[topic])

    async def scenario() -> None:
        async with two_brokers() as (one, two):
            one.handlers[ApiKey.FIND_COORDINATOR] = lambda _: coordinator(1)
            two.handlers[ApiKey.FIND_COORDINATOR] = in_turn(
                lambda _: coordinator(1),
                lambda _: coordinator(-1, ErrorCode.COORDINATOR_NOT_AVAILABLE),
                lambda _: coordinator(2),
            )
            two.handlers[ApiKey.OFFSET_COMMIT] = lambda _: committed
            async with Client([one.address]) as client:
                assert await client.coordinator("g") == 1
                one.swallows = "requests"
                committing = asyncio.ensure_future(Admin(client).commit("g", {TP: 7}))
                await until(lambda: len(two.requests(ApiKey.FIND_COORDINATOR)) == 2)
                await within_a_second(committing)
                assert await client.coordinator("g") == 2

    asyncio.run(scenario())


def test_metadata_comes_from_another_broker_than_the_silent_one() -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two), Client([one.address, two.address]) as client:
            await client.refresh()
            assert not two.requests(ApiKey.METADATA)
            one.swallows = "requests"
            two.topics["new"] = 3
            assert len((await within_a_second(client.refresh(["new"]))).topics["new"].partitions) == 3
            # The next one does not even try the silent broker.
            began = asyncio.get_running_loop().time()
            await client.refresh(["new"])
            assert asyncio.get_running_loop().time() - began < 0.2

    asyncio.run(scenario())


def test_a_black_hole_among_the_bootstrap_servers_costs_no_more_than_a_moment() -> None:
    async def scenario() -> None:
        async with two_brokers() as (one, two):
            one.swallows = "requests"
            async with Client([one.address, two.address]) as client:
                assert (await within_a_second(client.refresh())).brokers.keys() == {1, 2}

    asyncio.run(scenario())


def test_one_broker_alone_may_take_its_time() -> None:
    async def scenario() -> None:
        async with fake_broker(1) as one:
            metadata = one.handlers[ApiKey.METADATA]

            async def slowly(request: Any) -> Any:
                await asyncio.sleep(0.7)
                return metadata(request)

            one.handlers[ApiKey.METADATA] = slowly
            async with Client([one.address]) as client:
                await client.refresh(["t"])
            assert len(one.requests(ApiKey.METADATA)) == 1

    asyncio.run(scenario())


def test_a_broker_that_comes_back_gets_a_new_connection() -> None:
    """On the old one its answers would wait for what TCP sends again, which may take minutes."""

    async def scenario() -> None:
        async with two_brokers() as (one, two):
            model = ModelBroker(one, 2, [])
            share(model, one, two)
            async with Client([one.address]) as client, Producer(client) as producer:
                await (await producer.send("t", b"a"))
                used = list(one.connections)
                one.swallows = "requests"
                sent = await producer.send("t", b"b")
                await until(lambda: two.requests(ApiKey.METADATA))
                elect(two)
                await within_a_second(sent)
                await until(lambda: not set(used) & set(one.connections))
                one.swallows, one.leader, one.leader_epoch = "", 1, 2
                two.leader, two.leader_epoch = 1, 2
                await client.refresh(["t"])
                await within_a_second(await producer.send("t", b"c"))
            assert [entry.value for entry in model.log] == [b"a", b"b", b"c"]

    asyncio.run(scenario())
