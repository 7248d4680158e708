"""Elections of the clock: preferred leaders come back, unclean elections are held. Time is virtual."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from odradek.controller.electing import MAX_ELECTIONS
from odradek.controller.elections import Election, ElectionKind
from odradek.metadata.image import RECOVERING, PartitionRegistration
from odradek.metadata.versions import SUPPORTED_FEATURES
from odradek.runtime.slices import at_once
from odradek.sim.world.cluster import SimHost
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.harness import incarnation, log_dir
from tests.unit.controller.test_large_results import leaders, with_partitions
from tests.unit.controller.test_quorum import simulate, stack
from tests.unit.metadata.stack import MetadataStack, until


class Neighbour:
    """A second broker, as the controller sees one: it registers, and sends heartbeats while it runs."""

    def __init__(self, node: MetadataStack) -> None:
        self._node = node
        self._beating: asyncio.Task[None] | None = None
        self._epoch = -1

    async def register(self) -> None:
        types = request_types(ApiKey.BROKER_REGISTRATION)
        identity = self._node.identity
        assert identity is not None
        request = types.BrokerRegistrationRequest(
            broker_id=2,
            cluster_id=identity.cluster_id,
            incarnation_id=incarnation(2),
            listeners=[types.Listener(name="PLAINTEXT", host="127.0.0.1", port=9)],
            features=[
                types.Feature(name=name, min_supported_version=levels.min, max_supported_version=levels.max)
                for name, levels in SUPPORTED_FEATURES.items()
            ],
            rack=None,
            log_dirs=[log_dir(2)],
        )
        answer = await self._node.controller.call(ApiKey.BROKER_REGISTRATION, request)
        assert answer.error_code == 0
        self._epoch = answer.broker_epoch

    async def begin(self) -> None:
        await self._beat()
        self._beating = asyncio.create_task(self._beat_on())

    async def _beat_on(self) -> None:
        while True:
            await asyncio.sleep(1)
            await self._beat()

    async def _beat(self, **fields: bool) -> None:
        request = request_types(ApiKey.BROKER_HEARTBEAT).BrokerHeartbeatRequest(
            broker_id=2,
            broker_epoch=self._epoch,
            current_metadata_offset=self._node.controller.raft.log_end_offset,
            **fields,
        )
        assert (await self._node.controller.call(ApiKey.BROKER_HEARTBEAT, request)).error_code == 0

    async def end(self) -> None:
        """It is fenced."""
        assert self._beating is not None
        self._beating.cancel()
        await asyncio.gather(self._beating, return_exceptions=True)
        await self._beat(want_fence=True)


async def create(node: MetadataStack, replicas: Sequence[int], configs: Mapping[str, str]) -> None:
    types = request_types(ApiKey.CREATE_TOPICS)
    topic = types.CreatableTopic(
        name="t",
        num_partitions=-1,
        replication_factor=-1,
        assignments=[types.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)],
        configs=[types.CreatableTopicConfig(name=k, value=v) for k, v in configs.items()],
    )
    answer = await node.controller.call(ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=[topic]))
    assert answer.topics[0].error_code == 0


async def allow_unclean(node: MetadataStack) -> None:
    types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
    row = types.AlterableConfig(name="unclean.leader.election.enable", config_operation=0, value="true")
    resource = types.AlterConfigsResource(resource_type=2, resource_name="t", configs=[row])
    request = types.IncrementalAlterConfigsRequest(resources=[resource])
    answer = await node.controller.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
    assert answer.responses[0].error_code == 0


async def propose(node: MetadataStack, leader: int, isr: Sequence[int]) -> None:
    types = request_types(ApiKey.ALTER_PARTITION)
    topic = node.image.topics_by_name["t"]
    row = types.PartitionData(
        partition_index=0,
        leader_epoch=topic.partitions[0].leader_epoch,
        partition_epoch=topic.partitions[0].partition_epoch,
        new_isr_with_epochs=[types.BrokerState(broker_id=n) for n in isr],
    )
    request: Any = types.AlterPartitionRequest(
        broker_id=leader,
        broker_epoch=node.image.brokers[leader].epoch,
        topics=[types.TopicData(topic_id=topic.id, partitions=[row])],
    )
    answer = await node.controller.call(ApiKey.ALTER_PARTITION, request)
    assert answer.topics[0].partitions[0].error_code == 0


def partition(node: MetadataStack) -> PartitionRegistration:
    return node.image.topics_by_name["t"].partitions[0]


async def with_neighbour(host: SimHost) -> tuple[MetadataStack, Neighbour]:
    await host.start()
    node = stack(host)
    neighbour = Neighbour(node)
    await neighbour.register()
    await neighbour.begin()
    return node, neighbour


@pytest.mark.parametrize(("seconds", "least", "most"), [("20", 18, 21), ("300", 298, 301)])
def test_the_preferred_leader_comes_back_at_the_next_check(seconds: str, least: float, most: float) -> None:
    async def main(host: SimHost) -> None:
        began = asyncio.get_running_loop().time()
        node, neighbour = await with_neighbour(host)
        await create(node, [2, 1], {})
        await neighbour.end()
        assert partition(node).leader == 1
        await neighbour.begin()
        await propose(node, 1, [1, 2])
        assert partition(node).leader == 1, "nobody takes the lead from a leader that works"
        await until(lambda: partition(node).leader == 2)
        assert least < asyncio.get_running_loop().time() - began < most
        assert partition(node).isr == (1, 2)
        await neighbour.end()

    simulate(main, leader_imbalance_check_interval_seconds=seconds)


def test_a_preferred_replica_that_is_behind_or_gone_waits_for_the_check_after() -> None:
    async def main(host: SimHost) -> None:
        began = asyncio.get_running_loop().time()
        node, neighbour = await with_neighbour(host)
        await create(node, [2, 1], {})
        await neighbour.end()
        await asyncio.sleep(15)
        assert partition(node).leader == 1, "it is gone"
        await neighbour.begin()
        await asyncio.sleep(10)
        assert partition(node).leader == 1, "it is not in the ISR"
        before = partition(node)
        await asyncio.sleep(10)
        assert partition(node) == before, "a check that elects nobody writes nothing"
        await propose(node, 1, [1, 2])
        await until(lambda: partition(node).leader == 2)
        assert 39 < asyncio.get_running_loop().time() - began < 41, "the fourth check"
        await neighbour.end()

    simulate(main, leader_imbalance_check_interval_seconds="10")


def test_without_auto_rebalance_leaders_stay_where_they_are() -> None:
    async def main(host: SimHost) -> None:
        node, neighbour = await with_neighbour(host)
        await create(node, [2, 1], {})
        await neighbour.end()
        await neighbour.begin()
        await propose(node, 1, [1, 2])
        await asyncio.sleep(60)
        assert partition(node).leader == 1
        await neighbour.end()

    simulate(main, leader_imbalance_check_interval_seconds="5", auto_leader_rebalance_enable="false")


@pytest.mark.parametrize(("interval_ms", "most"), [("250", 0.6), ("30000", 31)])
def test_a_topic_that_allows_it_while_it_has_no_leader_gets_one_at_the_next_check(
    interval_ms: str, most: float
) -> None:
    async def main(host: SimHost) -> None:
        node, neighbour = await with_neighbour(host)
        await create(node, [2, 1], {})
        await propose(node, 2, [2])
        await neighbour.end()
        await asyncio.sleep(65)
        assert partition(node).leader == -1, "its topic does not allow it"
        await allow_unclean(node)
        allowed = asyncio.get_running_loop().time()
        await until(lambda: partition(node).leader == 1)
        assert asyncio.get_running_loop().time() - allowed < most
        now = partition(node)
        assert (now.isr, now.elr, now.leader_recovery_state) == ((1,), (), RECOVERING)
        assert node.controller.metrics.elections[ElectionKind.UNCLEAN] == 1

    simulate(main, unclean_leader_election_interval_ms=interval_ms)


def test_where_it_is_allowed_before_no_check_is_waited_for() -> None:
    async def main(host: SimHost) -> None:
        node, neighbour = await with_neighbour(host)
        await create(node, [2, 1], {"unclean.leader.election.enable": "true"})
        await propose(node, 2, [2])
        await neighbour.end()
        assert partition(node).leader == 1

    simulate(main)


def test_elections_are_counted_by_where_the_leader_came_from() -> None:
    async def main(host: SimHost) -> None:
        node, neighbour = await with_neighbour(host)
        counted = node.controller.metrics.elections
        await create(node, [2, 1], {"min.insync.replicas": "2"})
        assert counted == dict.fromkeys(ElectionKind, 0), "a new partition has its leader"
        await neighbour.end()
        assert partition(node).elr == (2,)
        assert counted == {ElectionKind.ISR: 1, ElectionKind.ELR: 0, ElectionKind.UNCLEAN: 0}
        await neighbour.begin()
        await node.lifecycle.close()
        await until(lambda: partition(node).leader == 2)
        assert counted == {ElectionKind.ISR: 1, ElectionKind.ELR: 1, ElectionKind.UNCLEAN: 0}
        await neighbour.end()

    simulate(main)


def test_a_check_changes_a_thousand_leaders_at_once_and_the_rest_after_them() -> None:
    count = MAX_ELECTIONS + 3
    h = with_partitions(count, leader=2)
    first = at_once(h.controller.elect(Election.PREFERRED))
    assert len(first) == MAX_ELECTIONS
    h.apply(first)
    assert leaders(h) == {1, 2}
    second = at_once(h.controller.elect(Election.PREFERRED))
    assert len(second) == count - MAX_ELECTIONS
    h.apply(second)
    assert leaders(h) == {1}
    assert at_once(h.controller.elect(Election.PREFERRED)) == []
