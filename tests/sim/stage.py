"""A node under simulation with one topic, and a transactional client whose every request is made by hand."""

import asyncio
import random
from collections.abc import Callable, Coroutine
from typing import Any

from odradek.broker.node import Node
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.core.errors import ErrorCode
from odradek.core.types import ZERO_UUID, TopicPartition
from odradek.records.batch import build_batch
from odradek.runtime.reply import Reply
from odradek.sim.checkers.txn_history import TxnHistory
from odradek.sim.main import odradek_node
from odradek.sim.stories.plan import Settings
from odradek.sim.stories.single_node import HOST
from odradek.sim.stories.story import PORT
from odradek.sim.stories.transactions import TxnSettings
from odradek.sim.workloads.caller import Caller
from odradek.sim.workloads.txn_workload import CommittedReader
from odradek.sim.world.cluster import SimHost
from odradek.sim.world.world import World
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
        return Caller(self.world.runtime(name), [(HOST, PORT)], name, random.Random(1))

    async def prepare(self) -> Caller:
        await self.host.start()
        caller = self.caller()
        await self.create_topic(caller, "t")
        types = request_types(ApiKey.FIND_COORDINATOR)
        request = types.FindCoordinatorRequest(key_type=1, coordinator_keys=[TID])
        await caller.call(ApiKey.FIND_COORDINATOR, request, version=4)
        return caller

    async def create_topic(self, caller: Caller, name: str) -> None:
        types = request_types(ApiKey.CREATE_TOPICS)
        topic = types.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
        request = types.CreateTopicsRequest(topics=[topic], timeout=30_000)
        answer = await caller.call(ApiKey.CREATE_TOPICS, request, version=7)
        assert answer.topics[0].error_code == E.NONE

    async def delete_topic(self, caller: Caller, name: str) -> None:
        types = request_types(ApiKey.DELETE_TOPICS)
        state = types.DeleteTopicState(name=name)
        request = types.DeleteTopicsRequest(topics=[state], topic_names=[name], timeout=30_000)
        answer = await caller.call(ApiKey.DELETE_TOPICS, request, version=6)
        assert answer.responses[0].error_code == E.NONE

    async def init(self, caller: Caller, timeout_ms: int = 60_000) -> tuple[int, int]:
        types = request_types(ApiKey.INIT_PRODUCER_ID)
        request = types.InitProducerIdRequest(transactional_id=TID, transaction_timeout=timeout_ms)
        answer = await caller.call(ApiKey.INIT_PRODUCER_ID, request, version=5)
        assert answer.error_code == E.NONE
        return answer.producer_id, answer.producer_epoch

    async def add(self, caller: Caller, producer: tuple[int, int], *topics: str) -> None:
        types = request_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        transaction = types.AddPartitionsToTxnTransaction(
            transactional_id=TID,
            producer_id=producer[0],
            producer_epoch=producer[1],
            verify_only=False,
            topics=[types.AddPartitionsToTxnTopic(name=name, partitions=[0]) for name in topics or ("t",)],
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
        topic: str = "t",
    ) -> ErrorCode:
        types = request_types(ApiKey.PRODUCE)
        records = build_batch(
            [(self.host.clock.now_ms(), b"k", b"v" * (1 << 18 if heavy else 1), ())],
            codec=4 if heavy else 0,
            producer_id=producer[0],
            producer_epoch=producer[1],
            base_sequence=sequence,
            transactional=True,
        )
        partition = types.PartitionProduceData(index=0, records=bytes(records))
        data = types.TopicProduceData(name=topic, partition_data=[partition])
        request = types.ProduceRequest(transactional_id=TID, acks=-1, timeout=5_000, topic_data=[data])
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
            codes = await verify(*arguments)
            await gate.wait()
            return codes

        def later(*arguments: Any) -> Reply[Any]:
            return Reply.later(asyncio.ensure_future(wait(*arguments)))

        transactions.verify_partitions = later  # type: ignore[method-assign]
        return gate

    def slow_markers(self) -> asyncio.Event:
        gate = asyncio.Event()
        sender = self.node.transactions.markers
        deliver = sender._deliver

        async def wait(*arguments: Any) -> Any:
            await gate.wait()
            return await deliver(*arguments)

        sender._deliver = lambda *arguments: Reply.later(asyncio.ensure_future(wait(*arguments)))
        return gate

    def is_open(self, tp: TopicPartition = TP) -> bool:
        """Whether anything holds back a partition's last stable offset."""
        log = self.node.replicas.partition(tp).log
        return log.last_stable_offset != log.high_watermark

    def state(self) -> TransactionMetadata:
        (found,) = [
            shard.transactions[TID] for shard in self.node.transactions.shards() if TID in shard.transactions
        ]
        return found

    async def end_code(
        self, caller: Caller, producer: tuple[int, int], version: int, *, commit: bool = True
    ) -> ErrorCode:
        types = request_types(ApiKey.END_TXN)
        request = types.EndTxnRequest(
            transactional_id=TID, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )
        return ErrorCode((await caller.call(ApiKey.END_TXN, request, version=version)).error_code)

    async def committed(self, topic: str = "t") -> list[bytes]:
        """What a read_committed consumer gets."""
        reader = CommittedReader(
            "reader",
            self.caller(),
            TxnHistory(),
            TopicPartition(topic, 0),
            {topic: ZERO_UUID},
            random.Random(1),
        )
        reader.seen.position = self.node.replicas.partition(TopicPartition(topic, 0)).log.log_start_offset
        while await reader.poll(11) > reader.seen.position:
            pass
        return [value for _, value in reader.seen.polled]

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
