"""Producers against a broker that follows Kafka's rules on a line that breaks as Hypothesis likes it.

Whatever is acknowledged is in the log once and in order; whatever is committed is there whole, and what is
not committed is not seen.
"""

import asyncio
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from odradek.client.client import Client
from odradek.client.producer import Producer
from odradek.client.transaction_errors import AbortableError, OutcomeUnknownError
from odradek.client.transaction_states import State
from odradek.client.transactional import TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import ProducerIdAndEpoch
from odradek.records.batch import iter_batches, iter_records
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, fake_broker

E = ErrorCode
KEPT_BATCHES = 5


class Entry(NamedTuple):
    """A record in the log: its value, and as whom it was written."""

    value: bytes
    identity: ProducerIdAndEpoch


class ModelBroker:
    """Sequences, epochs and transactions as brokers check them; `faults` are used up request by request."""

    def __init__(self, broker: FakeBroker, version: int, faults: list[str]) -> None:
        self.version, self.faults = version, list(faults)
        self.log: list[Entry] = []
        self.identity = ProducerIdAndEpoch(70, -1)
        self.partition_epoch = -1
        self.recent: list[tuple[int, int, int]] = []  # first and last sequence, base offset
        self.open_from: int | None = None
        self.visible: list[bytes] = []
        self.last_end: tuple[int, bool] | None = None
        self.added = False
        broker.features = {"transaction.version": version}
        for api_key in (
            ApiKey.FIND_COORDINATOR, ApiKey.INIT_PRODUCER_ID, ApiKey.ADD_PARTITIONS_TO_TXN, ApiKey.PRODUCE,
            ApiKey.END_TXN,
        ):  # fmt: skip
            broker.handlers[api_key] = self.faulty(api_key)
        self.port = broker.port

    def faulty(self, api_key: ApiKey) -> Any:
        serve = getattr(self, api_key.name.lower())

        def handler(request: Any) -> Any:
            fault = self.faults.pop(0) if self.faults else "none"
            if fault == "lost":
                raise HangUp
            if fault in ("busy", "refused"):
                return serve(request, self.error(api_key, fault))
            answer = serve(request, 0)
            if fault == "unanswered":
                raise HangUp
            return answer

        return handler

    def error(self, api_key: ApiKey, fault: str) -> int:
        if api_key is ApiKey.PRODUCE:
            return E.NOT_LEADER_OR_FOLLOWER if fault == "busy" else E.MESSAGE_TOO_LARGE
        return E.COORDINATOR_NOT_AVAILABLE

    def find_coordinator(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.FIND_COORDINATOR)
        found = types.Coordinator(
            key=request.coordinator_keys[0], node_id=1, host="127.0.0.1", port=self.port, error_code=code
        )
        return types.FindCoordinatorResponse(coordinators=[found])

    def init_producer_id(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.INIT_PRODUCER_ID)
        if code:
            return types.InitProducerIdResponse(error_code=code)
        if self.open_from is not None:
            self.end(False)
        self.identity = self.identity._replace(producer_epoch=self.identity.producer_epoch + 1)
        self.last_end = None
        return types.InitProducerIdResponse(
            producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch
        )

    def add_partitions_to_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        if not code:
            self.added = True
        part = types.AddPartitionsToTxnPartitionResult(partition_index=0, partition_error_code=code)
        topic = types.AddPartitionsToTxnTopicResult(name="t", results_by_partition=[part])
        result = types.AddPartitionsToTxnResult(transactional_id="x", topic_results=[topic])
        return types.AddPartitionsToTxnResponse(results_by_transaction=[result])

    def produce(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.PRODUCE)
        (topic,) = request.topic_data
        (part,) = topic.partition_data
        (batch,) = iter_batches(part.records)
        base = -1
        if not code:
            code, base = self.append(part.records, batch, request.transactional_id is not None)
        answer = types.PartitionProduceResponse(index=0, error_code=code, base_offset=base)
        found = types.TopicProduceResponse(
            name=topic.name, topic_id=topic.topic_id, partition_responses=[answer]
        )
        return types.ProduceResponse(responses=[found])

    def append(self, data: Any, batch: Any, transactional: bool) -> tuple[int, int]:
        if batch.producer_epoch < self.partition_epoch:
            return E.INVALID_PRODUCER_EPOCH, -1
        if transactional and batch.producer_epoch != self.identity.producer_epoch:
            return E.INVALID_PRODUCER_EPOCH, -1
        if transactional and self.version == 1 and not self.added:
            return E.INVALID_TXN_STATE, -1
        if batch.producer_epoch == self.partition_epoch:
            for first, last, base in self.recent:
                if (first, last) == (batch.base_sequence, batch.last_sequence):
                    return 0, base
            if self.recent and batch.base_sequence != self.recent[-1][1] + 1:
                return E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        elif batch.base_sequence and self.partition_epoch >= 0:
            return E.OUT_OF_ORDER_SEQUENCE_NUMBER, -1
        if batch.producer_epoch != self.partition_epoch:
            self.partition_epoch, self.recent = batch.producer_epoch, []
        base = len(self.log)
        self.recent = [*self.recent, (batch.base_sequence, batch.last_sequence, base)][-KEPT_BATCHES:]
        if transactional and self.open_from is None:
            self.open_from = base
        identity = ProducerIdAndEpoch(batch.producer_id, batch.producer_epoch)
        self.log += [Entry(bytes(record.value or b""), identity) for record in iter_records(data, batch)]
        return 0, base

    def end_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.END_TXN)
        if code:
            return types.EndTxnResponse(error_code=code)
        epoch = request.producer_epoch
        if self.version == 2 and self.last_end == (epoch, request.committed):
            return self.ended(types)
        if epoch != self.identity.producer_epoch:
            return types.EndTxnResponse(error_code=E.PRODUCER_FENCED)
        if self.version == 1:
            if not self.added and self.open_from is None:
                again = self.last_end == (epoch, request.committed)
                return types.EndTxnResponse(error_code=E.NONE if again else E.INVALID_TXN_STATE)
            self.end(request.committed)
            self.last_end = (epoch, request.committed)
            return types.EndTxnResponse()
        self.end(request.committed)
        self.last_end = (epoch, request.committed)
        self.identity = self.identity._replace(producer_epoch=epoch + 1)
        self.partition_epoch, self.recent = max(self.partition_epoch, epoch + 1), []
        return self.ended(types)

    def ended(self, types: Any) -> Any:
        return types.EndTxnResponse(
            producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch
        )

    def end(self, committed: bool) -> None:
        if self.open_from is not None and committed:
            self.visible += [entry.value for entry in self.log[self.open_from :]]
        if self.open_from is not None:
            self.log.append(Entry(b"marker", self.identity))
        self.open_from = None
        self.added = False


FAULTS = st.lists(
    st.sampled_from(["none", "none", "none", "lost", "unanswered", "busy", "refused"]), max_size=60
)
FAST = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2}


def examples(count: int) -> Any:
    return settings(
        max_examples=count, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True
    )


@examples(150)
@given(faults=FAULTS, batches=st.lists(st.integers(1, 4), min_size=1, max_size=25))
def test_what_an_idempotent_producer_acknowledges_is_there_once_and_in_order(
    faults: list[str], batches: list[int]
) -> None:
    async def scenario() -> None:
        async with fake_broker() as broker, Client(broker.address, **FAST) as client:
            model = ModelBroker(broker, 2, faults)
            sent: list[tuple[bytes, Any]] = []
            async with Producer(client, batch_bytes=120) as producer:
                for number, count in enumerate(batches):
                    for i in range(count):
                        value = b"%03d-%d" % (number, i)
                        sent.append((value, await producer.send("t", value)))
                    await asyncio.sleep(0)
            there = [entry.value for entry in model.log]
            acknowledged = [value for value, future in sent if future.exception() is None]
            assert len(there) == len(set(there))
            assert [value for value in there if value in set(acknowledged)] == acknowledged
            for value, future in sent:
                if future.exception() is None:
                    assert there[future.result().offset] == value

    asyncio.run(scenario())


@pytest.mark.parametrize("version", [1, 2])
@examples(120)
@given(faults=FAULTS, plan=st.lists(st.tuples(st.integers(0, 6), st.booleans()), min_size=1, max_size=8))
def test_what_is_committed_is_seen_whole_and_nothing_else_is(
    version: int, faults: list[str], plan: list[tuple[int, bool]]
) -> None:
    async def scenario() -> None:
        kept: list[bytes] = []
        async with fake_broker() as broker, Client(broker.address, **FAST) as client:
            model = ModelBroker(broker, version, faults)
            producer = TransactionalProducer(client, "x", batch_bytes=120)
            await producer.init_transactions()
            for number, (count, commits) in enumerate(plan):
                values = [b"%03d-%d" % (number, i) for i in range(count)]
                producer.begin()
                try:
                    for value in values:
                        await producer.send("t", value)
                        await asyncio.sleep(0)
                    if commits:
                        await ended(producer.commit)
                        kept += values
                    else:
                        await ended(producer.abort)
                except AbortableError:
                    await ended(producer.abort)
                assert producer.state is State.READY
            await producer.close()
            assert model.visible == kept
            assert model.open_from is None

    async def ended(end: Any) -> None:
        while True:
            try:
                return await end()
            except OutcomeUnknownError:
                continue

    try:
        asyncio.run(scenario())
    except KafkaError as e:
        raise AssertionError(f"nothing here is fatal: {e}") from e
