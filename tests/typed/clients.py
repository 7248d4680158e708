"""`odradek.client` as its users write it, annotated. Never run: two checkers read it in `make check`.

An ignored error that is none any more is an error, so each of them proves that a name is not just anything.
"""

import asyncio
from typing import assert_type

import odradek.client
from odradek.client import (
    READ_COMMITTED,
    AbortableError,
    Admin,
    BlockingClient,
    BlockingConsumer,
    BlockingProducer,
    BlockingTransactionalProducer,
    Client,
    Consumer,
    ConsumerRecord,
    Delivery,
    FatalError,
    GroupMetadata,
    OutcomeUnknownError,
    PreparedTransaction,
    Producer,
    State,
    TransactionalProducer,
)
from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition


async def records(client: Client) -> None:
    async with Producer(client, compression="zstd", linger_ms=5) as producer:
        assert_type(producer, Producer)
        queued = await producer.send("orders", b"one", key=b"ada", headers=[("trace", None)])
        assert_type(queued, asyncio.Future[Delivery])
        assert_type((await queued).offset, int)
    async with Consumer(client, group_id="billing", auto_offset_reset="earliest") as consumer:
        consumer.subscribe(["orders"])
        found = await consumer.poll(timeout_ms=1_000)
        assert_type(found, list[ConsumerRecord])
        assert_type(found[0].value, bytes | None)
        assert_type(consumer.group_metadata, GroupMetadata)
        await consumer.commit({TopicPartition("orders", 0): found[0].offset + 1})


async def transactions(client: Client, consumer: Consumer) -> None:
    async with TransactionalProducer(client, "shouting-1", transaction_timeout_ms=10_000) as producer:
        await producer.init_transactions()
        try:
            async with producer.transaction() as same:
                assert_type(same, TransactionalProducer)
                await producer.send("loud", b"ONE")
                await producer.send_offsets({TopicPartition("orders", 0): 1}, consumer.group_metadata)
        except (AbortableError, FatalError) as e:
            report(e)
        except OutcomeUnknownError:
            assert producer.state is not State.READY
        prepared = await producer.prepare()
        assert_type(prepared, PreparedTransaction)
        assert_type(await producer.complete(PreparedTransaction.parse(str(prepared))), bool)


def report(error: KafkaError) -> None:
    print(error.code.name, error.retriable)


async def administration(client: Client) -> None:
    admin = Admin(client)
    await admin.create_topics({"orders": 3}, configs={"retention.ms": "60000"})
    for group in await admin.list_groups():
        print(group.group_id)


def blocking(servers: str) -> None:
    with BlockingClient(servers, client_id="billing") as client:
        assert_type(client, BlockingClient)
        client.call(client.admin.create_topics, {"orders": 3}, validate_only=True)
        with client.producer(acks=-1) as producer:
            fill(producer)
        with client.transactional_producer("shouting-1") as transactional:
            assert_type(transactional, BlockingTransactionalProducer)
            transactional.init_transactions()
            with transactional.transaction():
                transactional.send("loud", b"ONE")
        with client.consumer(group_id="billing", isolation_level=READ_COMMITTED) as consumer:
            assert_type(drain(consumer), list[bytes | None])


def fill(producer: BlockingProducer) -> None:
    assert_type(producer.deliver("orders", b"two"), Delivery)
    producer.send("orders", b"three", on_delivery=lambda delivery, error: print(delivery, error))
    producer.flush()


def drain(consumer: BlockingConsumer) -> list[bytes | None]:
    consumer.subscribe(["orders"])
    return [record.value for record in consumer.poll(1_000)]


def mistakes_are_found(client: BlockingClient, producer: BlockingProducer) -> None:
    odradek.client.Produser  # type: ignore[attr-defined]  # noqa: B018
    producer.send("orders", "text")  # type: ignore[arg-type]
    client.call(client.admin.create_topics, ["orders"])  # type: ignore[arg-type]
    client.call(client.admin.delete_group, "billing", forced=True)  # type: ignore[call-arg]
