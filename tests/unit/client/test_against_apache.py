"""The client against Apache Kafka: every codec, groups, transactions read back, administration."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from typing import Any
from uuid import uuid4

import pytest

from odradek.client.admin import BROKER, EARLIEST, LATEST, MAX_TIMESTAMP, SET, TOPIC, Admin
from odradek.client.client import Client
from odradek.client.consumer import READ_COMMITTED, Consumer
from odradek.client.partition_reader import ConsumerRecord
from odradek.client.producer import Producer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.records.compression import CODEC_NAMES
from odradek.runtime.ports import free_port
from tests.support import peer

pytestmark = [pytest.mark.apache, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def apache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("peer") / "k"
    address = peer.start(directory, free_port())
    yield address
    peer.stop(directory)


Scenario = Callable[[Client, Admin, str], Coroutine[Any, Any, None]]


def run(apache: str, scenario: Scenario, partitions: int = 1, **configs: str) -> None:
    """The scenario with a topic of its own."""

    async def outer() -> None:
        async with Client(apache) as client:
            admin = Admin(client)
            topic = f"t-{uuid4().hex[:8]}"
            await admin.create_topics({topic: partitions}, configs=configs)
            await scenario(client, admin, topic)

    asyncio.run(outer())


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    records: list[ConsumerRecord] = []
    async with asyncio.timeout(60):
        while len(records) < count:
            records += await consumer.poll(1_000)
    return records


@pytest.mark.parametrize("codec", CODEC_NAMES)
def test_every_codec_is_written_and_read_back(apache: str, codec: str) -> None:
    async def scenario(client: Client, _admin: Admin, topic: str) -> None:
        sent = [
            (b"k%d" % (i % 7), b"value %d " % i * 20, [("h", b"%d" % i), ("n", None)]) for i in range(500)
        ]
        async with Producer(client, compression=codec, batch_bytes=5_000) as producer:
            for i, (key, value, headers) in enumerate(sent):
                await producer.send(
                    topic, value, key=key, headers=headers, timestamp_ms=1_700_000_000_000 + i
                )
            null = await producer.send(topic, None)
        assert null.result().offset >= 0
        async with Consumer(client, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            records = await read(consumer, 501)
        assert [(r.key, r.value, list(r.headers)) for r in records[:-1]] == sent
        assert [r.offset for r in records] == list(range(501))
        assert records[3].timestamp_ms == 1_700_000_000_003
        assert (records[-1].key, records[-1].value) == (None, None)

    run(apache, scenario)


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_all_acks_work(apache: str, acks: int) -> None:
    async def scenario(client: Client, _admin: Admin, topic: str) -> None:
        async with Producer(client, acks=acks) as producer:
            delivery = await (await producer.send(topic, b"x"))
            assert delivery.offset == (-1 if acks == 0 else 0)
        async with Consumer(client, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert (await read(consumer, 1))[0].value == b"x"

    run(apache, scenario)


def test_the_brokers_time_is_reported(apache: str) -> None:
    async def scenario(client: Client, _admin: Admin, topic: str) -> None:
        async with Producer(client) as producer:
            delivery = await (await producer.send(topic, b"x", timestamp_ms=5))
        assert delivery.timestamp_ms > 1_000_000
        async with Consumer(client, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            (record,) = await read(consumer, 1)
        assert (record.timestamp_ms, record.timestamp_type) == (delivery.timestamp_ms, 1)

    run(apache, scenario, **{"message.timestamp.type": "LogAppendTime"})


def test_a_record_the_broker_refuses_fails_alone(apache: str) -> None:
    async def scenario(client: Client, _admin: Admin, topic: str) -> None:
        async with Producer(client, batch_bytes=1) as producer:
            good = await producer.send(topic, b"a")
            large = await producer.send(topic, bytes(5_000))
            after = await producer.send(topic, b"b")
            await producer.flush()
            with pytest.raises(KafkaError) as error:
                large.result()
            assert error.value.code is ErrorCode.MESSAGE_TOO_LARGE
            assert (good.result().offset, after.result().offset) == (0, 1)

    run(apache, scenario, **{"max.message.bytes": "1000"})


def test_two_members_share_a_topic_and_lose_nothing(apache: str) -> None:
    async def scenario(client: Client, admin: Admin, topic: str) -> None:
        group = f"g-{uuid4().hex[:8]}"
        options: dict[str, Any] = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "auto_commit": True,
            "heartbeat_interval_ms": 100,
            "max_wait_ms": 50,
        }
        seen: list[ConsumerRecord] = []
        first, second = Consumer(client, **options), Consumer(client, **options)

        async def poll_until(condition: Callable[[], bool], *consumers: Consumer) -> None:
            async with asyncio.timeout(60):
                while not condition():
                    for consumer in consumers:
                        seen.extend(await consumer.poll(50))

        first.subscribe([topic])
        await poll_until(lambda: len(first.assignment) == 4, first)
        second.subscribe([topic])
        await poll_until(lambda: len(first.assignment) == len(second.assignment) == 2, first, second)
        assert not set(first.assignment) & set(second.assignment)
        async with Producer(client) as producer:
            for i in range(400):
                await producer.send(topic, b"%d" % i, partition=i % 4)
        await poll_until(lambda: len(seen) >= 400, first, second)
        described = await admin.describe_group(group)
        assert (described.group_state, described.protocol_data) == ("Stable", "range")
        assert {m.member_id for m in described.members} == {first.member_id, second.member_id}
        await second.close()
        await poll_until(lambda: len(first.assignment) == 4, first)
        await first.close()
        assert sorted(int(record.value or b"") for record in seen) == list(range(400))
        committed = await admin.committed(group)
        assert {tp.partition: p.committed_offset for tp, p in committed.items()} == dict.fromkeys(
            range(4), 100
        )
        assert group in [listed.group_id for listed in await admin.list_groups()]
        await admin.delete_group(group)
        assert group not in [listed.group_id for listed in await admin.list_groups()]

    run(apache, scenario, partitions=4)


def test_read_committed_passes_over_aborted_transactions(apache: str) -> None:
    confluent_kafka = pytest.importorskip("confluent_kafka")

    async def scenario(client: Client, _admin: Admin, topic: str) -> None:
        writer = confluent_kafka.Producer({"bootstrap.servers": apache, "transactional.id": topic})
        writer.init_transactions()
        for i in range(6):
            writer.begin_transaction()
            for j in range(3):
                writer.produce(topic, value=f"{i}-{j}")
            writer.flush()  # an abort would drop what has not been sent
            writer.commit_transaction() if i % 2 == 0 else writer.abort_transaction()
        async with Consumer(client, isolation_level=READ_COMMITTED, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            committed = await read(consumer, 9)
        assert [r.value for r in committed] == [f"{i}-{j}".encode() for i in (0, 2, 4) for j in range(3)]
        async with Consumer(client, auto_offset_reset="earliest") as consumer:
            consumer.assign([TopicPartition(topic, 0)])
            assert len(await read(consumer, 18)) == 18

    run(apache, scenario)


def test_administration(apache: str) -> None:
    async def scenario(client: Client, admin: Admin, topic: str) -> None:
        tp = TopicPartition(topic, 0)
        with pytest.raises(KafkaError) as exists:
            await admin.create_topics({topic: 1})
        assert exists.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
        await admin.create_partitions({topic: 3})
        async with asyncio.timeout(30):
            while len((await client.refresh([topic])).topics[topic].partitions) < 3:
                await asyncio.sleep(0.05)
        async with Producer(client) as producer:
            for i in range(10):
                await producer.send(topic, b"x", partition=0, timestamp_ms=1_700_000_000_000 + i)
        assert (await admin.list_offsets({tp: LATEST}))[tp].offset == 10
        assert (await admin.list_offsets({tp: 1_700_000_000_004}))[tp].offset == 4
        assert (await admin.list_offsets({tp: MAX_TIMESTAMP}))[tp].offset == 9
        assert (await admin.delete_records({tp: 6}))[tp].low_watermark == 6
        assert (await admin.list_offsets({tp: EARLIEST}))[tp].offset == 6
        await admin.alter_configs(TOPIC, topic, [("retention.ms", SET, "123456")])
        configs = {entry.name: entry for entry in await admin.describe_configs(TOPIC, topic)}
        assert (configs["retention.ms"].value, configs["retention.ms"].config_source) == ("123456", 1)
        (node_id,) = client.cluster.brokers
        assert len(await admin.describe_configs(BROKER, str(node_id))) > 100
        await admin.commit("outside", {tp: 8})
        assert (await admin.committed("outside", [tp]))[tp].committed_offset == 8
        await admin.delete_topics([topic])

    run(apache, scenario)
