"""The periodic work of a node on virtual time: when it is due, and once if there is no interval."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.core.configs import NodeConfig
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.log import names
from odradek.log.checkpoints import parse_offsets
from odradek.records.batch import build_batch
from odradek.sim.stories.single_node import HOST
from odradek.sim.stories.story import PORT
from odradek.sim.workloads.caller import Caller
from odradek.sim.world.cluster import DATA_DIR, SimHost
from odradek.sim.world.runtime import SimRuntime
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

T0 = TopicPartition("t", 0)
NEVER = str((1 << 31) - 1)
INTERVALS = {
    names.RECOVERY_POINT_CHECKPOINT: "log.flush.offset.checkpoint.interval.ms",
    names.LOG_START_CHECKPOINT: "log.flush.start.offset.checkpoint.interval.ms",
    names.HIGH_WATERMARK_CHECKPOINT: "replica.high.watermark.checkpoint.interval.ms",
}
SETTINGS = {
    "node.id": "1",
    "process.roles": "broker,controller",
    "listeners": f"PLAINTEXT://{HOST}:{PORT},CONTROLLER://{HOST}:{PORT + 1}",
    "controller.listener.names": "CONTROLLER",
    "log.dirs": DATA_DIR,
    "log.flush.interval.messages": "1",
    "log.initial.task.delay.ms": "30000",
    **dict.fromkeys(INTERVALS.values(), NEVER),
}


class Story:
    """A node with a topic, and how long it has been up."""

    def __init__(self, **settings: str) -> None:
        self.world = World(1)
        config, _ = NodeConfig.from_sources(SETTINGS, settings)

        def node(runtime: SimRuntime, data_dir: str) -> Node:
            return Node(config, runtime)

        self.host = SimHost(self.world, HOST, node)
        self.client = Caller(self.world.runtime("client"), [(HOST, PORT)], "client", random.Random(1))
        self._started = 0.0

    def play(self, scenes: Callable[["Story"], Coroutine[Any, Any, None]]) -> None:
        async def all_of_it() -> None:
            await self.host.start()
            self._started = self.world.loop.time()
            types = request_types(ApiKey.CREATE_TOPICS)
            topic = types.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
            request = types.CreateTopicsRequest(topics=[topic], timeout=30_000)
            await self.client.call(ApiKey.CREATE_TOPICS, request, version=7)
            await scenes(self)
            self.client.close()

        self.world.run(all_of_it())

    async def until(self, seconds: float) -> None:
        """So long after the node was ready."""
        await asyncio.sleep(self._started + seconds - self.world.loop.time())

    async def move(self) -> None:
        """One more record, the one before deleted: each of the three offsets goes up."""
        types = request_types(ApiKey.PRODUCE)
        records = bytes(build_batch([(self.host.clock.now_ms(), b"k", b"v", ())]))
        data = types.PartitionProduceData(index=0, records=records)
        topic = types.TopicProduceData(name="t", partition_data=[data])
        request = types.ProduceRequest(acks=-1, timeout=5_000, topic_data=[topic])
        answer = await self.client.call(ApiKey.PRODUCE, request, version=9)
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        types = request_types(ApiKey.DELETE_RECORDS)
        part = types.DeleteRecordsPartition(partition_index=0, offset=-1)
        named = types.DeleteRecordsTopic(name="t", partitions=[part])
        request = types.DeleteRecordsRequest(topics=[named], timeout=5_000)
        answer = await self.client.call(ApiKey.DELETE_RECORDS, request, version=2)
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE

    def told(self, checkpoint: str) -> int | None:
        """What a checkpoint says of the partition; None where it has none, or there is none."""
        try:
            data = self.host.volume.find_file(f"{DATA_DIR}/{checkpoint}").data
        except FileNotFoundError:
            return None
        return parse_offsets(data.read(0, data.size)).get(T0)


@pytest.mark.parametrize("checkpoint", INTERVALS)
def test_a_checkpoint_is_written_at_its_interval(checkpoint: str) -> None:
    async def scenes(story: Story) -> None:
        await story.move()
        for moves in (1, 2):
            before = story.told(checkpoint)
            await story.until(7 * moves - 0.5)
            assert story.told(checkpoint) == before
            await story.until(7 * moves + 0.5)
            assert story.told(checkpoint) == moves
            assert [story.told(other) for other in INTERVALS if other != checkpoint] == [None, None]
            await story.move()

    Story(**{INTERVALS[checkpoint]: "7000"}).play(scenes)


@pytest.mark.parametrize("checkpoint", [names.RECOVERY_POINT_CHECKPOINT, names.LOG_START_CHECKPOINT])
def test_an_interval_of_0_is_once_after_the_initial_delay(checkpoint: str) -> None:
    async def scenes(story: Story) -> None:
        await story.move()
        await story.until(29)
        assert story.told(checkpoint) is None
        await story.until(31)
        assert story.told(checkpoint) == 1
        await story.move()
        await story.until(100)
        assert story.told(checkpoint) == 1

    Story(**{INTERVALS[checkpoint]: "0"}).play(scenes)


@pytest.mark.parametrize("interval_ms", ["0", "-1"])
def test_high_watermarks_without_an_interval_are_written_once_at_the_start(interval_ms: str) -> None:
    checkpoint = names.HIGH_WATERMARK_CHECKPOINT

    async def scenes(story: Story) -> None:
        await story.move()
        assert checkpoint in story.host.volume.find_directory(DATA_DIR).entries
        await story.until(100)
        assert story.told(checkpoint) is None

    Story(**{INTERVALS[checkpoint]: interval_ms}).play(scenes)


@pytest.mark.parametrize("interval_ms", ["0", "-1"])
def test_without_an_interval_flushes_by_time_are_looked_for_once(interval_ms: str) -> None:
    async def scenes(story: Story) -> None:
        assert isinstance(story.host.node, Node)
        log = story.host.node.logs.logs[T0]
        await story.move()
        await story.until(29)
        assert log.recovery_point == 0
        await story.until(31)
        assert log.recovery_point == 1
        await story.move()
        await story.until(100)
        assert log.recovery_point == 1

    settings = {"log.flush.interval.messages": "1000", "log.flush.interval.ms": "1000"}
    Story(**settings, **{"log.flush.scheduler.interval.ms": interval_ms}).play(scenes)


def test_retention_is_looked_at_at_its_interval() -> None:
    async def scenes(story: Story) -> None:
        assert isinstance(story.host.node, Node)
        log = story.host.node.logs.logs[T0]
        await story.move()
        await story.until(6.5)
        assert log.segments.first.base_offset == 0
        await story.until(7.5)
        assert log.segments.first.base_offset == 1

    Story(**{"log.retention.ms": "1000", "log.retention.check.interval.ms": "7000"}).play(scenes)
