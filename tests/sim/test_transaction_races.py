"""Races between a write and the end of its transaction, each brought about by hand on a node that ships."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.broker.node import Node
from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.sim.caller import Caller
from odradek.sim.cluster import SimHost
from odradek.sim.main import odradek_node
from odradek.sim.plan import Settings
from odradek.sim.runtime import SimRuntime
from odradek.sim.scenario import HOST, PORT
from odradek.sim.txn_scenario import TxnSettings
from odradek.sim.world import World
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

E = ErrorCode
TP = TopicPartition("t", 0)
TID = "id"
SETTINGS = {
    "flush_everything": False,
    "flush_interval_ms": None,
    "checkpoint_interval_ms": 60_000,
    "segment_ms": 600_000,
    "index_interval_bytes": 4096,
}


class Stage:
    """A node with one topic, and a client by hand."""

    def __init__(self, settings: Settings) -> None:
        self.world = World(1)
        self.host = SimHost(self.world, HOST, odradek_node(settings))
        self.callers = 0

    @property
    def node(self) -> Node:
        assert isinstance(self.host.node, Node)
        return self.host.node

    def caller(self) -> Caller:
        self.callers += 1
        name = f"client{self.callers}"
        return Caller(self.world.runtime(name), (HOST, PORT), name, random.Random(1))

    async def prepare(self) -> Caller:
        await self.host.start()
        caller = self.caller()
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000)
        await caller.call(ApiKey.CREATE_TOPICS, request, version=7)
        types = request_types(ApiKey.FIND_COORDINATOR)
        request = types.FindCoordinatorRequest(key_type=1, coordinator_keys=[TID])
        await caller.call(ApiKey.FIND_COORDINATOR, request, version=4)
        return caller

    async def init(self, caller: Caller, timeout_ms: int = 60_000) -> tuple[int, int]:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=TID, transaction_timeout=timeout_ms)
        answer = await caller.call(ApiKey.INIT_PRODUCER_ID, request, version=5)
        assert answer.error_code == E.NONE
        return answer.producer_id, answer.producer_epoch

    async def add(self, caller: Caller, producer: tuple[int, int]) -> None:
        types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        transaction = types.AddPartitionsToTxnTransaction(
            transactional_id=TID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=False,
            topics=[types.AddPartitionsToTxnTopic(name="t", partitions=[0])],
        )
        request = types.AddPartitionsToTxnRequest(transactions=[transaction])
        await caller.call(ApiKey.ADD_PARTITIONS_TO_TXN, request, version=3)

    async def write(
        self,
        caller: Caller,
        producer: tuple[int, int],
        version: int,
        *,
        sequence: int = 0,
        heavy: bool = False,
    ) -> ErrorCode:
        types = request_types(ApiKey.PRODUCE)
        data = build_batch(
            [(self.host.clock.now_ms(), b"k", b"v" * (1 << 18 if heavy else 1), ())],
            codec=4 if heavy else 0,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        partition = types.PartitionProduceData(index=0, records=bytes(data))
        topic = types.TopicProduceData(name="t", partition_data=[partition])
        request = types.ProduceRequest(transactional_id=TID, acks=-1, timeout=5_000, topic_data=[topic])
        answer = await caller.call(ApiKey.PRODUCE, request, version=version)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    async def end(
        self, caller: Caller, producer: tuple[int, int], version: int, *, commit: bool = True
    ) -> tuple[int, int]:
        types = request_types(ApiKey.END_TXN)
        request = types.EndTxnRequest(
            transactional_id=TID, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        answer = await caller.call(ApiKey.END_TXN, request, version=version)
        assert answer.error_code == E.NONE
        return answer.producer_id, answer.producer_epoch

    def slow_questions(self) -> asyncio.Event:
        """Have the coordinator's answers to the leader wait for an event."""
        gate = asyncio.Event()
        transactions = self.node.transactions
        verify = transactions.verify_partitions

        async def wait(*arguments: Any) -> Any:
            reply = verify(*arguments)
            codes = await reply if asyncio.iscoroutine(reply) else reply
            await gate.wait()
            return codes

        transactions.verify_partitions = wait  # type: ignore[method-assign]
        return gate

    def slow_markers(self) -> asyncio.Event:
        gate = asyncio.Event()
        sender = self.node.transactions.markers
        deliver = sender._deliver

        async def wait(*arguments: Any) -> Any:
            await gate.wait()
            outcomes = deliver(*arguments)
            return await outcomes if asyncio.isfuture(outcomes) else outcomes

        sender._deliver = wait
        return gate

    def is_open(self) -> bool:
        """Whether anything holds back the partition's last stable offset."""
        log = self.node.replicas.partition(TP).log
        return log.last_stable_offset != log.high_watermark

    def check_guards(self) -> None:
        assert len(self.node.replicas.partition(TP).verification) == 0, "a guard was left behind"


def play(story: Callable[[Stage], Coroutine[Any, Any, None]], settings: Settings | None = None) -> None:
    stage = Stage(settings or TxnSettings(**SETTINGS))  # type: ignore[arg-type]

    async def main() -> None:
        await story(stage)
        stage.check_guards()
        await stage.host.stop()

    stage.world.run(main())
    assert stage.host.leaks == []
    assert stage.world.loop.unhandled == []


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
