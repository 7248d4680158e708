"""What follows the metadata log publishes only what is committed, with no controller to ask."""

import asyncio

import pytest

from odradek.core.errors import ErrorCode, KafkaError
from odradek.metadata.image import EMPTY_IMAGE
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.offset_waiters import OffsetWaiters
from odradek.metadata.publisher import MetadataPublisher
from odradek.raft.driver import RaftDriver
from odradek.raft.settings import metadata_log_config, static_voters
from odradek.sim.world.cluster import SimHost
from odradek.sim.world.world import World
from tests.unit.metadata.stack import MetadataStack
from tests.unit.raft.drivers import open_driver


def test_a_log_is_loaded_and_published_without_a_controller() -> None:
    world = World(7)
    host = SimHost(world, "h", MetadataStack)

    async def main() -> None:
        await host.start()
        node = host.node
        assert isinstance(node, MetadataStack) and node.identity is not None
        await node.create_topic("a", 3)
        staged = node.controller.controller.image
        config, runtime = node.config, node.runtime
        await node.controller.stop()
        raft = open_driver(
            runtime,
            config.metadata_log_dir,
            metadata_log_config(config),
            node_id=config.node_id,
            directory_id=node.identity.metadata_directory_id,
            static_voters=static_voters(config),
        )
        publisher = MetadataPublisher(node.slices)
        loader = MetadataLoader(runtime, config, raft, publisher, node.slices)
        await loader.load()
        assert publisher.kraft_version == 1
        await asyncio.sleep(0.1)
        assert publisher.image is EMPTY_IMAGE, "how far the log is committed is not known yet"
        commit(raft, raft.log_end_offset)
        await loader.when_followed(raft.log_end_offset - 1)
        assert publisher.image == staged
        assert publisher.image.topics_by_name["a"].partitions.keys() == {0, 1, 2}
        await loader.finish()
        await raft.close()

    world.run(main())


def commit(raft: RaftDriver, offset: int) -> None:
    raft.log.advance_high_watermark(offset)
    raft.on_committed(offset)


def test_waiters_are_released_in_the_order_of_their_offsets() -> None:
    async def main() -> None:
        waiters = OffsetWaiters()
        later, sooner = waiters.wait(9), waiters.wait(4)
        waiters.release(3)
        assert not sooner.done()
        waiters.release(8)
        assert sooner.done() and not later.done()

    asyncio.run(main())


def test_only_those_behind_the_last_commit_are_refused() -> None:
    async def main() -> None:
        waiters = OffsetWaiters()
        committed, lost = waiters.wait(4), waiters.wait(5)
        waiters.fail(5, KafkaError(ErrorCode.KAFKA_STORAGE_ERROR))
        with pytest.raises(KafkaError):
            await lost
        waiters.release(4)
        await committed

    asyncio.run(main())
