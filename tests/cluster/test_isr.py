"""A follower that the test plays falls behind, leaves the ISR, returns and joins again. Leaders, controllers
and their quorum are real, and the image of the active controller shows every change."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.client import Client, Producer
from odradek.client.connection import BrokerConnection
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.runtime.eager import new_event_loop
from odradek.runtime.real import RealRuntime
from odradek.wire import requests
from odradek.wire.api_keys import ApiKey
from tests.cluster.nodes import formatted, nodes_on_this_loop
from tests.cluster.raw_follower import RawFollower
from tests.cluster.test_metrics import scrape
from tests.hostile.names import RECORDS
from tests.unit.metadata.stack import until

TOPIC = "orders"
FOLLOWER = 9
PRODUCE_VERSION = 9
SETTINGS = {
    "replica.lag.time.max.ms": "2500",
    "replica.fetch.wait.max.ms": "100",
    "broker.session.timeout.ms": "3000",
}
MANAGER, PARTITION = "kafka_server_replicamanager", "kafka_cluster_partition"


class Cast:
    """Two real nodes. One leads the topic's only partition, the played broker follows it."""

    def __init__(self, leader: Node, controller: Node, follower: RawFollower, client: Client) -> None:
        self.leader = leader
        self.controller = controller
        self.follower = follower
        self.client = client

    @property
    def leader_id(self) -> int:
        return self.leader.config.node_id

    @property
    def isr(self) -> tuple[int, ...]:
        """As the active controller has committed it."""
        return self.controller.metadata.image.topics_by_name[TOPIC].partitions[0].isr

    async def until_in_sync(self, *isr: int) -> None:
        async with asyncio.timeout(20):
            await until(lambda: set(self.isr) == set(isr))
            await until(lambda: set(self.leader_isr) == set(isr))

    @property
    def leader_isr(self) -> tuple[int, ...]:
        partition = self.leader.replicas.partition(TopicPartition(TOPIC, 0))
        return partition.require_leader().isr.members

    async def set_min_isr(self, value: int) -> None:
        types = requests.incremental_alter_configs
        config = types.AlterableConfig(name="min.insync.replicas", config_operation=0, value=str(value))
        resource = types.AlterConfigsResource(resource_type=2, resource_name=TOPIC, configs=[config])
        await self.leader.controller.call(
            ApiKey.INCREMENTAL_ALTER_CONFIGS, types.IncrementalAlterConfigsRequest(resources=[resource])
        )
        partition = self.leader.replicas.partition(TopicPartition(TOPIC, 0))
        await until(lambda: partition.log.config.min_insync_replicas == value)


def play(folder: Path, story: Callable[[Cast], Coroutine[Any, Any, None]], *, remote: bool = False) -> None:
    """`remote`: the partition's leader is not the node of the active controller."""
    plan = formatted(folder, 2, SETTINGS)

    async def main() -> None:
        async with nodes_on_this_loop(plan) as nodes, Client(plan.bootstrap_servers) as client:
            (controller,) = [node for node in nodes if node.quorum.is_active]
            (other,) = [node for node in nodes if node is not controller]
            leader = other if remote else controller
            follower = RawFollower(FOLLOWER, leader, TOPIC)
            try:
                await follower.join()
                await create(leader, leader.config.node_id, FOLLOWER)
                cast = Cast(leader, controller, follower, client)
                await cast.until_in_sync(cast.leader_id, FOLLOWER)
                await story(cast)
            finally:
                await follower.close()

    with asyncio.Runner(loop_factory=new_event_loop) as runner:
        runner.run(main())


async def create(node: Node, *replicas: int) -> None:
    types = requests.create_topics
    assignment = types.CreatableReplicaAssignment(partition_index=0, broker_ids=replicas)
    topic = types.CreatableTopic(
        name=TOPIC, num_partitions=-1, replication_factor=-1, assignments=[assignment], configs=[]
    )
    request = types.CreateTopicsRequest(topics=[topic], timeout=30_000, validate_only=False)
    response = await node.controller.call(ApiKey.CREATE_TOPICS, request)
    assert response.topics[0].error_code == 0, response.topics[0].error_message
    await until(lambda: TopicPartition(TOPIC, 0) in node.replicas.partitions)


@pytest.mark.parametrize("remote", [False, True], ids=["controller here", "controller elsewhere"])
def test_a_follower_falls_behind_leaves_the_isr_returns_and_joins_again(tmp_path: Path, remote: bool) -> None:
    async def story(cast: Cast) -> None:
        follower, leader = cast.follower, cast.leader
        async with Producer(cast.client) as producer, Producer(cast.client, acks=1) as unsafe:
            first = await producer.send(TOPIC, b"first")
            async with asyncio.timeout(10):
                await until(lambda: leader.replicas.partition(TopicPartition(TOPIC, 0)).log.log_end_offset)
                row = await follower.fetch(0)
            assert row.records and row.high_watermark == 0 and not first.done()
            assert (await follower.fetch(1)).high_watermark == 1
            await first
            values = await scrape(leader)
            assert values[f"{MANAGER}_underreplicatedpartitions"] == 0

            await (await unsafe.send(TOPIC, b"second"))
            await cast.until_in_sync(cast.leader_id)
            values = await scrape(leader)
            assert values[f"{MANAGER}_underreplicatedpartitions"] == 1
            assert values[f"{MANAGER}_isrshrinks_total"] == 1
            assert values[f"{PARTITION}_insyncreplicascount"] == 1
            assert values[f"{PARTITION}_underreplicated"] == 1
            await (await producer.send(TOPIC, b"third"))

            assert (await follower.fetch(1)).records
            await asyncio.sleep(0)
            assert cast.isr == (cast.leader_id,), "it lacks committed records"
            assert (await follower.fetch(3)).high_watermark == 3
            await cast.until_in_sync(cast.leader_id, FOLLOWER)
            values = await scrape(leader)
            assert values[f"{MANAGER}_isrexpands_total"] == 1
            assert values[f"{MANAGER}_failedisrupdates_total"] == 0
            assert values[f"{PARTITION}_insyncreplicascount"] == values[f"{PARTITION}_replicascount"] == 2
            assert values[f"{PARTITION}_underreplicated"] == 0

    play(tmp_path, story, remote=remote)


async def produce(connection: BrokerConnection, acks: int = -1, timeout_ms: int = 30_000) -> ErrorCode:
    """One record. Nothing is tried again."""
    types = requests.produce
    row = types.PartitionProduceData(index=0, records=RECORDS)
    topic = types.TopicProduceData(name=TOPIC, partition_data=[row])
    request = types.ProduceRequest(transactional_id=None, acks=acks, timeout=timeout_ms, topic_data=[topic])
    response = await connection.send(ApiKey.PRODUCE, request, PRODUCE_VERSION)
    return ErrorCode(response.responses[0].partition_responses[0].error_code)


def test_min_insync_replicas_decides_what_is_accepted_and_shown(tmp_path: Path) -> None:
    async def story(cast: Cast) -> None:
        connection, leader = cast.follower.connection, cast.leader
        assert await produce(connection, acks=1) is ErrorCode.NONE
        values = await scrape(leader)
        assert values[f"{MANAGER}_atminisrpartitioncount"] == values[f"{PARTITION}_atminisr"] == 0
        await cast.set_min_isr(2)
        values = await scrape(leader)
        assert values[f"{MANAGER}_atminisrpartitioncount"] == values[f"{PARTITION}_atminisr"] == 1
        assert values[f"{MANAGER}_underminisrpartitioncount"] == values[f"{PARTITION}_underminisr"] == 0
        waits = asyncio.ensure_future(produce(connection, timeout_ms=1))
        assert await waits is ErrorCode.REQUEST_TIMED_OUT, "appended, but the follower does not fetch"

        await cast.until_in_sync(cast.leader_id)
        values = await scrape(leader)
        assert values[f"{MANAGER}_atminisrpartitioncount"] == values[f"{PARTITION}_atminisr"] == 0
        assert values[f"{MANAGER}_underminisrpartitioncount"] == values[f"{PARTITION}_underminisr"] == 1
        assert await produce(connection) is ErrorCode.NOT_ENOUGH_REPLICAS
        assert (await cast.follower.fetch(0)).high_watermark == 0, "nothing is committed under min ISR"
        await cast.set_min_isr(1)
        assert await produce(connection) is ErrorCode.NONE
        assert (await cast.follower.fetch(0)).high_watermark == 3

    play(tmp_path, story)


def test_records_are_deleted_when_the_follower_has_deleted_them(tmp_path: Path) -> None:
    async def story(cast: Cast) -> None:
        async def delete(offset: int, timeout_ms: int) -> tuple[ErrorCode, int]:
            row = types.DeleteRecordsPartition(partition_index=0, offset=offset)
            topic = types.DeleteRecordsTopic(name=TOPIC, partitions=[row])
            request = types.DeleteRecordsRequest(topics=[topic], timeout=timeout_ms)
            answer = await client.send(ApiKey.DELETE_RECORDS, request)
            (result,) = answer.topics[0].partitions
            return ErrorCode(result.error_code), result.low_watermark

        types, follower = requests.delete_records, cast.follower
        client = await BrokerConnection.open(RealRuntime(), *cast.leader.address, client_id="deletes")
        log = cast.leader.replicas.partition(TopicPartition(TOPIC, 0)).log
        try:
            for _ in range(4):
                assert await produce(client, acks=1) is ErrorCode.NONE
            assert (await follower.fetch(4)).high_watermark == 4
            assert await delete(2, timeout_ms=1) == (ErrorCode.REQUEST_TIMED_OUT, 0)
            assert log.log_start_offset == 2, "the leader has deleted them"
            deleting = asyncio.ensure_future(delete(3, timeout_ms=60_000))
            async with asyncio.timeout(10):
                await until(lambda: log.log_start_offset == 3)
            assert (await follower.fetch(4, log_start_offset=2)).log_start_offset == 3
            assert not deleting.done()
            await follower.fetch(4, log_start_offset=3)
            assert await deleting == (ErrorCode.NONE, 3)
            await follower.lifecycle.close()
            async with asyncio.timeout(30):
                await cast.leader.metadata.until(lambda image: image.brokers[FOLLOWER].fenced)
            assert await delete(4, timeout_ms=60_000) == (ErrorCode.NONE, 4), (
                "a dead replica is not waited for"
            )
        finally:
            client.close()

    play(tmp_path, story)
