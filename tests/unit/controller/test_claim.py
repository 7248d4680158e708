"""The controller is claimed and resigned: what it knows when it begins, what is left of it when it ends."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.controller import result
from odradek.controller.controller import Controller
from odradek.controller.quorum import QuorumController
from odradek.controller.result import ControllerResult
from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.metadata.digest import image_digest
from odradek.metadata.log_reader import records_of
from odradek.metadata.offset_waiters import OffsetWaiters
from odradek.metadata.records import (
    BeginTransactionRecord,
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    UnregisterBrokerRecord,
    encode_record,
)
from odradek.records.batch import iter_batches
from odradek.sim.world.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.unit.controller.quorum_node import QuorumCluster, until
from tests.unit.metadata.scripted_quorum import ScriptedReplica

QUIET = {"metadata.max.idle.interval.ms": "0"}
NOTHING = request_types(ApiKey.DELETE_TOPICS).DeleteTopicsRequest(topics=[])


def simulate(main: Callable[[QuorumCluster], Coroutine[Any, Any, None]], **settings: str) -> None:
    world = World(17)
    given = QUIET | {name.replace("_", "."): value for name, value in settings.items()}

    async def run() -> None:
        cluster = QuorumCluster(world, given)
        await cluster.start()
        await main(cluster)
        await cluster.stop()

    world.run(run())


def written(replica: ScriptedReplica) -> list[tuple[int, MetadataRecord]]:
    """All records of the log with their offsets."""
    found: list[tuple[int, MetadataRecord]] = []
    for batch, data in replica.batches():
        (meta,) = iter_batches(data)
        found += [(batch.base_offset + i, record) for i, record in enumerate(records_of(data, meta))]
    return found


def violations(cluster: QuorumCluster, answered: list[str]) -> list[str]:
    """What must hold once everything that was appended is committed everywhere."""
    found = []
    digests = {image_digest(node.image) for node in cluster.nodes.values()}
    if len(digests) > 1:
        found.append("nodes at one offset have different images")
    for n, node in cluster.nodes.items():
        found += [
            f"{name} was answered and is lost on node {n}"
            for name in answered
            if name not in node.image.topics_by_name
        ]
        if node.image.offset != cluster.quorum.leader.log_end_offset - 1:
            found.append(f"node {n} shows nothing after offset {node.image.offset}")
    return found


# --- claim -----------------------------------------------------------------------------------------------


def test_a_controller_decides_once_its_own_epoch_is_committed() -> None:
    async def main(cluster: QuorumCluster) -> None:
        node = cluster.nodes[1]
        cluster.quorum.elect(1)
        await asyncio.sleep(1)
        assert not node.quorum.is_active
        with pytest.raises(KafkaError) as refused:
            await node.quorum.call(ApiKey.DELETE_TOPICS, NOTHING)
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        cluster.quorum.commit()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert node.quorum.is_active
        assert node.quorum.controller.image.metadata_version == 30, "a new log got its first records"
        assert not node.image.features, "they are not committed yet"
        await cluster.settle()
        assert [n.image.metadata_version for n in cluster.nodes.values()] == [30] * 3
        assert [n.quorum.is_active for n in cluster.nodes.values()] == [True, False, False]

    simulate(main)


def test_a_new_controller_knows_all_that_was_committed_before() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        assert await cluster.committing(first.create_topic("a")) == 0
        second = await cluster.lead(2)
        assert not first.quorum.is_active
        assert await cluster.committing(second.create_topic("a")) == ErrorCode.TOPIC_ALREADY_EXISTS
        assert await cluster.committing(first.create_topic("b")) == 0, "it asks the second"
        assert violations(cluster, ["a", "b"]) == []

    simulate(main)


async def leave_a_transaction_open(cluster: QuorumCluster) -> list[str]:
    """The first controller dies inside a metadata transaction. What is wrong afterwards?"""
    first = await cluster.lead(1)
    await cluster.committing(first.add_broker())
    now_ms = first.replica.runtime.clock.now_ms()
    first.replica.append([encode_record(BeginTransactionRecord(name="long"))], now_ms)
    cluster.quorum.commit()
    second = await cluster.lead(2)
    created = asyncio.ensure_future(second.create_topic("t"))
    for _ in range(50):
        await cluster.settle()
    assert await created == 0
    return violations(cluster, ["t"])


def test_a_new_controller_aborts_an_open_transaction() -> None:
    async def main(cluster: QuorumCluster) -> None:
        assert await leave_a_transaction_open(cluster) == []

    simulate(main)


def test_a_new_controller_that_leaves_a_transaction_open_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_abort(self: Controller, bootstrap: Any) -> ControllerResult:
        records = [] if self.image.metadata_version else sound(self, bootstrap).records
        return ControllerResult(records, None)

    sound = Controller.activation
    monkeypatch.setattr(Controller, "activation", no_abort)

    async def main(cluster: QuorumCluster) -> None:
        found = await leave_a_transaction_open(cluster)
        assert "t was answered and is lost on node 1" in found

    simulate(main)


def test_a_claim_for_which_there_are_no_descriptors_is_tried_again() -> None:
    """Some of its records may be in the log by then: they are read back from it."""

    async def main(cluster: QuorumCluster) -> None:
        node = cluster.nodes[1]
        append, appended = node.replica.append, 0

        def scarce(values: Any, now_ms: int) -> int:
            nonlocal appended
            appended += 1
            if appended == 2:
                raise ExhaustedError("Too many open files")
            return append(values, now_ms)

        node.replica.append = scarce  # type: ignore[method-assign]
        cluster.quorum.elect(1)
        await cluster.committing(asyncio.sleep(0.1))
        assert not node.quorum.is_active
        await cluster.committing(asyncio.sleep(1))
        assert node.quorum.is_active
        assert await cluster.committing(cluster.nodes[2].add_broker()) > 0
        features = [r for _, r in written(node.replica) if isinstance(r, FeatureLevelRecord)]
        assert len(features) == len(node.image.features), "a log begins once"
        assert violations(cluster, []) == []

    simulate(main)


def test_brokers_get_a_whole_session_with_every_controller() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        await cluster.committing(asyncio.sleep(8))
        second = await cluster.lead(2)
        await cluster.committing(asyncio.sleep(8))
        assert not second.image.brokers[101].fenced
        await cluster.committing(asyncio.sleep(2))
        assert second.image.brokers[101].fenced

    simulate(main)


def test_every_controller_registers_once() -> None:
    async def main(cluster: QuorumCluster) -> None:
        await cluster.lead(1)
        await cluster.committing(asyncio.sleep(1))
        node = await cluster.lead(2)
        await cluster.committing(asyncio.sleep(1))
        assert sorted(node.image.controllers) == [1, 2, 3]
        records = [r for _, r in written(node.replica) if isinstance(r, RegisterControllerRecord)]
        assert sorted(r.controller_id for r in records) == [1, 2, 3]

    simulate(main)


# --- resignation -----------------------------------------------------------------------------------------


async def depose_with_an_uncommitted_topic(cluster: QuorumCluster) -> list[str]:
    """The first controller is cut off while it creates `lost`; the second creates `kept`. What is wrong?"""
    first = await cluster.lead(1)
    await cluster.committing(first.add_broker())
    cluster.quorum.connected = [2, 3]
    lost = asyncio.ensure_future(first.create_topic("lost", channel=first.quorum))
    await asyncio.sleep(0.01)
    assert first.quorum.controller.image.topics_by_name.keys() == {"lost"}
    second = await cluster.lead(2)
    assert await cluster.committing(second.create_topic("kept")) == 0
    cluster.quorum.connected = [1, 2, 3]
    first.replica.hear(cluster.quorum.epoch, 2)
    await cluster.settle()
    answered = ["kept"]
    if lost.done() and lost.exception() is None:
        answered.append("lost")
    lost.cancel()
    found = violations(cluster, answered)
    again = await cluster.lead(1)
    if "lost" in again.quorum.controller.image.topics_by_name:
        found.append("a topic that was never committed came back")
    return found + violations(cluster, answered)


def test_what_a_deposed_controller_did_not_commit_is_dropped() -> None:
    async def main(cluster: QuorumCluster) -> None:
        assert await depose_with_an_uncommitted_topic(cluster) == []

    simulate(main)


def test_a_deposed_controller_that_keeps_uncommitted_state_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    def stay(self: QuorumController, epoch: int, leader_id: int) -> None:
        if self.is_active:
            self.on_changed()
        else:
            sound(self, epoch, leader_id)

    sound = QuorumController._on_leader_changed
    monkeypatch.setattr(QuorumController, "_on_leader_changed", stay)

    async def main(cluster: QuorumCluster) -> None:
        found = await depose_with_an_uncommitted_topic(cluster)
        assert "nodes at one offset have different images" in found
        for node in cluster.nodes.values():
            node.replica.resign()

    simulate(main)


def test_a_deposed_controller_that_answers_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(OffsetWaiters, "fail", lambda self, first_offset, failure: None)

    async def main(cluster: QuorumCluster) -> None:
        found = await depose_with_an_uncommitted_topic(cluster)
        assert "lost was answered and is lost on node 1" in found

    simulate(main)


def test_a_decision_that_outlives_its_controller_writes_nothing() -> None:
    """Its node leads again by then, so that the log would take it."""

    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        first.slices.resize(50)
        long = asyncio.ensure_future(first.create_topic("long", 300, channel=first.quorum))
        await asyncio.sleep(0)
        end = first.replica.log_end_offset
        cluster.quorum.elect(2)
        cluster.quorum.commit()
        cluster.quorum.elect(1)
        cluster.quorum.commit()
        with pytest.raises(KafkaError) as refused:
            await long
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        await cluster.settle()
        assert first.quorum.is_active
        assert first.replica.log_end_offset == end + 2, "the first records of two epochs"
        assert await cluster.committing(first.create_topic("long", 3)) == 0
        assert violations(cluster, ["long"]) == []

    simulate(main)


def test_a_decision_without_records_that_outlives_its_controller_is_no_answer() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        first.slices.resize(50)
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name="t", num_partitions=300, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], validate_only=True)
        checked = asyncio.ensure_future(first.quorum.call(ApiKey.CREATE_TOPICS, request))
        await asyncio.sleep(0)
        cluster.quorum.elect(2)
        with pytest.raises(KafkaError) as refused:
            await checked
        assert refused.value.code is ErrorCode.NOT_CONTROLLER

    simulate(main)


def test_producer_ids_that_a_deposed_controller_did_not_commit_are_not_handed_out() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        epoch = await cluster.committing(first.add_broker())
        types = request_types(ApiKey.ALLOCATE_PRODUCER_IDS)
        request = types.AllocateProducerIdsRequest(broker_id=101, broker_epoch=epoch)
        cluster.quorum.connected = [2, 3]
        allocated = asyncio.ensure_future(first.quorum.call(ApiKey.ALLOCATE_PRODUCER_IDS, request))
        await asyncio.sleep(0.01)
        await cluster.lead(2)
        cluster.quorum.connected = [1, 2, 3]
        first.replica.hear(cluster.quorum.epoch, 2)
        with pytest.raises(KafkaError) as refused:
            await allocated
        assert refused.value.code is ErrorCode.NOT_CONTROLLER
        blocks = [
            (
                await cluster.committing(node.channel.call(ApiKey.ALLOCATE_PRODUCER_IDS, request))
            ).producer_id_start
            for node in cluster.nodes.values()
        ]
        assert blocks == [0, 1000, 2000]

    simulate(main)


def test_all_who_wait_on_a_controller_whose_disk_fails_hear_of_it() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        created = asyncio.ensure_future(first.create_topic("t", channel=first.quorum))
        await asyncio.sleep(0.01)
        first.replica.fail(StorageError("no disk"))
        for _ in range(2):
            with pytest.raises(StorageError):
                await created
            created = asyncio.ensure_future(first.create_topic("t", channel=first.quorum))
        created.cancel()
        assert not first.quorum.is_active

    simulate(main)


def test_a_broken_log_makes_no_controller() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        broken = UnregisterBrokerRecord(broker_id=77, broker_epoch=5)
        cluster.quorum.elect(2)
        replica = cluster.nodes[2].replica
        replica.append([encode_record(broken)], first.replica.runtime.clock.now_ms())
        cluster.quorum.commit()
        await asyncio.sleep(0.1)
        assert not cluster.nodes[2].quorum.is_active
        assert not replica.is_leader, "another may lead, which has whatever this one lacks"

    simulate(main)


# --- between the quorum's own records --------------------------------------------------------------------


def test_a_broker_epoch_is_its_records_offset_though_the_quorum_writes_meanwhile() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        first.slices.resize(10, 1)
        added = asyncio.ensure_future(first.add_broker(102))
        await asyncio.sleep(0)
        first.replica.append_control()
        epoch = await cluster.committing(added)
        offsets = {r.broker_id: o for o, r in written(first.replica) if isinstance(r, RegisterBrokerRecord)}
        assert offsets[102] == epoch
        assert violations(cluster, []) == []

    simulate(main)


def test_an_answer_does_not_wait_for_the_quorums_own_records() -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        first.replica.append_control()
        response = await first.quorum.call(ApiKey.DELETE_TOPICS, NOTHING)
        assert response.responses == []

    simulate(main)


def test_a_result_that_need_not_be_atomic_is_appended_in_several_batches(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def main(cluster: QuorumCluster) -> None:
        first = await cluster.lead(1)
        await cluster.committing(first.add_broker())
        assert await cluster.committing(first.create_topic("t", 25)) == 0
        monkeypatch.setattr(result, "MAX_RECORDS_PER_BATCH", 10)
        begin = first.replica.log_end_offset
        await cluster.committing(until(lambda: first.image.brokers[101].fenced))
        sizes = [b.last_offset_delta + 1 for b, _ in first.replica.batches() if b.base_offset >= begin]
        assert sizes == [10, 10, 6]
        partitions = first.image.topics_by_name["t"].partitions.values()
        assert not any(p.has_leader for p in partitions)
        assert violations(cluster, ["t"]) == []

    simulate(main)
