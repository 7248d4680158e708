"""The collector does not look at what lives long; what goes, goes without it."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from odradek.broker.network.connection import Connection
from odradek.cli.node.heap import LOOK_S, MANY_LOGS, keep_frozen
from odradek.log.log import Log
from odradek.log.segments.segment import Segment
from odradek.replication.partition import Partition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.stage import staged
from tests.hostile.world import World


@contextmanager
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def alive(kind: type) -> int:
    return sum(type(found) is kind for found in gc.get_objects())


@pytest.mark.parametrize("kind", [Log, Partition, Segment])
def test_a_deleted_partition_needs_no_collector(tmp_path: Path, kind: type) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client:
        world = World.__new__(World)
        world.place, world.topic_ids = stage, {}
        world.create_topics(client, ["warm"])
        stage.wait_until_idle()
        with uncollected():
            before = alive(kind)
            world.create_topics(client, ["short-lived"], 20)
            stage.wait_until_idle()
            assert alive(kind) == before + 20
            state = request_types(ApiKey.DELETE_TOPICS).DeleteTopicState(name="short-lived")
            world.call(client, ApiKey.DELETE_TOPICS, 6, topics=[state], timeout=30_000)
            stage.loop.pass_time(120)
            stage.wait_until_idle()
            stage.loop.pass_time(2)
            stage.wait_until_idle()
            assert alive(kind) == before


def test_a_closed_connection_needs_no_collector(tmp_path: Path) -> None:
    with staged(tmp_path / "data") as stage, stage.client() as client:
        world = World.__new__(World)
        world.place, world.topic_ids = stage, {}
        world.create_topics(client, ["warm"])
        with uncollected():
            before = alive(Connection)
            for _ in range(5):
                with stage.client() as another:
                    world.call(another, ApiKey.METADATA, 12, topics=None)
            assert alive(Connection) == before


def test_the_heap_is_frozen_when_many_logs_were_opened() -> None:
    opened, frozen = [0], []

    async def scenario() -> None:
        keeping = asyncio.create_task(keep_frozen(lambda: opened[0], lambda: frozen.append(opened[0])))
        await asyncio.sleep(0)
        for opened[0] in (MANY_LOGS - 1, MANY_LOGS, MANY_LOGS + 1, 3 * MANY_LOGS):
            await asyncio.sleep(2 * LOOK_S)
        keeping.cancel()

    asyncio.run(scenario())
    assert frozen == [MANY_LOGS, 3 * MANY_LOGS]
