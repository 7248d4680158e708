"""Thousands of partitions lose their place at once: a log directory fails, a broker leaves or is silent."""

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from odradek.broker.node import Node
from odradek.core.errors import ErrorCode
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.hostile.cases import taken
from tests.hostile.limits import LIMIT
from tests.hostile.stage import BEGINNING_MS, staged
from tests.hostile.world import SETTINGS, StagedWorld, memory_directory, staged_world
from tests.support.batches import batch


@contextmanager
def world_of_two_directories() -> Iterator[StagedWorld]:
    """The second directory holds half of all partitions."""
    with (
        TemporaryDirectory(prefix="odradek-hostile-", dir=memory_directory()) as directory,
        staged(Path(directory) / "well", log_dirs=f"{directory}/well,{directory}/sick", **SETTINGS) as stage,
    ):
        yield StagedWorld(stage)


def _heartbeat(node: Node) -> Any:
    return request_types(ApiKey.BROKER_HEARTBEAT).BrokerHeartbeatRequest(
        broker_id=1,
        broker_epoch=node.lifecycle.broker_epoch,
        current_metadata_offset=node.metadata.image.offset,
        cordoned_log_dirs=(),
    )


def test_a_directory_of_many_partitions_fails_in_slices() -> None:
    with world_of_two_directories() as world:
        stage, node = world.stage, world.stage.node
        stage.wait_until_idle()
        sick = node.logs.directories[1]
        lost = [tp for tp, log in node.logs.logs.items() if log.directory == sick.path]
        assert len(lost) > 1_000
        with stage.work.counting():
            stage.loop.call_soon(
                lambda: node.logs.logs[lost[0]].fail(OSError(errno.EIO, "I/O error"), "testing")
            )
            stage.until(lambda: len(node.replicas.offline) == len(lost))
            stage.until(lambda: len(node.metadata.image.brokers[1].log_dirs) == 1)
            stage.wait_until_idle()
            taken(world, "a failed directory").check()
        image = node.metadata.image
        assert all(image.topics_by_name[tp.topic].partitions[tp.partition].leader == -1 for tp in lost)


def test_nothing_is_written_into_a_failed_directory_while_it_is_taken_offline() -> None:
    with world_of_two_directories() as world:
        stage, node = world.stage, world.stage.node
        lost = [tp for tp, log in node.logs.logs.items() if log.directory == node.logs.directories[1].path]
        last = [tp for tp in lost if tp.topic == "wide"][-1]
        opened = node.logs.logs[last]
        with stage.client() as client:
            opened_end = opened.log_end_offset
            stage.loop.call_soon(
                lambda: node.logs.logs[lost[0]].fail(OSError(errno.EIO, "I/O error"), "testing")
            )
            stage.turn()
            assert last in node.replicas.partitions  # its turn has not come
            types = request_types(ApiKey.PRODUCE)
            data = types.PartitionProduceData(
                index=last.partition, records=batch([b"late"], timestamp=BEGINNING_MS)
            )
            answer = world.call(
                client,
                ApiKey.PRODUCE,
                9,
                acks=1,
                timeout=30_000,
                topic_data=[types.TopicProduceData(name=last.topic, partition_data=[data])],
            )
            code = answer.responses[0].partition_responses[0].error_code
            assert code == ErrorCode.KAFKA_STORAGE_ERROR
            assert opened.log_end_offset == opened_end
        stage.until(lambda: last in node.replicas.offline)


def test_a_broker_of_many_partitions_leaves_in_slices() -> None:
    with staged_world() as world:
        stage, node = world.stage, world.stage.node
        stage.wait_until_idle()
        with stage.work.counting():
            stage.finish(node.lifecycle.shut_down())
            stage.wait_until_idle()
            measured = taken(world, "a controlled shutdown")
        assert node.metadata.image.brokers[1].fenced
        assert measured.worst.events <= LIMIT, measured.worst


def test_a_silent_broker_of_many_partitions_is_fenced_and_comes_back_in_slices() -> None:
    with staged_world() as world:
        stage, node = world.stage, world.stage.node
        stage.finish(node.lifecycle.close())
        stage.wait_until_idle()
        with stage.work.counting():
            stage.until(lambda: node.metadata.image.brokers[1].fenced)
            stage.wait_until_idle()
            taken(world, "a fencing").check()
        assert node.metadata.image.topics_by_name["wide"].partitions[0].leader == -1
        with stage.work.counting():
            answer = stage.finish(node.controller.call(ApiKey.BROKER_HEARTBEAT, _heartbeat(node)))
            assert not answer.is_fenced
            stage.wait_until_idle()
            measured = taken(world, "a return")
        assert node.metadata.image.topics_by_name["wide"].partitions[0].leader == 1
        assert measured.worst.events <= LIMIT, measured.worst
