"""A broker leaves: patiently while a controller is there to let it go, soon where there is none."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

from odradek.broker.lifecycle import BrokerLifecycle
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from tests.unit.controller.harness import log_dir
from tests.unit.controller.quorum_node import CLUSTER_ID, QuorumCluster, QuorumNode


def leave(main: Callable[[QuorumCluster, BrokerLifecycle], Coroutine[Any, Any, None]]) -> float:
    """How many seconds `main` takes. Broker 3 is unfenced, the controller of node 1 is active."""
    world = World(29)

    async def run() -> float:
        cluster = QuorumCluster(world, {"metadata.max.idle.interval.ms": "0"})
        await cluster.start()
        await cluster.lead(1)
        lifecycle = lifecycle_on(cluster.nodes[3])
        listeners = cluster.nodes[3].config.advertised_listeners
        await cluster.committing(lifecycle.register(listeners))
        await cluster.committing(lifecycle.unfence())
        began_s = world.loop.time()
        await main(cluster, lifecycle)
        took_s = world.loop.time() - began_s
        await cluster.stop()
        return took_s

    return world.run(run())


def lifecycle_on(node: QuorumNode) -> BrokerLifecycle:
    return BrokerLifecycle(
        node.config,
        node.channel,
        node.publisher,
        cluster_id=CLUSTER_ID,
        incarnation_id=UUID(int=7),
        directory_ids=[log_dir(3)],
    )


def no_leader(cluster: QuorumCluster) -> None:
    for node in cluster.nodes.values():
        node.replica.hear(cluster.quorum.epoch + 1, NO_LEADER)


def test_a_broker_gives_up_soon_when_nobody_leads() -> None:
    async def main(cluster: QuorumCluster, lifecycle: BrokerLifecycle) -> None:
        no_leader(cluster)
        await lifecycle.shut_down()

    assert 0.5 < leave(main) < 1.5


def test_a_broker_gives_up_soon_when_the_last_leader_is_gone() -> None:
    async def main(cluster: QuorumCluster, lifecycle: BrokerLifecycle) -> None:
        async def refused(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)

        cluster.carry = refused
        await lifecycle.shut_down()

    assert 0.5 < leave(main) < 1.5


def test_a_broker_waits_for_a_controller_that_is_slow_to_answer() -> None:
    answers = []

    async def main(cluster: QuorumCluster, lifecycle: BrokerLifecycle) -> None:
        carry = cluster.carry

        async def slow(controller_id: int, api_key: ApiKey, request: Any) -> Any:
            await asyncio.sleep(3)
            response = await carry(controller_id, api_key, request)
            answers.append(response.should_shut_down)
            return response

        cluster.carry = slow
        await cluster.committing(lifecycle.shut_down())

    assert leave(main) > 3
    assert answers[-1]


def test_the_next_controller_lets_a_broker_go() -> None:
    async def main(cluster: QuorumCluster, lifecycle: BrokerLifecycle) -> None:
        no_leader(cluster)
        left = asyncio.ensure_future(lifecycle.shut_down())
        await asyncio.sleep(0.5)
        cluster.quorum.epoch += 1
        await cluster.lead(2)
        await cluster.committing(left)
        await cluster.settle()
        assert not cluster.nodes[2].image.brokers[3].is_active

    assert leave(main) < 1
