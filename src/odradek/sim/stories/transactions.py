"""A story with one node and many transactions: producers, pipelines and readers, and the faults of the seed.

Some transactional ids have two producers that fence each other. Faults hit the node as in single_node.py.
When the clients have ended and all timeouts have passed, the logs are checked.
"""

import asyncio
import random
from collections.abc import Callable, Coroutine, Iterable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from odradek.broker.node import Node
from odradek.coordinators.transactions.log_format import decode
from odradek.coordinators.transactions.metadata import TransactionMetadata
from odradek.core.errors import ErrorCode
from odradek.core.types import GROUP_METADATA_TOPIC, TRANSACTION_STATE_TOPIC, TopicPartition
from odradek.records.batch import build_batch, iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.replication.led_log import LedLog
from odradek.replication.partition import Partition
from odradek.sim.checkers import transactions as checkers
from odradek.sim.checkers.txn_history import TxnHistory
from odradek.sim.stories.outcome import Outcome
from odradek.sim.stories.plan import WEIGHTS, Blow, Plan, Settings
from odradek.sim.stories.single_node import HOST
from odradek.sim.stories.story import Story, Tasks
from odradek.sim.workloads.caller import NoAnswer
from odradek.sim.workloads.consuming import fetch_committed
from odradek.sim.workloads.txn_client import TxnClient
from odradek.sim.workloads.txn_workload import GROUP, CommittedReader, Decider, Pipeline, TxnProducer
from odradek.sim.world.cluster import NodeFactory
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

SECONDS = 3.0
SHORT_MS = 10_000
INPUTS = 30
TOPICS = {"out": 3, "source": 2, "target": 2}
PRODUCERS = (("one", 2), ("two", 1), ("fighter-a", 2), ("fighter-b", 2), ("rival-a", 1), ("rival-b", 1))
"""Names and transaction versions. The transactional id is the name without the part after the dash."""
PIPELINES = (("pipe0-a", 2, 0), ("pipe0-b", 1, 0), ("pipe1-a", 2, 1))
DECIDER = "decider"
PATIENCE_SECONDS = 60.0
_DISK_BLOWS = (Blow.DISK_ERROR, Blow.DISK_FULL)


def short_plan(settings: Settings) -> Plan:
    """A plan for stories of a few seconds. Power losses only if records are flushed before their
    acknowledgement."""
    weights = {blow: weight for blow, weight in WEIGHTS.items() if blow not in _DISK_BLOWS}
    return Plan(
        weights,
        wait_seconds=2.5,
        seconds=3.75,
        down_seconds=0.3,
        calls=60,
        patience_seconds=1,
        power=settings.flush_everything,
    )


@dataclass(frozen=True, slots=True)
class TxnSettings(Settings):
    """Small internal topics, and a coordinator that often checks for expired transactions."""

    def node_config(self) -> dict[str, str]:
        return {
            **Settings.node_config(self),
            "transaction.state.log.num.partitions": "2",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "500",
            "offsets.topic.num.partitions": "1",
            "log.cleaner.enable": str(self.compacts).lower(),
            "log.cleaner.backoff.ms": "300",
            "log.cleaner.min.cleanable.ratio": "0.01",
        }

    @property
    def compacts(self) -> bool:
        """Whether the coordinators' logs are compacted. Then they do not have all decisions."""
        return self.segment_ms < SHORT_MS and self.checkpoint_interval_ms < SHORT_MS


def draw_txn_settings(rng: random.Random) -> TxnSettings:
    return TxnSettings(
        flush_everything=rng.random() < 0.3,
        flush_interval_ms=None,
        checkpoint_interval_ms=rng.choice((500, 60_000)),
        segment_ms=rng.choice((1_500, 600_000)),
        index_interval_bytes=4096,
    )


class TransactionStory(Story):
    """Producers, pipelines and readers."""

    def __init__(
        self,
        seed: int,
        factory: Callable[[Settings], NodeFactory],
        *,
        seconds: float = SECONDS,
        sink: Callable[[str], None] | None = None,
    ) -> None:
        super().__init__(seed, seconds=seconds, sink=sink)
        self._settings = draw_txn_settings(self.rng)
        self.plan = short_plan(self._settings)
        self._host = self.add_host(HOST, factory(self._settings))
        self.history = TxnHistory()
        self.oddities = self.history.oddities
        self._topic_ids: dict[str, UUID] = {}

    def count(self, outcome: Outcome) -> None:
        history = self.history
        outcome.acknowledged_commits = history.commits
        outcome.acknowledged_records = sum(len(txn.writes) for txn in history.txns)
        outcome.read_records = sum(len(reader.polled) for reader in history.readers)

    # -- the story

    async def conclude(self, clients: Tasks) -> None:
        await self._all_done(clients)
        # All open transactions are over their timeout now, however the clock has jumped.
        self._host.clock.skew_ms += 120_000
        await asyncio.sleep(2 / self._host.clock.drift.rate)
        await self._judge()

    async def _all_done(self, tasks: Tasks) -> None:
        """Wait for the clients. A client that does not finish is a violation."""
        loop = self.world.loop
        deadline = loop.time() + PATIENCE_SECONDS
        for task in tasks:
            try:
                await asyncio.wait_for(asyncio.shield(task), max(0.0, deadline - loop.time()))
            except TimeoutError:
                self.history.oddities.append(f"stuck: {task.get_name()} does not finish")
                task.cancel()

    async def prepare(self) -> None:
        admin = self.caller("admin")
        types = request_types(ApiKey.CREATE_TOPICS)
        topics = [
            types.CreatableTopic(name=name, num_partitions=count, replication_factor=1)
            for name, count in TOPICS.items()
        ]
        response = await admin.call(
            ApiKey.CREATE_TOPICS, types.CreateTopicsRequest(topics=topics, timeout=30_000), version=7
        )
        self._topic_ids.update({topic.name: topic.topic_id for topic in response.topics})
        types = request_types(ApiKey.PRODUCE)
        for index in range(TOPICS["source"]):
            values = [f"{index}/{number}".encode() for number in range(INPUTS)]
            self.history.inputs[TopicPartition("source", index)] = values
            data = build_batch([(self._host.clock.now_ms(), b"k", value, ()) for value in values])
            partition = types.PartitionProduceData(index=index, records=bytes(data))
            topic = types.TopicProduceData(name="source", partition_data=[partition])
            request = types.ProduceRequest(transactional_id=None, acks=-1, timeout=5_000, topic_data=[topic])
            answer = await admin.call(ApiKey.PRODUCE, request, version=9)
            assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        # FindCoordinator creates the internal topic.
        types = request_types(ApiKey.FIND_COORDINATOR)
        for key_type, key in ((0, GROUP), (1, "one")):
            request = types.FindCoordinatorRequest(key_type=key_type, coordinator_keys=[key])
            answer = await admin.call(ApiKey.FIND_COORDINATOR, request, version=4)
            assert answer.coordinators[0].error_code == ErrorCode.NONE
        admin.close()

    def clients(self) -> Iterable[tuple[str, Coroutine[Any, Any, None]]]:
        world, until = self.world, self.seconds
        out = [TopicPartition("out", index) for index in range(TOPICS["out"])]
        for name, version in PRODUCERS:
            client = self._client(name, version)
            yield name, TxnProducer(name, client, out, world.rng_for(name)).run(until)
        decider = Decider(DECIDER, self._client(DECIDER, 2), out, world.rng_for(DECIDER))
        yield DECIDER, decider.run(until)
        for name, version, index in PIPELINES:
            source, target = TopicPartition("source", index), TopicPartition("target", index)
            client = self._client(name, version)
            pipeline = Pipeline(name, client, source, target, self._topic_ids, world.rng_for(name))
            yield name, pipeline.run(until)
        for tp in out:
            yield f"reader{tp.partition}", self._reader(f"reader{tp.partition}", tp).run(until)

    def _client(self, name: str, version: int) -> TxnClient:
        return TxnClient(
            name.split("-")[0],
            self.caller(name),
            self.history,
            self._topic_ids,
            self.world.rng_for(f"{name}:client"),
            version=version,
            now_ms=self._host.clock.now_ms,
        )

    def _reader(self, name: str, tp: TopicPartition) -> CommittedReader:
        rng = self.world.rng_for(f"{name}:reader")
        return CommittedReader(name, self.caller(name), self.history, tp, self._topic_ids, rng)

    # -- evidence

    async def _judge(self) -> None:
        node = self._host.node
        assert isinstance(node, Node)
        history, found = self.history, self.outcome.violations
        view = {tp: await self._read(tp) for tp in self._partitions("out", "target")}
        found += checkers.duplicates(view)
        found += checkers.lost_writes(history.txns, view)
        found += checkers.aborted_reads(history.txns, view)
        found += checkers.torn_transactions(history.txns, view)
        found += checkers.nonmonotonic_sends(history.txns, view)
        found += checkers.wrong_polls(history.readers, view)
        committed = await self._committed()
        for tp, inputs in history.inputs.items():
            copies = [value.split(b"#")[0] for _, value in view[TopicPartition("target", tp.partition)]]
            found += checkers.not_exactly_once(inputs, committed[tp], copies)
        logs = node.replicas.partitions
        ends = {tp: (p.log.last_stable_offset, p.log.high_watermark) for tp, p in logs.items()}
        live = {name: txn for shard in node.transactions.shards() for name, txn in shard.transactions.items()}
        found += checkers.stuck(ends, live.values())
        said = list(_transaction_log(logs))
        found += checkers.wrong_markers(
            _controls(logs),
            [txn for _, txn in said if txn is not None],
            list(logs),
            compacted=self._settings.compacts,
        )
        found += checkers.replay_differs(live, said)

    def _partitions(self, *topics: str) -> list[TopicPartition]:
        return [TopicPartition(topic, index) for topic in topics for index in range(TOPICS[topic])]

    async def _read(self, tp: TopicPartition) -> list[tuple[int, bytes]]:
        """Everything that a new consumer gets."""
        reader = self._reader(f"auditor-{tp}", tp)
        self.history.readers.remove(reader.seen)
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while asyncio.get_running_loop().time() < deadline:
            try:
                if await reader.poll() <= reader.seen.position:
                    return reader.seen.polled
            except NoAnswer:
                await asyncio.sleep(0.1)
        raise NoAnswer(f"{tp} cannot be read up to its last stable offset")

    async def _committed(self) -> dict[TopicPartition, int]:
        caller = self.caller("auditor")
        deadline = asyncio.get_running_loop().time() + PATIENCE_SECONDS
        while True:
            try:
                found = await fetch_committed(caller, GROUP, list(self.history.inputs), self._topic_ids)
            except NoAnswer:
                if asyncio.get_running_loop().time() > deadline:
                    raise
                await asyncio.sleep(0.1)
                continue
            return {tp: max(0, offset) for tp, offset in found.items()}


def _batches(partition: Partition) -> Iterable[tuple[bytes, Any]]:
    log = LedLog(partition)
    offset = log.log_start_offset
    while offset < log.log_end_offset:
        data = log.read(offset, 1 << 20)
        for batch in iter_batches(data):
            yield data, batch
            offset = batch.last_offset + 1


def _transaction_log(
    logs: dict[TopicPartition, Partition],
) -> Iterable[tuple[str, TransactionMetadata | None]]:
    for tp, partition in logs.items():
        if tp.topic == TRANSACTION_STATE_TOPIC:
            for data, batch in _batches(partition):
                for record in iter_records(data, batch):
                    decoded = decode(record.key, record.value)
                    assert decoded is not None
                    yield decoded


def _controls(logs: dict[TopicPartition, Partition]) -> Iterable[checkers.Control]:
    for tp, partition in logs.items():
        if tp.topic in TOPICS or tp.topic == GROUP_METADATA_TOPIC:
            for data, batch in _batches(partition):
                if batch.is_control:
                    (record,) = iter_records(data, batch)
                    commit = parse_control_key(record.key) is ControlType.COMMIT
                    yield checkers.Control(tp, record.offset, batch.producer_id, batch.producer_epoch, commit)
