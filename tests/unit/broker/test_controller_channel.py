"""From any node to the active controller: here, there, not yet, no longer."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.broker.controller_channel import RoutedController
from odradek.core.errors import ErrorCode, KafkaError, StorageError
from odradek.metadata.records import UnregisterBrokerRecord, encode_record
from odradek.sim.world.world import World
from odradek.wire import responses
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.quorum_node import QuorumCluster

NOTHING = request_types(ApiKey.DELETE_TOPICS).DeleteTopicsRequest(topics=[])
BEAT = request_types(ApiKey.BROKER_HEARTBEAT).BrokerHeartbeatRequest(
    broker_id=1, broker_epoch=1, current_metadata_offset=0
)


def simulate(main: Callable[[QuorumCluster, World], Coroutine[Any, Any, None]]) -> None:
    world = World(23)

    async def run() -> None:
        cluster = QuorumCluster(world, {"metadata.max.idle.interval.ms": "0"})
        await cluster.start()
        await main(cluster, world)
        await cluster.stop()

    world.run(run())


@pytest.mark.parametrize("asked", [1, 2])
def test_a_call_waits_for_the_first_claim(asked: int) -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        call = asyncio.ensure_future(cluster.nodes[asked].channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        await asyncio.sleep(3)
        assert not call.done()
        await cluster.lead(1)
        assert (await asyncio.wait_for(call, 0.1)).responses == []

    simulate(main)


def test_the_own_controller_is_asked_in_the_turn_in_which_it_claims() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        call = asyncio.ensure_future(cluster.nodes[1].channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        cluster.quorum.elect(1)
        await asyncio.sleep(1)
        before = world.loop.time()
        for _ in range(8):
            cluster.quorum.commit()
            await asyncio.sleep(0)
        assert call.done()
        assert world.loop.time() - before < 0.001, "nobody sleeps in between"

    simulate(main)


def test_a_call_is_carried_to_the_next_leader() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        cluster.quorum.connected = [2, 3]
        created = [
            asyncio.ensure_future(first.create_topic("here")),
            asyncio.ensure_future(cluster.nodes[3].create_topic("there")),
        ]
        await asyncio.sleep(0.1)
        second = await cluster.lead(2)
        cluster.quorum.connected = [1, 2, 3]
        first.replica.hear(cluster.quorum.epoch, 2)
        assert [await cluster.committing(c) for c in created] == [0, 0]
        assert second.image.topics_by_name.keys() == {"here", "there"}

    simulate(main)


def test_an_answer_that_does_not_come_is_given_up_when_another_node_leads() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        carry = cluster.carry

        async def silent(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            if controller_id == 1:
                await asyncio.sleep(10_000)
            return await carry(controller_id, api_key, request)

        cluster.carry = silent
        created = asyncio.ensure_future(cluster.nodes[3].create_topic("t"))
        await asyncio.sleep(2)
        assert not created.done()
        await cluster.lead(2)
        assert await cluster.committing(asyncio.wait_for(created, 1)) == 0

    simulate(main)


@pytest.mark.parametrize("code", [ErrorCode.NOT_CONTROLLER, ErrorCode.NETWORK_EXCEPTION])
def test_a_leader_that_is_not_active_yet_is_asked_again(code: ErrorCode) -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        await cluster.lead(1)
        carry, refusals = cluster.carry, 0

        async def refusing(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            nonlocal refusals
            refusals += 1
            if refusals < 4:
                raise KafkaError(code)
            return await carry(controller_id, api_key, request)

        cluster.carry = refusing
        call = cluster.nodes[2].channel.call(ApiKey.DELETE_TOPICS, NOTHING)
        assert (await asyncio.wait_for(call, 1)).responses == []

    simulate(main)


def test_an_answer_that_says_not_controller_is_no_answer() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        await cluster.lead(1)
        types = responses.broker_heartbeat
        codes = [ErrorCode.NOT_CONTROLLER, ErrorCode.STALE_BROKER_EPOCH]

        async def answer(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            return types.BrokerHeartbeatResponse(error_code=codes.pop(0))

        cluster.carry = answer
        response = await cluster.nodes[2].channel.call(ApiKey.BROKER_HEARTBEAT, BEAT)
        assert response.error_code == ErrorCode.STALE_BROKER_EPOCH

    simulate(main)


def refused_rows() -> list[Any]:
    """Answers without an error of their own, to a controller that is not active."""
    code = ErrorCode.NOT_CONTROLLER
    topics, deleted = responses.create_topics, responses.delete_topics
    partitions, configs = responses.create_partitions, responses.incremental_alter_configs
    row = configs.AlterConfigsResourceResponse(resource_type=2, resource_name="t", error_code=code)
    return [
        topics.CreateTopicsResponse(topics=[topics.CreatableTopicResult(name="t", error_code=code)]),
        deleted.DeleteTopicsResponse(responses=[deleted.DeletableTopicResult(error_code=code)]),
        partitions.CreatePartitionsResponse(
            results=[partitions.CreatePartitionsTopicResult(name="t", error_code=code)]
        ),
        configs.IncrementalAlterConfigsResponse(responses=[row]),
    ]


@pytest.mark.parametrize("refused", refused_rows(), ids=lambda response: type(response).__name__)
def test_rows_that_say_not_controller_are_no_answer(refused: Any) -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        await cluster.lead(1)
        carry, answers = cluster.carry, [refused]

        async def answer(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            return answers.pop() if answers else await carry(controller_id, api_key, request)

        cluster.carry = answer
        response = await cluster.nodes[2].channel.call(ApiKey.DELETE_TOPICS, NOTHING)
        assert response.responses == []

    simulate(main)


@pytest.mark.parametrize(
    ("api_key", "request_", "seconds"),
    [(ApiKey.DELETE_TOPICS, NOTHING, 30), (ApiKey.BROKER_HEARTBEAT, BEAT, 4.5)],
)
def test_a_call_that_finds_no_controller_times_out(api_key: ApiKey, request_: Any, seconds: float) -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        before = world.loop.time()
        with pytest.raises(KafkaError) as refused:
            await cluster.nodes[1].channel.call(api_key, request_)
        assert refused.value.code is ErrorCode.REQUEST_TIMED_OUT
        assert world.loop.time() - before == pytest.approx(seconds, abs=0.01)

    simulate(main)


def test_a_node_that_stops_keeps_nobody_waiting() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        call = asyncio.ensure_future(cluster.nodes[1].channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        await asyncio.sleep(0.1)
        cluster.nodes[1].channel.close()
        with pytest.raises(KafkaError) as refused:
            await asyncio.wait_for(call, 0.1)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    simulate(main)


def test_an_answer_of_another_node_waits_until_the_own_image_shows_it() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        behind = cluster.nodes[3]
        cluster.quorum.connected = [1, 2]
        created = asyncio.ensure_future(behind.create_topic("t"))
        await cluster.committing(asyncio.sleep(1))
        assert "t" in first.image.topics_by_name
        assert not created.done()
        cluster.quorum.connected = [1, 2, 3]
        assert await cluster.committing(created) == 0
        assert "t" in behind.image.topics_by_name

    simulate(main)


def test_an_image_that_stays_behind_holds_an_answer_back_for_five_seconds() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        cluster.quorum.connected = [1, 2]
        before = world.loop.time()
        assert await cluster.committing(cluster.nodes[3].create_topic("t")) == 0
        assert world.loop.time() - before == pytest.approx(5, abs=0.1)
        assert "t" not in cluster.nodes[3].image.topics_by_name

    simulate(main)


def test_a_node_that_stops_does_not_wait_for_its_image() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        cluster.quorum.connected = [1, 2]
        created = asyncio.ensure_future(cluster.nodes[3].create_topic("t"))
        await cluster.committing(asyncio.sleep(1))
        assert not created.done()
        cluster.nodes[3].channel.close()
        assert await asyncio.wait_for(created, 0.1) == 0

    simulate(main)


def test_a_node_that_is_only_a_broker_hears_of_leaders_and_of_its_own_failure() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        broker = cluster.nodes[3]
        channel = RoutedController(
            broker.config, broker.replica, broker.loader, None, broker.ask_remote, broker.publisher
        )
        call = asyncio.ensure_future(channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        await asyncio.sleep(3)
        await cluster.lead(1)
        assert (await asyncio.wait_for(call, 0.1)).responses == []
        broker.replica.hear(2, -1)
        call = asyncio.ensure_future(channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        await asyncio.sleep(1)
        broker.replica.fail(StorageError("no disk"))
        with pytest.raises(StorageError):
            await asyncio.wait_for(call, 0.1)

    simulate(main)


def test_a_node_that_cannot_follow_says_so_at_once() -> None:
    async def main(cluster: QuorumCluster, world: World) -> None:
        cluster.quorum.elect(1)
        leader = cluster.nodes[1]
        call = asyncio.ensure_future(leader.channel.call(ApiKey.DELETE_TOPICS, NOTHING))
        broken = UnregisterBrokerRecord(broker_id=77, broker_epoch=5)
        leader.replica.append([encode_record(broken)], 0)
        cluster.quorum.commit()
        with pytest.raises(KafkaError, match="cannot follow the metadata log"):
            await asyncio.wait_for(call, 0.1)

    simulate(main)
