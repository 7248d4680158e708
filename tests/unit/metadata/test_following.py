"""A node that follows: what is committed, one delta for each advance, the same image as every other node."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any
from uuid import UUID

import pytest

from odradek.core.configs import NodeConfig
from odradek.core.errors import ExhaustedError, KafkaError
from odradek.log.log import Log
from odradek.metadata import loader
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.digest import image_digest
from odradek.metadata.image import EMPTY_IMAGE
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    ConfigRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
    encode_record,
)
from odradek.raft.snapshots import SnapshotError, SnapshotId
from odradek.runtime.slices import FEW, Paced, Slices
from odradek.sim.world.world import World
from tests.unit.metadata.scripted_quorum import ScriptedQuorum, ScriptedReplica


class Follower:
    """A loader without a controller, and the deltas that it published."""

    def __init__(self, replica: ScriptedReplica, **settings: str) -> None:
        given = {name.replace("_", "."): value for name, value in settings.items()}
        config, _ = NodeConfig.from_sources({}, given)
        self.replica = replica
        self.slices = Slices()
        self.publisher = MetadataPublisher(self.slices)
        self.loader = MetadataLoader(replica.runtime, config, replica, self.publisher, self.slices)
        self.deltas: list[MetadataDelta] = []
        self.publisher.subscribe(self._note)

    def _note(self, delta: MetadataDelta) -> Paced[None]:
        self.deltas.append(delta)
        yield FEW

    @property
    def topics(self) -> list[str]:
        return sorted(self.publisher.image.topics_by_name)

    @property
    def offset(self) -> int:
        return self.publisher.image.offset


class Stage:
    def __init__(self, world: World, **settings: str) -> None:
        self.quorum = ScriptedQuorum(world)
        self.settings = settings
        self.nodes = [Follower(replica, **settings) for replica in self.quorum.replicas.values()]

    async def load(self) -> "Stage":
        for node in self.nodes:
            await node.loader.load()
        return self

    def append(self, *records: MetadataRecord) -> int:
        now_ms = self.quorum.leader.runtime.clock.now_ms()
        return self.quorum.leader.append([encode_record(record) for record in records], now_ms)


def simulate(main: Callable[[Stage], Coroutine[Any, Any, None]], **settings: str) -> None:
    world = World(11)

    async def run() -> None:
        stage = await Stage(world, **settings).load()
        await main(stage)
        for node in stage.nodes:
            await node.loader.finish()

    world.run(run())


VERSION = FeatureLevelRecord(name="metadata.version", feature_level=30)


def topic(n: int) -> TopicRecord:
    return TopicRecord(name=f"t{n}", topic_id=UUID(int=n + 1000))


def partition(n: int, index: int = 0) -> PartitionRecord:
    return PartitionRecord(
        partition_id=index,
        topic_id=UUID(int=n + 1000),
        replicas=(1,),
        isr=(1,),
        leader=1,
        leader_epoch=0,
        partition_epoch=0,
        directories=(UUID(int=500),),
    )


def test_only_what_is_committed_is_published() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(topic(0))
        stage.quorum.commit()
        stage.append(topic(1))
        stage.quorum.replicate()
        await asyncio.sleep(0.01)
        assert [node.topics for node in stage.nodes] == [["t0"]] * 3
        stage.quorum.commit()
        assert [node.topics for node in stage.nodes] == [["t0", "t1"]] * 3

    simulate(main)


def test_an_advance_of_the_high_watermark_is_one_delta_however_many_batches_it_holds() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.quorum.commit()
        for n in range(5):
            stage.append(topic(n), partition(n))
            stage.quorum.leader.append_control()
        last_offset = stage.append(RemoveTopicRecord(topic_id=UUID(int=1000)))
        stage.quorum.commit()
        for node in stage.nodes:
            assert len(node.deltas) == 2
            assert node.deltas[1].image.offset == last_offset
            assert node.topics == ["t1", "t2", "t3", "t4"]
            assert len(node.deltas[1].changed_partitions) == 4

    simulate(main)


def test_a_control_batch_moves_the_offset_and_nothing_else() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(topic(0))
        stage.quorum.commit()
        before = stage.nodes[1].publisher.image
        stage.quorum.elect(2)
        stage.quorum.commit()
        after = stage.nodes[1].publisher.image
        assert (after.offset, after.epoch) == (before.offset + 1, 2)
        assert after.topics_by_id is before.topics_by_id

    simulate(main)


def test_records_of_a_transaction_are_held_and_the_offset_stays_before_it() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        before = stage.append(topic(0), BeginTransactionRecord(name="x"), topic(1)) - 2
        stage.append(topic(2))
        stage.quorum.commit()
        node = stage.nodes[2]
        assert (node.topics, node.offset) == (["t0"], before)
        published = len(node.deltas)
        stage.append(partition(2))
        stage.quorum.commit()
        assert (node.topics, node.offset, len(node.deltas)) == (["t0"], before, published)
        end = stage.append(EndTransactionRecord())
        stage.quorum.commit()
        assert (node.topics, node.offset) == (["t0", "t1", "t2"], end)
        assert len(node.deltas) == published + 1

    simulate(main)


def test_an_aborted_transaction_leaves_nothing() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(BeginTransactionRecord(name="x"), topic(1))
        stage.quorum.commit()
        end = stage.append(AbortTransactionRecord(reason="y"), topic(2))
        stage.quorum.commit()
        assert [(node.topics, node.offset) for node in stage.nodes] == [(["t2"], end)] * 3

    simulate(main)


def test_no_snapshot_is_taken_inside_a_transaction() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(BeginTransactionRecord(name="x"))
        for n in range(40):
            stage.append(*(topic(100 * n + i) for i in range(60)))
            stage.quorum.commit()
            await asyncio.sleep(0.01)
        snapshots = stage.nodes[1].replica.snapshots
        assert snapshots.newest is None
        stage.append(EndTransactionRecord())
        stage.quorum.commit()
        await asyncio.sleep(1)
        assert snapshots.newest == SnapshotId(stage.nodes[1].offset + 1, 1)

    simulate(main, metadata_log_max_record_bytes_between_snapshots="2000")


def test_the_same_offset_has_the_same_digest_however_a_node_came_there() -> None:
    async def main(stage: Stage) -> None:
        digests: dict[int, set[str]] = {}

        def look() -> None:
            for node in stage.nodes:
                image = node.publisher.image
                digests.setdefault(image.offset, set()).add(image_digest(image))

        stage.quorum.elect(1)
        stage.append(VERSION)
        stage.quorum.commit()
        for n in range(30):
            stage.append(topic(n), partition(n), partition(n, 1))
            stage.append(ConfigRecord(resource_type=2, resource_name=f"t{n}", name="a", value=str(n)))
            if n % 7 == 3:
                stage.append(RemoveTopicRecord(topic_id=UUID(int=1000 + n - 2)))
            if n % 5 == 4:
                stage.quorum.connected = [1, 2, 3]
                stage.quorum.commit()
                stage.append(topic(n + 500))
                stage.quorum.elect(stage.quorum.leader.node_id % 3 + 1)
            else:
                leader = stage.quorum.leader.node_id
                stage.quorum.connected = [leader, leader % 3 + 1]
            stage.quorum.commit()
            look()
            await asyncio.sleep(0.1)
        assert len(digests) > 20
        assert {len(found) for found in digests.values()} == {1}
        late = Follower(stage.quorum.leader)
        await late.loader.load()
        stage.quorum.leader.on_committed(stage.quorum.leader.high_watermark)
        await late.loader.when_followed(stage.quorum.leader.high_watermark - 1)
        assert digests[late.offset] == {image_digest(late.publisher.image)}

    simulate(main, metadata_log_max_record_bytes_between_snapshots="4000")


def test_a_start_begins_with_the_newest_snapshot_and_follows_the_log_behind_it() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(VERSION)
        for n in range(50):
            stage.append(topic(n), partition(n))
        stage.quorum.commit()
        await asyncio.sleep(1)
        replica = stage.nodes[1].replica
        assert replica.snapshots.newest is not None
        stage.append(topic(50))
        stage.quorum.commit()
        again = Follower(replica)
        await again.loader.load()
        assert again.publisher.image is EMPTY_IMAGE, "how far the log is committed is not known yet"
        replica.on_committed(replica.high_watermark)
        await again.loader.when_followed(replica.high_watermark - 1)
        assert again.publisher.image == stage.nodes[0].publisher.image
        (delta,) = again.deltas
        assert len(delta.changed_topics) == 51

    simulate(main, metadata_log_max_record_bytes_between_snapshots="2000")


def test_a_fetched_snapshot_removes_what_it_lacks() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(VERSION, topic(0), partition(0), topic(1), partition(1))
        stage.append(ConfigRecord(resource_type=2, resource_name="t0", name="a", value="1"))
        stage.quorum.commit()
        behind, leader = stage.nodes[2], stage.quorum.leader
        stage.quorum.connected = [1, 2]
        stage.append(RemoveTopicRecord(topic_id=UUID(int=1000)))
        for n in range(2, 60):
            stage.append(topic(n), partition(n))
        stage.quorum.commit()
        await asyncio.sleep(1)
        newest = leader.snapshots.newest
        assert newest is not None
        stage.append(topic(60))
        stage.quorum.commit()
        assert behind.topics == ["t0", "t1"]
        behind.replica.install(newest, leader.snapshots.read(newest))
        stage.quorum.connected = [1, 2, 3]
        stage.quorum.commit()
        await behind.loader.when_followed(leader.high_watermark - 1)
        assert behind.publisher.image == stage.nodes[0].publisher.image
        assert "t0" not in behind.topics
        assert [gone.name for delta in behind.deltas for gone in delta.deleted_topics] == ["t0"]
        assert (2, "t0") in [key for delta in behind.deltas[1:] for key in delta.changed_configs]

    simulate(main, metadata_log_max_record_bytes_between_snapshots="2000")


def test_a_snapshot_that_comes_while_the_log_is_being_read_takes_its_place(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loader, "_READ_BYTES", 20_000)

    async def main(stage: Stage) -> None:
        stage.quorum.connected = [1, 2]
        stage.quorum.elect(1)
        stage.append(VERSION)
        for n in range(100):
            stage.append(topic(n), *(partition(n, i) for i in range(20)))
        stage.quorum.commit()
        await asyncio.sleep(1)
        behind, leader = stage.nodes[2], stage.quorum.leader
        newest = leader.snapshots.newest
        assert newest is not None
        stage.quorum.connected = [1, 2, 3]
        behind.replica.hear(1, 1)
        stage.quorum.commit()
        await asyncio.sleep(0)
        assert not behind.deltas, "it is still being read"
        behind.replica.install(newest, leader.snapshots.read(newest))
        stage.append(topic(100))
        stage.quorum.commit()
        await behind.loader.when_followed(leader.high_watermark - 1)
        assert behind.publisher.image == stage.nodes[0].publisher.image

    simulate(main, metadata_log_max_record_bytes_between_snapshots="2000")


def test_half_a_snapshot_is_refused() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(VERSION)
        for n in range(50):
            stage.append(topic(n), partition(n))
        stage.quorum.commit()
        await asyncio.sleep(1)
        replica = stage.nodes[1].replica
        newest = replica.snapshots.newest
        assert newest is not None
        replica.snapshots.write(newest, replica.snapshots.read(newest)[:-30])
        again = Follower(replica)
        with pytest.raises(SnapshotError, match="has no footer"):
            await again.loader.load()

    simulate(main, metadata_log_max_record_bytes_between_snapshots="2000")


def test_a_long_catch_up_leaves_the_loop_to_others_and_is_one_delta() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.connected = [1, 2]
        stage.quorum.elect(1)
        for n in range(300):
            stage.append(topic(n), *(partition(n, i) for i in range(20)))
        stage.quorum.commit()
        behind = stage.nodes[2]
        stage.quorum.connected = [1, 2, 3]
        stage.quorum.replicas[3].hear(1, 1)
        stage.quorum.commit()
        turns = 0
        while not behind.deltas:
            stage.append(topic(1000 + turns))
            stage.quorum.commit()
            await asyncio.sleep(0)
            turns += 1
        assert turns > 5, "it took many turns of the loop"
        assert len(behind.deltas[0].changed_partitions) == 6000
        await behind.loader.when_followed(stage.quorum.leader.high_watermark - 1)
        assert len(behind.deltas) < 4, "what came meanwhile is not a delta each"
        assert behind.publisher.image == stage.nodes[0].publisher.image

    simulate(main)


def test_a_log_that_cannot_be_read_for_want_of_descriptors_is_read_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.quorum.commit()
        node = stage.nodes[1]
        lacking = True
        read = Log.read

        def scarce(self: Log, *args: Any, **kwargs: Any) -> Any:
            if lacking and self is node.replica.log:
                raise ExhaustedError("Too many open files")
            return read(self, *args, **kwargs)

        stage.append(topic(0))
        stage.quorum.replicate()
        monkeypatch.setattr(Log, "read", scarce)
        node.replica.commit(node.replica.log_end_offset)
        await asyncio.sleep(1)
        assert (node.topics, node.loader.failure) == ([], None)
        lacking = False
        await asyncio.sleep(0.3)
        assert node.topics == ["t0"]

    simulate(main)


def test_a_log_that_cannot_be_replayed_is_followed_no_further() -> None:
    async def main(stage: Stage) -> None:
        stage.quorum.elect(1)
        stage.append(topic(0))
        stage.quorum.commit()
        stage.append(partition(7))
        stage.quorum.commit()
        node = stage.nodes[1]
        assert node.loader.failure is not None
        assert "unknown topic id" in str(node.loader.failure)
        stage.append(topic(1))
        stage.quorum.commit()
        assert node.topics == ["t0"]
        with pytest.raises(KafkaError):
            await node.loader.when_followed(node.replica.high_watermark - 1)

    simulate(main)
