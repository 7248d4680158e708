"""Races between a write and the end of its transaction, each constructed on a real node."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.coordinators.transactions.states import AT_REST
from odradek.core.errors import ErrorCode, ExhaustedError
from odradek.core.types import TRANSACTION_STATE_TOPIC, ZERO_UUID, TopicPartition
from odradek.records.batch import build_batch
from odradek.replication.led_log import LedLog
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.workloads.consuming import fetch_committed
from odradek.sim.world.runtime import SimRuntime
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.sim.stage import SETTINGS, TID, TP, Stage, play

E = ErrorCode


def test_the_next_transaction_waits_for_the_end_of_the_last_one_unseen() -> None:
    """KAFKA-18575 and 18654: its first write meets the marker of the last one, and the client never knows."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        assert await stage.write(caller, producer, 12) is E.NONE
        gate = stage.slow_markers()
        following = await stage.end(caller, producer, 5)
        assert following == (producer[0], producer[1] + 1)
        writing = asyncio.ensure_future(stage.write(caller, following, 12))
        await asyncio.sleep(0.05)
        assert not writing.done()
        gate.set()
        assert await writing is E.NONE
        assert stage.is_open()
        await stage.end(caller, following, 5)
        assert not stage.is_open()

    play(story)


def test_a_write_that_was_overtaken_by_the_end_of_its_transaction_is_refused() -> None:
    """KAFKA-14884: the coordinator's yes is older than the marker."""

    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        gate = stage.slow_questions()
        writing = asyncio.ensure_future(stage.write(other, producer, 11))
        await asyncio.sleep(0.05)
        await stage.end(caller, producer, 4)
        gate.set()
        assert await writing is E.INVALID_TXN_STATE
        assert not stage.is_open()

    play(story)


def test_an_epoch_that_is_over_is_told_before_the_guard() -> None:
    """KAFKA-19690: a transaction that took too long is no fatal error."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller, timeout_ms=1_000)
        await stage.add(caller, producer)
        gate = stage.slow_questions()
        writing = asyncio.ensure_future(stage.write(caller, producer, 11))
        await asyncio.sleep(3)
        gate.set()
        assert await writing is E.INVALID_PRODUCER_EPOCH
        assert not stage.is_open()

    play(story)


@pytest.mark.parametrize("version", [11, 12])
def test_a_write_after_the_timeout_is_told_so_where_the_transaction_has_not_written(version: int) -> None:
    """A partition with the marker knows the newer epoch only; the coordinator knows why there is one."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        await stage.create_topic(caller, "u")
        producer = await stage.init(caller, timeout_ms=1_000)
        if version < 12:
            await stage.add(caller, producer)
        assert await stage.write(caller, producer, version) is E.NONE
        await asyncio.sleep(3)
        assert await stage.write(caller, producer, version, sequence=1) is E.INVALID_PRODUCER_EPOCH
        assert await stage.write(caller, producer, version, topic="u") is E.TRANSACTION_ABORTABLE

    play(story)


@pytest.mark.parametrize("version", [11, 12])
def test_the_first_write_of_a_transaction_may_leave_the_loop_for_its_check(version: int) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        if version < 12:
            await stage.add(caller, producer)
        assert await stage.write(caller, producer, version, heavy=True) is E.NONE
        assert await stage.write(caller, producer, version, sequence=1, heavy=True) is E.NONE
        assert stage.is_open()
        await stage.end(caller, producer, 4 if version < 12 else 5)
        assert not stage.is_open()

    play(story)


@pytest.mark.parametrize("begun", [False, True])
def test_a_write_that_leaves_the_loop_for_its_check_is_looked_at_again(begun: bool) -> None:
    """While its records are decompressed, its transaction ends: appended then, it would never end."""

    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        if begun:
            assert await stage.write(caller, producer, 11) is E.NONE
        gate = asyncio.Event()
        runtime = stage.host.runtime
        assert isinstance(runtime, SimRuntime)

        offload = runtime.offload

        def slowly(work: Callable[[], Any]) -> "asyncio.Future[Any]":
            async def wait() -> Any:
                result = await offload(work)
                await gate.wait()
                return result

            return asyncio.ensure_future(wait())

        runtime.offload = slowly  # type: ignore[method-assign]
        writing = asyncio.ensure_future(stage.write(other, producer, 11, sequence=int(begun), heavy=True))
        await asyncio.sleep(0.05)
        await stage.end(caller, producer, 4)
        gate.set()
        assert await writing is E.INVALID_TXN_STATE
        assert not stage.is_open()

    play(story)


def test_a_retry_beside_its_first_attempt_is_taken_for_what_it_is() -> None:
    """KAFKA-15653: both ask about one producer and one partition, and the first answer serves both."""

    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        gate = stage.slow_questions()
        both = [asyncio.ensure_future(stage.write(c, producer, 11)) for c in (caller, other)]
        await asyncio.sleep(0.05)
        gate.set()
        assert [await one for one in both] == [E.NONE, E.NONE]
        assert stage.node.replicas.partition(TP).log.log_end_offset == 1
        await stage.end(caller, producer, 4)
        assert not stage.is_open()

    play(story)


def test_a_client_that_is_gone_leaves_no_guard() -> None:
    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        gate = stage.slow_questions()
        writing = asyncio.ensure_future(stage.write(other, producer, 11))
        await asyncio.sleep(0.05)
        other.close()
        await asyncio.gather(writing, return_exceptions=True)
        await asyncio.sleep(0.05)
        gate.set()
        await asyncio.sleep(0.05)
        await stage.end(caller, producer, 4)
        assert not stage.is_open()

    play(story)


class Unverified(TxnSettings):
    def node_config(self) -> dict[str, str]:
        return {**TxnSettings.node_config(self), "transaction.partition.verification.enable": "false"}


def test_without_verification_a_write_still_adds_its_partition() -> None:
    """From Produce v12 on nobody else would, and the transaction would never end there."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        assert await stage.write(caller, producer, 12) is E.NONE
        await stage.end(caller, producer, 5)
        assert not stage.is_open()

    play(story, Unverified(**SETTINGS))  # type: ignore[arg-type]


@pytest.mark.parametrize(("settings", "told"), [(TxnSettings, E.INVALID_TXN_STATE), (Unverified, E.NONE)])
def test_verification_is_a_setting(settings: type[Settings], told: ErrorCode) -> None:
    """A partition that an old client never added is refused, unless nobody asks."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        assert await stage.write(caller, producer, 10) is told
        assert stage.is_open() is (told is E.NONE)

    play(story, settings(**SETTINGS))  # type: ignore[arg-type]


GROUP = "g"


async def commit_offset(stage: Stage, caller: Caller, producer: tuple[int, int], offset: int) -> ErrorCode:
    types = request_types(ApiKey.TXN_OFFSET_COMMIT)
    partition = types.TxnOffsetCommitRequestPartition(
        partition_index=0, committed_offset=offset, committed_metadata=""
    )
    request = types.TxnOffsetCommitRequest(
        transactional_id=TID,
        group_id=GROUP,
        producer_id=producer[0],
        producer_epoch=producer[1],
        topics=[types.TxnOffsetCommitRequestTopic(name="t", partitions=[partition])],
    )
    answer = await caller.call(ApiKey.TXN_OFFSET_COMMIT, request, version=4)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def add_offsets(caller: Caller, producer: tuple[int, int]) -> None:
    types = request_types(ApiKey.ADD_OFFSETS_TO_TXN)
    request = types.AddOffsetsToTxnRequest(
        transactional_id=TID, producer_id=producer[0], producer_epoch=producer[1], group_id=GROUP
    )
    answer = await caller.call(ApiKey.ADD_OFFSETS_TO_TXN, request, version=3)
    assert answer.error_code == E.NONE


def test_offsets_that_an_older_connection_held_back_do_not_count_for_the_next_transaction() -> None:
    """As KAFKA-17754, but for the group: with an epoch for all, its offsets would go back."""

    async def story(stage: Stage) -> None:
        old = await stage.prepare()
        await prepare_group(stage, old)
        producer = await stage.init(old)
        young = stage.caller()
        for offset in (10, 20):
            await add_offsets(young, producer)
            assert await commit_offset(stage, young, producer, offset) is E.NONE
            if offset == 20:
                with pytest.raises(NoAnswer):
                    await commit_offset(stage, old, producer, 10)
            await stage.end(young, producer, 4)
        found = await fetch_committed(young, GROUP, [TP], {"t": ZERO_UUID})
        assert found[TP] == 20

    play(story)


def test_a_partition_that_an_older_connection_held_back_begins_no_transaction() -> None:
    async def story(stage: Stage) -> None:
        old = await stage.prepare()
        producer = await stage.init(old)
        young = stage.caller()
        await stage.add(young, producer)
        await stage.end(young, producer, 4)
        with pytest.raises(NoAnswer):
            await stage.add(old, producer)
        assert stage.state().state in AT_REST
        await stage.add(old, producer)  # by a connection of its own now

    play(story)


async def prepare_group(stage: Stage, caller: Caller) -> None:
    types = request_types(ApiKey.FIND_COORDINATOR)
    request = types.FindCoordinatorRequest(key_type=0, coordinator_keys=[GROUP])
    await caller.call(ApiKey.FIND_COORDINATOR, request, version=4)


@pytest.mark.parametrize("commit", [False, True])
def test_offsets_that_were_overtaken_by_the_end_of_their_transaction_are_refused(commit: bool) -> None:
    """KAFKA-14884 for a group: the coordinator's yes is older than the marker in the group's log."""

    async def story(stage: Stage) -> None:
        caller, other = await stage.prepare(), stage.caller()
        await prepare_group(stage, caller)
        producer = await stage.init(caller)
        await add_offsets(caller, producer)
        gate = stage.slow_questions()
        committing = asyncio.ensure_future(commit_offset(stage, other, producer, 10))
        await asyncio.sleep(0.05)
        await stage.end(caller, producer, 4, commit=commit)
        gate.set()
        assert await committing is E.INVALID_TXN_STATE
        found = await fetch_committed(caller, GROUP, [TP], {"t": ZERO_UUID})
        assert found.get(TP, -1) == -1

    play(story)


class SlowToLoad(LedLog):
    """A log whose first read lacks a descriptor: the load waits half a second, then goes on."""

    __slots__ = ("_has_failed",)

    def read(self, offset: int, max_bytes: int) -> bytes:
        if not hasattr(self, "_has_failed"):
            self._has_failed = True
            raise ExhaustedError("no descriptor")
        return super().read(offset, max_bytes)


def load_slowly(stage: Stage) -> None:
    """Have every transaction coordinator load its log, as after an election."""
    node = stage.node
    for index in node.transactions.host.partitions:
        node.transactions.on_resigned(index)
        partition = node.replicas.partition(TopicPartition(TRANSACTION_STATE_TOPIC, index))
        node.transactions.on_elected(index, SlowToLoad(partition))


@pytest.mark.parametrize("version", [11, 12])
def test_a_write_that_is_asked_about_while_the_coordinator_loads_is_to_be_sent_again(version: int) -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        if version < 12:
            await stage.add(caller, producer)
        load_slowly(stage)
        assert await stage.write(caller, producer, version) is E.NOT_ENOUGH_REPLICAS
        assert not stage.is_open()
        await asyncio.sleep(1)
        assert await stage.write(caller, producer, version) is E.NONE
        assert stage.is_open()

    play(story)


def test_offsets_that_are_asked_about_while_the_coordinator_loads_are_to_be_sent_again() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        await prepare_group(stage, caller)
        producer = await stage.init(caller)
        await add_offsets(caller, producer)
        load_slowly(stage)
        assert await commit_offset(stage, caller, producer, 10) is E.COORDINATOR_NOT_AVAILABLE
        await asyncio.sleep(1)
        assert await commit_offset(stage, caller, producer, 10) is E.NONE

    play(story)


async def verify(caller: Caller, producer: tuple[int, int]) -> ErrorCode:
    """As another broker asks."""
    types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
    transaction = types.AddPartitionsToTxnTransaction(
        transactional_id=TID,
        producer_id=producer[0],
        producer_epoch=producer[1],
        verify_only=True,
        topics=[types.AddPartitionsToTxnTopic(name="t", partitions=[0])],
    )
    request = types.AddPartitionsToTxnRequest(transactions=[transaction])
    answer = await caller.call(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=5)
    ((row,),) = (topic.results_by_partition for topic in answer.results_by_transaction[0].topic_results)
    return ErrorCode(row.partition_error_code)


def test_a_broker_that_asks_while_the_coordinator_loads_is_told_so() -> None:
    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        producer = await stage.init(caller)
        await stage.add(caller, producer)
        load_slowly(stage)
        assert await verify(caller, producer) is E.COORDINATOR_LOAD_IN_PROGRESS
        await asyncio.sleep(1)
        assert await verify(caller, producer) is E.NONE

    play(story)


@pytest.mark.parametrize("version", [11, 12])
@pytest.mark.parametrize("begun", [False, True])
def test_a_request_writes_for_one_transactional_producer_only(version: int, begun: bool) -> None:
    """As in Apache Kafka nothing of it is written, not even where the transaction is known to go on."""

    async def story(stage: Stage) -> None:
        caller = await stage.prepare()
        await stage.create_topic(caller, "u")
        producer = await stage.init(caller)
        if version < 12:
            await stage.add(caller, producer, "t", "u")
        if begun:
            assert await stage.write(caller, producer, version) is E.NONE
        ends = [stage.node.replicas.partition(TopicPartition(topic, 0)).log.log_end_offset for topic in "tu"]
        types = request_types(ApiKey.PRODUCE)
        data = []
        for topic, (producer_id, epoch) in (("t", producer), ("u", (producer[0] + 1, 0))):
            records = build_batch(
                [(stage.host.clock.now_ms(), b"k", b"v", ())],
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=int(begun and topic == "t"),
                transactional=True,
            )
            partition = types.PartitionProduceData(index=0, records=bytes(records))
            data.append(types.TopicProduceData(name=topic, partition_data=[partition]))
        request = types.ProduceRequest(transactional_id=TID, acks=-1, timeout=5_000, topic_data=data)
        answer = await caller.call(ApiKey.PRODUCE, request, version=version)
        codes = [topic.partition_responses[0].error_code for topic in answer.responses]
        assert codes == [E.INVALID_PRODUCER_ID_MAPPING] * 2
        logs = [stage.node.replicas.partition(TopicPartition(topic, 0)).log for topic in "tu"]
        assert [log.log_end_offset for log in logs] == ends

    play(story)
