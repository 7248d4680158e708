"""One of two log directories fails at any call of the disk: the other one's partitions miss nothing."""

import asyncio
import copy
import errno
import logging
import random
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.caller import Caller
from odradek.sim.cluster import CrashKind, SimHost
from odradek.sim.disk import DiskFault
from odradek.sim.runtime import SimRuntime
from odradek.sim.scenario import HOST, PORT
from odradek.sim.volume import Volume
from odradek.sim.world import World
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


class CallFault(DiskFault):
    """The n-th call on the sick directory fails; -1: none does, they are only counted."""

    __slots__ = ("calls", "nth")

    def __init__(self, nth: int) -> None:
        super().__init__(errno.EIO, ())
        self.nth = nth
        self.calls = 0

    def strikes(self, operation: str, path: str, rng: random.Random) -> bool:
        if path != SICK and not path.startswith(SICK + "/"):
            return False
        self.calls += 1
        return self.calls - 1 == self.nth


def node_of(runtime: SimRuntime, data_dir: str) -> Node:
    return Node(NodeConfig.from_sources({}, SETTINGS)[0], runtime)


class Story:
    """A node with two log directories on a volume, and a client."""

    def __init__(self, volume: Volume | None = None, nth: int = -1) -> None:
        self.world = World(1)
        self.host = SimHost(self.world, HOST, node_of)
        if volume is not None:
            self.host.volume = volume
        self.calls_to_start = 0
        self.fault = CallFault(nth)
        self.host.faults.rules.append(self.fault)
        self.client = Caller(self.world.runtime("client"), (HOST, PORT), "client", random.Random(1))

    @property
    def node(self) -> Node:
        assert isinstance(self.host.node, Node)
        return self.host.node

    @property
    def disk(self) -> Volume:
        return self.host.volume

    def play(self, scenes: Callable[["Story"], Coroutine[Any, Any, None]]) -> "Story":
        async def all_of_it() -> None:
            await self.host.start()
            self.calls_to_start = self.fault.calls
            await scenes(self)
            self.client.close()

        self.world.run(all_of_it())
        return self

    async def create(self, name: str) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000)
        answer = await self.client.call(ApiKey.CREATE_TOPICS, request, version=7)
        assert answer.topics[0].error_code == E.NONE

    async def delete(self, name: str) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        request = types.DeleteTopicsRequest(topics=[types.DeleteTopicState(name=name)], timeout=30_000)
        answer = await self.client.call(ApiKey.DELETE_TOPICS, request, version=6)
        assert answer.responses[0].error_code == E.NONE

    async def alter(self, name: str, key: str, value: str) -> None:
        types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        config = types.AlterableConfig(name=key, config_operation=0, value=value)
        resource = types.AlterConfigsResource(resource_type=2, resource_name=name, configs=[config])
        request = types.IncrementalAlterConfigsRequest(resources=[resource])
        answer = await self.client.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request, version=1)
        assert answer.responses[0].error_code == E.NONE

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


async def make_topics(story: Story) -> None:
    for name in ("stay", "gone"):
        await story.create(name)
        await story.write_everywhere(name)


async def die_with_a_deletion_to_finish(story: Story) -> None:
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


async def change_everything(story: Story) -> None:
    """Topics created, altered, deleted and written to; then every chore, and a clean stop."""
    if not story.entries(WELL, "stay"):
        await make_topics(story)
    assert story.node.logs.directories[0].failure is None
    await story.alter("stay", "retention.ms", "123456789")
    await story.delete("gone")
    await story.create("new")
    for name in ("stay", "new"):
        await story.write_everywhere(name)
    await asyncio.sleep(CHORES_SECONDS)
    well = {tp: log for tp, log in story.node.logs.logs.items() if log.directory == WELL}
    assert all(log.failure is None for log in well.values())
    stays = [log for tp, log in well.items() if tp.topic == "stay"]
    assert len(stays) >= 1
    assert {log.config.retention_ms for log in stays} == {123456789}
    assert [str(tp) for tp in well if tp.topic == "new"] == story.entries(WELL, "new")
    assert len(story.entries(WELL, "new")) >= 1
    await story.node.stop()
    assert story.entries(WELL, "gone") == story.entries(WELL, "left") == []
    assert all(name.endswith("-stray") for name in story.entries(WELL, "stray"))
    assert ".kafka_cleanshutdown" in story.disk.find_directory(WELL).entries


async def find_everything(story: Story) -> None:
    """The disk is well again: all that the well directory acknowledged is there, and nothing else."""
    assert [directory.failure for directory in story.node.logs.directories] == [None, None]
    topics = {tp.topic for tp in story.node.logs.logs}
    assert topics == {"stay", "new"}
    for name in topics:
        for entry in story.entries(WELL, name):
            log = story.node.logs.logs[TopicPartition(name, int(entry.rpartition("-")[2]))]
            assert log.directory == WELL and log.log_end_offset >= 1
    await story.node.stop()


def used_volume() -> Volume:
    story = Story()
    story.play(die_with_a_deletion_to_finish)
    return story.disk


def sweep(volume: Volume, calls: int) -> None:
    """Play the story once for each of the first calls on the sick directory, which fails."""
    for nth in range(calls):
        story = Story(copy.deepcopy(volume), nth)
        try:
            story.play(change_everything)
            Story(story.disk).play(find_everything)
        except Exception as e:
            raise AssertionError(f"call {nth} of {calls} failed") from e


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """What is logged holds the errors, and they hold the nodes of all stories."""
    logging.disable()
    yield
    logging.disable(logging.NOTSET)


def test_a_directory_that_fails_at_any_call_takes_only_its_own_partitions_with_it() -> None:
    volume = used_volume()
    story = Story(copy.deepcopy(volume)).play(change_everything)
    assert story.fault.calls > 100
    sweep(volume, story.fault.calls)


def test_a_new_directory_that_cannot_be_formatted_leaves_the_others_in_use() -> None:
    story = Story().play(change_everything)
    assert story.calls_to_start > 10
    sweep(Volume(), story.calls_to_start)
