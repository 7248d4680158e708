"""The producer: sequences without gaps, retries in order, and failures that reach the sender."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from odradek.client.client import Client
from odradek.client.producer import Producer
from odradek.core.errors import ErrorCode, KafkaError, RecordError
from odradek.records.batch import BatchMeta, iter_batches, iter_records
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import response_types
from tests.unit.client.fake_broker import FakeBroker, HangUp, Silence, fake_broker, in_turn, topic_id

TYPES = response_types(ApiKey.PRODUCE)


class Log:
    """Takes produce requests as a leader would; `fail` may answer in its place (code, or an exception)."""

    def __init__(self, broker: FakeBroker) -> None:
        self.batches: dict[int, list[tuple[BatchMeta, list[bytes | None]]]] = {}
        self.fail: Callable[[int, int], Any] = lambda _attempt, _partition: 0
        self.attempts = 0
        broker.handlers[ApiKey.PRODUCE] = self.produce
        ids = response_types(ApiKey.INIT_PRODUCER_ID)
        broker.handlers[ApiKey.INIT_PRODUCER_ID] = lambda _: ids.InitProducerIdResponse(
            producer_id=77, producer_epoch=0
        )

    def produce(self, request: Any) -> Any:
        self.attempts += 1
        topics = []
        for topic in request.topic_data:
            answers = []
            for part in topic.partition_data:
                code = self.fail(self.attempts, part.index)
                if isinstance(code, type):
                    raise code
                answers.append(self.append(part, code))
            topics.append(
                TYPES.TopicProduceResponse(
                    name=topic.name, topic_id=topic.topic_id, partition_responses=answers
                )
            )
        return None if request.acks == 0 else TYPES.ProduceResponse(responses=topics)

    def append(self, part: Any, code: Any) -> Any:
        if not isinstance(code, int):
            return TYPES.PartitionProduceResponse(index=part.index, base_offset=-1, **code)
        if code:
            return TYPES.PartitionProduceResponse(index=part.index, error_code=code, base_offset=-1)
        log = self.batches.setdefault(part.index, [])
        base = sum(len(values) for _, values in log)
        for batch in iter_batches(part.records):
            if batch.producer_id >= 0 and batch.base_sequence != self.expected(part.index, batch):
                return TYPES.PartitionProduceResponse(index=part.index, error_code=45, base_offset=-1)
            log.append((batch, [record.value for record in iter_records(part.records, batch)]))
        return TYPES.PartitionProduceResponse(index=part.index, base_offset=base)

    def expected(self, partition: int, batch: BatchMeta) -> int:
        """The sequence after the last one of this producer and epoch."""
        mine = [len(v) for b, v in self.batches[partition] if b.producer_epoch == batch.producer_epoch]
        return sum(mine)

    def values(self, partition: int = 0) -> list[bytes | None]:
        return [value for _, values in self.batches.get(partition, []) for value in values]


def client_of(broker: FakeBroker, **options: Any) -> Client:
    return Client(broker.address, **{"retry_backoff_ms": 1, "retry_backoff_max_ms": 5, **options})


def run(scenario: Callable[[FakeBroker, Log, Client], Any], **options: Any) -> None:
    async def outer() -> None:
        async with fake_broker() as broker, client_of(broker, **options) as client:
            await scenario(broker, Log(broker), client)

    asyncio.run(outer())


def test_records_arrive_in_order_with_contiguous_sequences() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        async with Producer(client, batch_bytes=300) as producer:
            futures = [await producer.send("t", b"%d" % i) for i in range(100)]
        assert [future.result().offset for future in futures] == list(range(100))
        assert log.values() == [b"%d" % i for i in range(100)]
        assert len(log.batches[0]) > 5
        expected = 0
        for batch, values in log.batches[0]:
            assert (batch.producer_id, batch.base_sequence) == (77, expected)
            expected += len(values)

    run(scenario)


def test_a_retry_keeps_order_and_sequence() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        failures = {1: ErrorCode.NOT_LEADER_OR_FOLLOWER, 2: HangUp, 4: ErrorCode.NOT_ENOUGH_REPLICAS}
        log.fail = lambda attempt, _: failures.get(attempt, 0)
        async with Producer(client, batch_bytes=100) as producer:
            for i in range(20):
                await producer.send("t", b"%d" % i)
        assert log.values() == [b"%d" % i for i in range(20)]
        sequences = [batch.base_sequence for batch, _ in log.batches[0]]
        assert sequences == sorted(sequences)
        assert sequences[0] == 0
        assert len(broker.requests(ApiKey.METADATA)) > 1

    run(scenario)


def test_a_duplicate_counts_as_delivered() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda _attempt, _partition: ErrorCode.DUPLICATE_SEQUENCE_NUMBER
        async with Producer(client) as producer:
            assert (await (await producer.send("t", b"x"))).offset == -1

    run(scenario)


def test_a_refused_batch_fails_alone_and_leaves_no_gap() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda attempt, _: ErrorCode.MESSAGE_TOO_LARGE if attempt == 1 else 0
        async with Producer(client) as producer:
            refused = await producer.send("t", b"big")
            await producer.flush()
            with pytest.raises(KafkaError) as error:
                await refused
            assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
            await (await producer.send("t", b"small"))
        assert [batch.base_sequence for batch, _ in log.batches[0]] == [0]

    run(scenario)


def test_bad_records_are_named() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        reason = TYPES.BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")
        log.fail = lambda _attempt, _partition: {
            "error_code": 87,
            "record_errors": [reason],
            "error_message": "bad records",
        }
        async with Producer(client) as producer:
            futures = [await producer.send("t", b"x") for _ in range(2)]
            with pytest.raises(RecordError, match="bad records") as error:
                await futures[0]
            assert error.value.records == ((1, "no key"),)
            with pytest.raises(RecordError):
                await futures[1]

    run(scenario)


def test_an_idempotent_producer_takes_the_next_epoch_when_a_batch_is_lost_from_sight() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        async with Producer(client, delivery_timeout_ms=200) as producer:
            await (await producer.send("t", b"seen"))
            log.fail = lambda _attempt, _partition: HangUp
            future = await producer.send("t", b"lost")
            with pytest.raises(OSError):  # noqa: PT011
                await future
            log.fail = lambda _attempt, _partition: 0
            delivered = None
            while delivered is None:
                try:
                    delivered = await (await producer.send("t", b"next"))
                except TimeoutError:  # a busy machine may not make the short deadline at once
                    continue
        assert log.values() == [b"seen", b"next"]
        (first, _), (second, _) = log.batches[0]
        assert (first.producer_epoch, first.base_sequence) == (0, 0)
        assert second.producer_epoch > 0
        assert (second.producer_id, second.base_sequence) == (77, 0)

    run(scenario)


def test_up_to_five_batches_are_under_way_to_a_partition() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        take, released = log.produce, asyncio.Event()
        under_way = most = 0

        async def later(request: Any) -> Any:
            nonlocal under_way, most
            under_way += 1
            most = max(most, under_way)
            answer = take(request)
            await released.wait()
            under_way -= 1
            return answer

        async with Producer(client, batch_bytes=60) as producer:
            await (await producer.send("t", b"first"))
            broker.handlers[ApiKey.PRODUCE] = later
            futures = [await producer.send("t", bytes([i]) * 60) for i in range(12)]
            while under_way < 5:
                await asyncio.sleep(0.001)
            await asyncio.sleep(0.02)
            assert most == 5
            released.set()
            assert [(await future).offset for future in futures] == list(range(1, 13))

    run(scenario)


def test_the_first_batch_to_a_partition_goes_alone() -> None:
    """A leader without a memory of the producer would take the second for the first (Apache Kafka does)."""

    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda attempt, _: ErrorCode.NOT_LEADER_OR_FOLLOWER if attempt == 1 else 0
        log.expected = lambda partition, batch: (  # type: ignore[method-assign]
            Log.expected(log, partition, batch) if log.batches[partition] else batch.base_sequence
        )
        async with Producer(client, batch_bytes=60) as producer:
            futures = [await producer.send("t", bytes([i]) * 60) for i in range(4)]
        assert [future.result().offset for future in futures] == [0, 1, 2, 3]

    run(scenario)


def test_a_refused_batch_among_others_under_way_lets_them_follow_under_the_next_epoch() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda attempt, _: ErrorCode.MESSAGE_TOO_LARGE if attempt == 2 else 0
        async with Producer(client, batch_bytes=60) as producer:
            await (await producer.send("t", bytes(60)))
            futures = [await producer.send("t", bytes([i]) * 60) for i in range(1, 8)]
            results = await asyncio.gather(*futures, return_exceptions=True)
        assert isinstance(results[0], KafkaError)
        assert log.values() == [bytes([i]) * 60 for i in (0, 2, 3, 4, 5, 6, 7)]
        assert [(b.producer_epoch, b.base_sequence) for b, _ in log.batches[0]] == [
            (0, 0), *((1, i) for i in range(6))
        ]  # fmt: skip

    run(scenario)


@pytest.mark.parametrize(
    "code", [ErrorCode.UNKNOWN_PRODUCER_ID, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER], ids=lambda c: c.name
)
def test_where_the_broker_has_lost_a_producer_it_goes_on_under_its_next_epoch(code: ErrorCode) -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        async with Producer(client) as producer:
            await (await producer.send("t", b"a"))
            log.fail = lambda attempt, _: code if attempt == 2 else 0
            await (await producer.send("t", b"b"))
        assert [(b.producer_epoch, b.base_sequence) for b, _ in log.batches[0]] == [(0, 0), (1, 0)]

    run(scenario)


def test_after_the_last_epoch_comes_a_new_producer_id() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        ids = response_types(ApiKey.INIT_PRODUCER_ID)
        broker.handlers[ApiKey.INIT_PRODUCER_ID] = in_turn(
            ids.InitProducerIdResponse(producer_id=77, producer_epoch=32_767),
            ids.InitProducerIdResponse(producer_id=78, producer_epoch=0),
        )
        log.fail = lambda attempt, _: ErrorCode.UNKNOWN_PRODUCER_ID if attempt == 1 else 0
        async with Producer(client) as producer:
            await (await producer.send("t", b"a"))
        ((batch, _),) = log.batches[0]
        assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (78, 0, 0)

    run(scenario)


def test_a_fenced_idempotent_producer_is_finished() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda _attempt, _partition: ErrorCode.PRODUCER_FENCED
        producer = Producer(client)
        with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
            await (await producer.send("t", b"x"))
        with pytest.raises(KafkaError, match="PRODUCER_FENCED"):
            await producer.send("t", b"y")
        await producer.close()

    run(scenario)


def test_without_idempotence_a_lost_batch_does_not_stop_the_producer() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda _attempt, _partition: HangUp
        async with Producer(client, acks=1, delivery_timeout_ms=50) as producer:
            future = await producer.send("t", b"x")
            with pytest.raises(OSError):  # noqa: PT011
                await future
            log.fail = lambda _attempt, _partition: 0
            delivered = None
            while delivered is None:
                try:
                    delivered = await (await producer.send("t", b"y"))
                except TimeoutError:  # a busy machine may not make the short deadline at once
                    continue
        (batch, _values) = log.batches[0][0]
        assert (batch.producer_id, batch.base_sequence) == (-1, -1)

    run(scenario)


def test_acks_0_waits_for_no_answer() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        async with Producer(client, acks=0) as producer:
            delivery = await (await producer.send("t", b"x"))
            assert delivery.offset == -1
            await client.refresh()  # answered after the produce has been taken
        assert log.values() == [b"x"]

    run(scenario)


def test_idempotence_needs_all_acks() -> None:
    async def scenario(_broker: FakeBroker, _log: Log, client: Client) -> None:
        with pytest.raises(ValueError, match="acks"):
            Producer(client, acks=1, idempotent=True)

    run(scenario)


def test_keys_keep_their_partition_and_records_without_key_spread() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        broker.topics = {"t": 4}
        async with Producer(client, batch_bytes=200) as producer:
            keyed = [await producer.send("t", b"v", key=b"same") for _ in range(10)]
            loose = [await producer.send("t", b"v") for _ in range(200)]
            with pytest.raises(KafkaError):
                await producer.send("t", b"v", partition=9)
            fixed = await producer.send("t", b"v", partition=3)
        assert len({future.result().partition for future in keyed}) == 1
        assert {future.result().partition for future in loose} == {0, 1, 2, 3}
        assert fixed.result().partition == 3

    run(scenario)


def test_records_without_key_begin_at_a_random_partition_and_stay_there_for_a_batch() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        broker.topics = {"t": 4}
        begun = set()
        for seed in range(20):
            client.runtime.rng.seed(seed)
            async with Producer(client, batch_bytes=200) as producer:
                sent = []
                for _ in range(20):
                    sent.append(await (await producer.send("t", b"v" * 29)))
            partitions = [delivery.partition for delivery in sent]
            begun.add(partitions[0])
            assert [partitions[i : i + 4] for i in range(0, 20, 4)] == [
                [(partitions[0] + turn) % 4] * 4 for turn in range(5)
            ]
        assert begun == {0, 1, 2, 3}

    run(scenario)


def test_linger_gathers_and_flush_does_not_wait_for_it() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        async with Producer(client, linger_ms=60_000) as producer:
            for i in range(5):
                await producer.send("t", b"%d" % i)
                await asyncio.sleep(0)
            assert not log.batches
            await producer.flush()
            assert [len(values) for _, values in log.batches[0]] == [5]

    run(scenario)


def test_a_full_buffer_holds_the_sender_back() -> None:
    async def scenario(_broker: FakeBroker, log: Log, client: Client) -> None:
        log.fail = lambda _attempt, _partition: Silence
        producer = Producer(client, buffer_bytes=2_000, batch_bytes=1_000, delivery_timeout_ms=30)
        first = await producer.send("t", bytes(1_500))
        blocked = asyncio.create_task(producer.send("t", bytes(1_500)))
        await asyncio.sleep(0.02)
        assert not blocked.done()
        with pytest.raises(OSError):  # noqa: PT011
            await first
        with pytest.raises(OSError):  # noqa: PT011
            await (await blocked)
        await producer.close()

    run(scenario, request_timeout_ms=60)


def test_topics_are_sent_by_name_to_brokers_without_topic_ids() -> None:
    async def scenario(broker: FakeBroker, log: Log, client: Client) -> None:
        broker.api_limits = {ApiKey.METADATA: (0, 9)}
        async with Producer(client) as producer:
            await (await producer.send("t", b"x"))
        versions = [version for key, version, _ in broker.seen if key == ApiKey.PRODUCE]
        assert versions == [12]
        assert broker.requests(ApiKey.PRODUCE)[0].topic_data[0].name == "t"

    run(scenario)


def test_topics_are_sent_by_id_where_it_is_known() -> None:
    async def scenario(broker: FakeBroker, _log: Log, client: Client) -> None:
        async with Producer(client) as producer:
            await (await producer.send("t", b"x"))
        assert broker.requests(ApiKey.PRODUCE)[0].topic_data[0].topic_id == topic_id("t")

    run(scenario)
