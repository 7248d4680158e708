"""A broker that is everything a transactional producer talks to, and answers by a script."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from odradek.client.client import Client
from odradek.client.transaction_states import State
from odradek.client.transactional import TransactionalProducer
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, fake_broker

T0 = TopicPartition("t", 0)


class Coordinator:
    """Answers as a broker that is everything at once. `script` has the codes to give first, by API."""

    def __init__(self, broker: FakeBroker, version: int) -> None:
        self.broker = broker
        self.version = version
        self.identity = ProducerIdAndEpoch(70, 0)
        self.script: dict[ApiKey, list[Any]] = {}
        broker.features = {"transaction.version": version}
        for api_key in (
            ApiKey.FIND_COORDINATOR,
            ApiKey.INIT_PRODUCER_ID,
            ApiKey.ADD_PARTITIONS_TO_TXN,
            ApiKey.ADD_OFFSETS_TO_TXN,
            ApiKey.TXN_OFFSET_COMMIT,
            ApiKey.PRODUCE,
            ApiKey.END_TXN,
        ):
            answer = getattr(self, api_key.name.lower())
            broker.handlers[api_key] = self.scripted(api_key, answer)

    def scripted(self, api_key: ApiKey, answer: Callable[[Any, int], Any]) -> Callable[[Any], Any]:
        def handler(request: Any) -> Any:
            codes = self.script.get(api_key)
            code = codes.pop(0) if codes else 0
            if isinstance(code, type):
                raise code
            return answer(request, int(code))

        return handler

    def names(self) -> list[str]:
        """The requests seen, in order, without those that are no step of a transaction."""
        plain = (ApiKey.API_VERSIONS, ApiKey.METADATA, ApiKey.FIND_COORDINATOR)
        return [ApiKey(key).name for key, _, _ in self.broker.seen if key not in plain]

    def versions(self, api_key: ApiKey) -> set[int]:
        return {version for key, version, _ in self.broker.seen if key == api_key}

    def bump(self, request: Any) -> None:
        self.identity = ProducerIdAndEpoch(request.producer_id, request.producer_epoch + 1)

    def find_coordinator(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.FIND_COORDINATOR)
        found = [
            types.Coordinator(key=key, node_id=1, host="127.0.0.1", port=self.broker.port, error_code=code)
            for key in request.coordinator_keys
        ]
        return types.FindCoordinatorResponse(coordinators=found)

    def init_producer_id(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.INIT_PRODUCER_ID)
        if not code and request.producer_id >= 0:
            self.bump(request)
        return types.InitProducerIdResponse(
            error_code=code,
            producer_id=self.identity.producer_id,
            producer_epoch=self.identity.producer_epoch,
        )

    def add_partitions_to_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.ADD_PARTITIONS_TO_TXN)
        (transaction,) = request.transactions
        topics = [
            types.AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    types.AddPartitionsToTxnPartitionResult(partition_index=i, partition_error_code=code)
                    for i in topic.partitions
                ],
            )
            for topic in transaction.topics
        ]
        result = types.AddPartitionsToTxnResult(
            transactional_id=transaction.transactional_id, topic_results=topics
        )
        return types.AddPartitionsToTxnResponse(results_by_transaction=[result])

    def add_offsets_to_txn(self, request: Any, code: int) -> Any:
        return response_types(ApiKey.ADD_OFFSETS_TO_TXN).AddOffsetsToTxnResponse(error_code=code)

    def txn_offset_commit(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.TXN_OFFSET_COMMIT)
        topics = [
            types.TxnOffsetCommitResponseTopic(
                name=topic.name,
                partitions=[
                    types.TxnOffsetCommitResponsePartition(partition_index=p.partition_index, error_code=code)
                    for p in topic.partitions
                ],
            )
            for topic in request.topics
        ]
        return types.TxnOffsetCommitResponse(topics=topics)

    def produce(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.PRODUCE)
        topics = [
            types.TopicProduceResponse(
                name=topic.name,
                topic_id=topic.topic_id,
                partition_responses=[
                    types.PartitionProduceResponse(
                        index=part.index, error_code=code, base_offset=-1 if code else 0
                    )
                    for part in topic.partition_data
                ],
            )
            for topic in request.topic_data
        ]
        return types.ProduceResponse(responses=topics)

    def end_txn(self, request: Any, code: int) -> Any:
        types = response_types(ApiKey.END_TXN)
        if not code and self.version >= 2:
            self.bump(request)
            return types.EndTxnResponse(
                producer_id=self.identity.producer_id, producer_epoch=self.identity.producer_epoch
            )
        return types.EndTxnResponse(error_code=code)


Scenario = Callable[[Coordinator, TransactionalProducer], Awaitable[None]]


def run(scenario: Scenario, version: int = 2, init: bool = True, **options: Any) -> None:
    async def outer() -> None:
        async with fake_broker() as broker:
            coordinator = Coordinator(broker, version)
            async with Client(broker.address, retry_backoff_ms=1, retry_backoff_max_ms=2) as client:
                producer = TransactionalProducer(client, "x", **{"max_block_ms": 20_000, **options})
                if init:
                    await producer.init_transactions()
                await scenario(coordinator, producer)
                if producer.state is not State.FATAL_ERROR:
                    coordinator.script.clear()
                await producer.close()

    asyncio.run(outer())


async def one_transaction(producer: TransactionalProducer) -> None:
    producer.begin()
    await producer.send("t", b"v", partition=0)
    await producer.send_offsets({T0: 5}, "g")
    await producer.commit()
