"""The controller through its log: what is answered is durable, published, and there after a restart."""

import asyncio
import errno
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.core.errors import StorageError
from odradek.log.log import Isolation
from odradek.metadata.delta import MetadataDelta
from odradek.metadata.image import MetadataImage
from odradek.metadata.loader import MetadataLoader
from odradek.metadata.publisher import MetadataPublisher
from odradek.metadata.records import NoOpRecord, decode_record
from odradek.records.batch import iter_batches, iter_records
from odradek.runtime.slices import STEP, Paced
from odradek.sim.world.cluster import CrashKind, NodeCrashed, SimHost
from odradek.sim.world.disk import DiskFault
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.metadata.stack import MetadataStack, until
from tests.unit.raft.drivers import reader_of


def simulate(main: Callable[[SimHost], Coroutine[Any, Any, None]], seed: int = 5, **settings: str) -> SimHost:
    world = World(seed)
    given = {name.replace("_", "."): value for name, value in settings.items()}
    host = SimHost(world, "h", lambda runtime, data_dir: MetadataStack(runtime, data_dir, given))
    world.run(main(host))
    return host


def stack(host: SimHost) -> MetadataStack:
    assert isinstance(host.node, MetadataStack)
    return host.node


def log_records(node: MetadataStack) -> list[str]:
    """The types of all data records in the log but the idle ones, in order."""
    log = node.controller.raft.log
    found, offset = [], log.log_start_offset
    while offset < log.log_end_offset:
        piece = log.read(offset, 1 << 20, Isolation.LOG_END).slice
        assert piece is not None
        data = piece.read()
        for batch in iter_batches(data):
            offset = batch.last_offset + 1
            if not batch.is_control:
                found += [decode_record(r.value or b"") for r in iter_records(data, batch)]
    return [type(r).__name__ for r in found if not isinstance(r, NoOpRecord)]


def test_a_new_cluster_begins_with_apaches_records() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        assert log_records(node) == [
            "BeginTransactionRecord",
            *["FeatureLevelRecord"] * 4,
            "ConfigRecord",
            "EndTransactionRecord",
            "RegisterControllerRecord",
            "RegisterBrokerRecord",
            "BrokerRegistrationChangeRecord",
            "BrokerRegistrationChangeRecord",
        ]
        assert node.image.features == {
            "metadata.version": 30,
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "transaction.version": 2,
        }
        assert node.image.config(4, "") == {"min.insync.replicas": "1"}
        broker = node.image.brokers[1]
        assert (broker.fenced, broker.cordoned_log_dirs) == (False, ())
        assert broker.epoch == node.lifecycle.broker_epoch

    simulate(main)


def test_a_node_that_is_alone_starts_without_waiting_for_a_timer() -> None:
    async def main(host: SimHost) -> None:
        before = host.world.loop.time()
        await host.start()
        assert host.world.loop.time() - before < 0.05, "some flushes, of 4 ms at most"

    simulate(main)


def test_an_answer_comes_after_the_commit_and_the_publication() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        deltas: list[MetadataDelta] = []

        def note(delta: MetadataDelta) -> Paced[None]:
            deltas.append(delta)
            yield STEP

        node.publisher.subscribe(note)
        assert deltas[0].image is node.image
        assert await node.create_topic("t", 3) == 0
        assert node.image.topics_by_name["t"].partitions.keys() == {0, 1, 2}
        assert deltas[-1].changed_topics == [node.image.topics_by_name["t"].id]
        assert node.controller.raft.high_watermark > node.image.offset

    simulate(main)


def test_decisions_see_what_is_not_committed_yet() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        first = asyncio.ensure_future(node.create_topic("t"))
        second = asyncio.ensure_future(node.create_topic("t"))
        assert [await first, await second] == [0, 36]

    simulate(main)


def test_the_records_of_one_request_are_one_batch_however_many_slices_it_takes() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        node.slices.resize(100)
        begin = node.controller.raft.log_end_offset
        long = [asyncio.ensure_future(node.create_topic(name, 300)) for name in ("a", "b")]
        await asyncio.sleep(0)
        assert node.controller.raft.log_end_offset == begin, "it is still being decided"
        short = asyncio.ensure_future(node.create_topic("short", 1))
        assert [await created for created in (*long, short)] == [0, 0, 0]
        log = node.controller.raft.log
        piece = log.read(begin, 1 << 20, Isolation.LOG_END).slice
        assert piece is not None
        data = piece.read()
        sizes = [batch.last_offset + 1 - batch.base_offset for batch in iter_batches(data)]
        assert [size for size in sizes if size > 1] == [301, 2, 301], "the short one went ahead of the second"

    simulate(main)


def test_brokers_are_answered_while_a_delta_is_being_applied() -> None:
    """Else a session would end behind a client that creates very many partitions, and no ISR could shrink:
    producers would wait for a replica that is gone."""

    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        may_end = False

        def slow(delta: MetadataDelta) -> Paced[None]:
            while not may_end and delta.changed_topics:
                yield node.slices.slice_calls

        node.publisher.subscribe(slow)
        created = asyncio.ensure_future(node.create_topic("t"))
        await until(lambda: "t" in node.image.topics_by_name)
        types = request_types(ApiKey.BROKER_HEARTBEAT)
        beat = types.BrokerHeartbeatRequest(
            broker_id=1, broker_epoch=node.lifecycle.broker_epoch, current_metadata_offset=node.image.offset
        )
        answer = await node.controller.call(ApiKey.BROKER_HEARTBEAT, beat)
        assert (answer.error_code, answer.is_fenced) == (0, False)
        ids = request_types(ApiKey.ALLOCATE_PRODUCER_IDS).AllocateProducerIdsRequest(
            broker_id=1, broker_epoch=node.lifecycle.broker_epoch
        )
        assert (await node.controller.call(ApiKey.ALLOCATE_PRODUCER_IDS, ids)).error_code == 0
        alter = request_types(ApiKey.ALTER_PARTITION)
        row = alter.PartitionData(partition_index=0, new_isr_with_epochs=[alter.BrokerState(broker_id=1)])
        topic = alter.TopicData(topic_id=node.image.topics_by_name["t"].id, partitions=[row])
        proposal = alter.AlterPartitionRequest(
            broker_id=1, broker_epoch=node.lifecycle.broker_epoch, topics=[topic]
        )
        answered = await asyncio.wait_for(node.controller.call(ApiKey.ALTER_PARTITION, proposal), 5)
        assert [p.error_code for p in answered.topics[0].partitions] == [0]
        assert not created.done(), "whoever created it finds its partitions"
        may_end = True
        assert await created == 0

    simulate(main)


def test_a_stop_waits_until_what_was_decided_is_applied() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        applied: list[str] = []

        def slow(delta: MetadataDelta) -> Paced[None]:
            for topic_id in delta.changed_topics:
                for _ in range(50):
                    yield node.slices.slice_calls
                applied.append(delta.image.topics_by_id[topic_id].name)

        node.publisher.subscribe(slow)
        asking = [asyncio.ensure_future(node.create_topic(name)) for name in ("a", "b")]
        await asyncio.sleep(0)
        await host.stop()
        assert applied[:2] == ["a", "b"]
        assert [await asked for asked in asking] == [0, 0]
        assert not host.leaks

    simulate(main)


def test_a_clean_restart_replays_to_the_same_image() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        for n in range(5):
            await node.create_topic(f"t{n}", 2)
        before = node.image
        await node.producer_ids.ready()
        producer_id = node.producer_ids.take()
        cluster_id = node.identity and node.identity.cluster_id
        await host.stop()
        await host.start()
        again = stack(host)
        assert again.identity is not None
        assert (again.identity.cluster_id, again.identity.is_new) == (cluster_id, False)
        assert again.image.topics_by_name.keys() == before.topics_by_name.keys()
        for name, topic in again.image.topics_by_name.items():
            assert topic.id == before.topics_by_name[name].id
            for partition in topic.partitions.values():
                assert (partition.leader, partition.isr, partition.leader_epoch) == (1, (1,), 2)
                assert partition.leader_recovery_state == 0
        assert again.image.features == before.features
        await again.producer_ids.ready()
        assert again.producer_ids.take() > producer_id
        await host.stop()
        assert host.leaks == []

    simulate(main)


@pytest.mark.parametrize("kind", list(CrashKind))
def test_what_was_answered_survives_a_crash(kind: CrashKind) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        await stack(host).create_topic("t")
        host.crash(kind)
        await host.start()
        again = stack(host)
        partition = again.image.topics_by_name["t"].partitions[0]
        assert (partition.leader, partition.isr) == (1, (1,))
        assert partition.leader_recovery_state == 1
        assert again.controller.raft.epoch == 2

    simulate(main)


@pytest.mark.parametrize("seed", range(12))
def test_a_crash_at_any_point_of_a_start_is_started_over(seed: int) -> None:
    async def main(host: SimHost) -> None:
        await host.start(crash_after=None)
        await stack(host).create_topic("t")
        await host.stop()
        for calls in range(3, 40, 5):
            try:
                await host.start(crash_after=(calls + seed, CrashKind.POWER))
                host.call_off_crash()
                host.crash(CrashKind.POWER)
            except NodeCrashed:
                pass
        await host.start()
        assert "t" in stack(host).image.topics_by_name

    simulate(main, seed=seed)


@pytest.mark.parametrize("seed", range(12))
def test_a_crash_while_formatting_leaves_a_directory_that_can_be_formatted(seed: int) -> None:
    async def main(host: SimHost) -> None:
        try:
            await host.start(crash_after=(1 + seed * 3, CrashKind.POWER))
            host.call_off_crash()
        except NodeCrashed:
            await host.start()
        assert await stack(host).create_topic("t") == 0

    simulate(main, seed=seed)


def test_an_idle_log_gets_a_record_every_interval() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        before = node.image.offset
        await asyncio.sleep(10)
        assert 18 <= node.image.offset - before <= 20

    simulate(main)


def test_idle_records_can_be_switched_off() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        before = node.image.offset
        await asyncio.sleep(10)
        assert node.image.offset == before

    simulate(main, metadata_max_idle_interval_ms="0")


def test_heartbeats_keep_the_broker_and_their_end_fences_it() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        await asyncio.sleep(60)
        assert not node.image.brokers[1].fenced
        await node.lifecycle.close()
        await asyncio.sleep(12)
        assert node.image.brokers[1].fenced

    simulate(main)


def test_a_snapshot_is_written_when_the_log_has_grown_and_read_at_the_next_start() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        for n in range(30):
            await node.create_topic(f"t{n}", 4)
        snapshots = node.controller.raft.snapshots
        await until(lambda: snapshots.newest is not None and snapshots.newest.end_offset > 0)
        image = node.image
        host.crash(CrashKind.POWER)
        await host.start()
        again = stack(host)
        assert again.image.topics_by_name.keys() == image.topics_by_name.keys()
        assert again.image.configs == image.configs
        assert again.image.features == image.features

    simulate(main, metadata_log_max_record_bytes_between_snapshots="5000")


def test_what_a_start_has_to_replay_stays_within_a_multiple_of_the_image() -> None:
    """Far below the configured size: every restart changes every partition, and replaying that takes time."""

    async def main(host: SimHost) -> None:
        await host.start()
        await stack(host).create_topic("many", 300)
        snapshots = 0
        for _ in range(20):
            host.crash(CrashKind.KILL)
            await host.start()
            node = stack(host)
            await asyncio.sleep(1)
            raft = node.controller.raft
            newest = raft.snapshots.newest
            snapshots = max(snapshots, 0 if newest is None else newest.end_offset)
            begin = 0 if newest is None else newest.end_offset
            assert raft.log_end_offset - begin < 5 * 300
        assert snapshots > 10 * 300, "that is, many were written"

    simulate(main)


def test_a_snapshot_is_written_when_the_log_is_old_enough() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        await asyncio.sleep(3700)
        newest = node.controller.raft.snapshots.newest
        assert newest is not None
        assert newest.end_offset > 0

    simulate(main)


def test_a_full_disk_fails_the_decision_and_what_was_decided_before_stays() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        await node.create_topic("before")
        host.faults.rules.append(DiskFault(errno.ENOSPC, ["pwritev", "pwrite"], "*__cluster_metadata-0*"))
        with pytest.raises(StorageError):
            await node.create_topic("never")
        assert not node.controller.is_active
        assert "never" not in node.image.topics_by_name
        host.faults.rules.clear()
        host.crash(CrashKind.KILL)
        await host.start()
        assert sorted(stack(host).image.topics_by_name) == ["before"]

    simulate(main)


def test_the_quorum_describes_itself() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        types = request_types(ApiKey.DESCRIBE_QUORUM)
        asked = [
            types.TopicData(topic_name=name, partitions=[types.PartitionData(partition_index=0)])
            for name in ("__cluster_metadata", "other")
        ]
        answer = await node.controller.call(ApiKey.DESCRIBE_QUORUM, types.DescribeQuorumRequest(topics=asked))
        (ours,), (other,) = (t.partitions for t in answer.topics)
        assert (ours.error_code, ours.leader_id, ours.leader_epoch) == (0, 1, 1)
        assert [v.replica_id for v in ours.current_voters] == [1]
        assert ours.high_watermark == node.controller.raft.high_watermark
        assert other.error_code == 3
        assert [n.node_id for n in answer.nodes] == [1]

    simulate(main)


@pytest.mark.parametrize(("port", "named"), [(9093, [("CONTROLLER", "h", 9093)]), (0, [])])
def test_the_quorum_names_a_voters_endpoint_that_has_a_port(
    port: int, named: list[tuple[str, str, int]]
) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        types = request_types(ApiKey.DESCRIBE_QUORUM)
        partition = types.PartitionData(partition_index=0)
        asked = [types.TopicData(topic_name="__cluster_metadata", partitions=[partition])]
        request = types.DescribeQuorumRequest(topics=asked)
        (voter,) = (await stack(host).controller.call(ApiKey.DESCRIBE_QUORUM, request)).nodes
        assert [(e.name, e.host, e.port) for e in voter.listeners] == named

    simulate(main, listeners=f"PLAINTEXT://h:9092,CONTROLLER://h:{port}")


def test_a_wall_clock_set_forward_fences_nobody() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        host.clock.skew_ms += 3_600_000
        await asyncio.sleep(5)
        assert not node.image.brokers[1].fenced

    simulate(main)


def test_a_stop_does_not_wait_for_a_controller_whose_disk_failed() -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        node = stack(host)
        host.faults.rules.append(DiskFault(errno.EIO, ["fdatasync", "fsync"], "*__cluster_metadata-0*"))
        with pytest.raises(StorageError):
            await node.create_topic("never")
        started = host.world.loop.time()
        await host.stop()
        assert host.world.loop.time() - started < 1

    simulate(main)


@pytest.mark.parametrize("seed", range(5))
def test_replaying_the_log_gives_exactly_the_live_state(seed: int) -> None:
    async def main(host: SimHost) -> None:
        await host.start()
        rng = host.world.rng_for("changes")
        for life in range(3):
            node = stack(host)
            for n in range(rng.randrange(5, 15)):
                await random_change(node, rng, f"t{life}-{n}")
            await node.controller.call(ApiKey.DELETE_TOPICS, NOTHING)
            live = node.controller.controller.image
            assert await replayed(node) == live
            host.crash(CrashKind.POWER)
            await host.start()

    simulate(main, seed=seed, metadata_log_max_record_bytes_between_snapshots="4000")


NOTHING = request_types(ApiKey.DELETE_TOPICS).DeleteTopicsRequest(topics=[])
"""Its answer waits until all that was decided before is committed."""


async def replayed(node: MetadataStack) -> MetadataImage:
    """What another loader makes of the same directory."""
    raft = node.controller.raft
    again = reader_of(node.runtime, raft)
    publisher = MetadataPublisher(node.slices)
    loader = MetadataLoader(node.runtime, node.config, again, publisher, node.slices)
    await loader.load()
    again.on_committed(raft.high_watermark)
    await loader.when_followed(raft.high_watermark - 1)
    await loader.finish()
    return publisher.image


async def random_change(node: MetadataStack, rng: random.Random, name: str) -> None:
    """Some admin request that succeeds."""
    kind = rng.randrange(5)
    topics = list(node.image.topics_by_name)
    if kind == 0 and topics:
        types = request_types(ApiKey.DELETE_TOPICS)
        state = types.DeleteTopicState(name=rng.choice(topics))
        await node.controller.call(ApiKey.DELETE_TOPICS, types.DeleteTopicsRequest(topics=[state]))
    elif kind == 1 and topics:
        types = request_types(ApiKey.INCREMENTAL_ALTER_CONFIGS)
        config = types.AlterableConfig(name="retention.ms", config_operation=0, value=str(rng.randrange(99)))
        resource = types.AlterConfigsResource(
            resource_type=2, resource_name=rng.choice(topics), configs=[config]
        )
        request = types.IncrementalAlterConfigsRequest(resources=[resource])
        await node.controller.call(ApiKey.INCREMENTAL_ALTER_CONFIGS, request)
    elif kind == 2:
        await node.producer_ids.ready()
        node.producer_ids.take()
    else:
        await node.create_topic(name, rng.randrange(1, 5))
