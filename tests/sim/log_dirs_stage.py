"""A node with two log directories and a client, for tests with failures of one or both."""

import random
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.stories.single_node import HOST
from odradek.sim.stories.story import PORT
from odradek.sim.workloads.caller import Caller
from odradek.sim.world.cluster import CrashKind, SimHost
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.volume import Volume
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

E = ErrorCode
WELL, SICK = "/well", "/sick"
DELAY_MS = 1000
CHORES_SECONDS = 5
PARTITIONS = 3
SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:{PORT + 1}",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": f"{WELL},{SICK}",
    "log.segment.delete.delay.ms": str(DELAY_MS),
    "log.flush.interval.messages": "1",
    "log.flush.offset.checkpoint.interval.ms": "1000",
    "log.flush.start.offset.checkpoint.interval.ms": "1000",
    "replica.high.watermark.checkpoint.interval.ms": "1000",
    "log.retention.check.interval.ms": "1000",
}


def node_of(runtime: SimRuntime, data_dir: str) -> Node:
    return Node(NodeConfig.from_sources({}, SETTINGS)[0], runtime)


def halting_node_of(runtime: SimRuntime, data_dir: str) -> Node:
    """A node that lets others run after every step of its long work."""
    node = node_of(runtime, data_dir)
    node.slices.resize(1, 1)
    return node


class LogDirsStage:
    """A node with two log directories on a volume, and a client."""

    def __init__(
        self,
        volume: Volume | None = None,
        fault: DiskFault | None = None,
        make_node: Callable[[SimRuntime, str], Node] = node_of,
    ) -> None:
        self.world = World(1)
        self.host = SimHost(self.world, HOST, make_node)
        if volume is not None:
            self.host.volume = volume
        if fault is not None:
            self.host.faults.rules.append(fault)
        self.client = Caller(self.world.runtime("client"), [(HOST, PORT)], "client", random.Random(1))

    @property
    def node(self) -> Node:
        assert isinstance(self.host.node, Node)
        return self.host.node

    @property
    def disk(self) -> Volume:
        return self.host.volume

    def play(self, scenes: Callable[["LogDirsStage"], Coroutine[Any, Any, None]]) -> "LogDirsStage":
        async def all_of_it() -> None:
            await self.start()
            await scenes(self)
            self.client.close()

        self.world.run(all_of_it())
        return self

    async def start(self) -> None:
        await self.host.start()

    async def change(self, api_key: ApiKey, request: Any, *, version: int, rows: str) -> None:
        answer = await self.client.call(api_key, request, version=version)
        assert getattr(answer, rows)[0].error_code == E.NONE

    async def create(self, name: str) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000)
        await self.change(ApiKey.CREATE_TOPICS, request, version=7, rows="topics")

    async def delete(self, name: str) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name=name)], timeout=30_000)
        await self.change(ApiKey.DELETE_TOPICS, request, version=6, rows="responses")

    async def alter(self, name: str, key: str, value: str) -> None:
        types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        config = types.AlterableConfig(name=key, config_operation=0, value=value)
        resource = types.AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
        request = types.IncrementalAlterConfigsRequest(resources=[resource])
        await self.change(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version=1, rows="responses")

    async def write(self, name: str, partition: int) -> ErrorCode:
        types = request_types(ApiKey.PRODUCE)
        records = bytes(build_batch([(self.host.clock.now_ms(), b"k", b"v", ())]))
        data = types.PartitionProduceData(index=partition, records=records)
        topic = types.TopicProduceData(name=name, partition_data=[data])
        request = types.ProduceRequest(acks=-1, timeout=5_000, topic_data=[topic])
        answer = await self.client.call(ApiKey.PRODUCE, request, version=9)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def write_everywhere(self, name: str) -> None:
        """Whatever the sick directory says: what lies in the well one is acknowledged."""
        for partition in range(PARTITIONS):
            code = await self.write(name, partition)
            if str(TopicPartition(name, partition)) in self.disk.find_directory(WELL).entries:
                assert code == E.NONE, f"{name}-{partition}: {code!r}"

    def entries(self, directory: str, topic: str) -> list[str]:
        found = self.disk.find_directory(directory).entries
        return sorted(name for name in found if name.startswith(f"{topic}-"))


async def make_topics(story: LogDirsStage) -> None:
    for name in ("stay", "gone"):
        await story.create(name)
        await story.write_everywhere(name)


async def die_with_a_deletion_to_finish(story: LogDirsStage) -> None:
    await make_topics(story)
    await story.create("left")
    await story.delete("left")
    story.host.crash(CrashKind.KILL)
    for directory in (WELL, SICK):
        story.disk.mkdir(f"{directory}/stray-0")
        lacking, damaged = (f"{directory}/{story.entries(directory, name)[0]}" for name in ("stay", "gone"))
        for name in ("partition.metadata", "leader-epoch-checkpoint"):
            story.disk.unlink(f"{lacking}/{name}")
        topic_id = story.disk.find_file(f"{damaged}/partition.metadata")
        position = len("version: 0\ntopic_id: ")
        topic_id.write(position, b"B" if topic_id.data.read(position, 1) == b"A" else b"A")


def used_volume() -> Volume:
    story = LogDirsStage()
    story.play(die_with_a_deletion_to_finish)
    return story.disk
