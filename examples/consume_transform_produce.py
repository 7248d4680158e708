"""Read orders, add a tax, write the result: records and offsets in one transaction, so each exactly once.

Client: odradek.client. It comes with Odradek, needs nothing else, and works with Apache Kafka too. Kill the
program at any time and start it again: no order is lost and none is counted twice.
"""

import argparse
import asyncio

from odradek.client import (
    READ_COMMITTED,
    AbortableError,
    Client,
    Consumer,
    ConsumerRecord,
    Producer,
    TransactionalProducer,
)
from odradek.core.types import TopicPartition

ORDERS = [(b"ada", b"42"), (b"bob", b"7"), (b"ada", b"8")]


def with_tax(value: bytes | None) -> bytes:
    return b"%.2f" % (float(value or 0) * 1.2)


async def feed(client: Client, source: str) -> None:
    async with Producer(client) as producer:
        for customer, amount in ORDERS:
            await producer.send(source, amount, key=customer)
    print(f"produced {len(ORDERS)} orders to {source}")


async def copy(
    records: list[ConsumerRecord], consumer: Consumer, producer: TransactionalProducer, sink: str
) -> None:
    """One transaction: the results, and the offsets up to which the input is done."""
    async with producer.transaction():
        for record in records:
            await producer.send(sink, with_tax(record.value), key=record.key)
        done = {TopicPartition(r.topic, r.partition): r.offset + 1 for r in records}
        await producer.send_offsets(done, consumer.group_metadata)


async def transform(client: Client, source: str, sink: str) -> None:
    group = f"{source}-tax"
    consumer = Consumer(client, group_id=group, isolation_level=READ_COMMITTED, auto_offset_reset="earliest")
    producer = TransactionalProducer(client, f"{group}-1")
    async with consumer, producer:
        consumer.subscribe([source])
        await producer.init_transactions()  # a copy of this program that is still alive is fenced
        missing = len(ORDERS)
        while missing > 0:
            records = await consumer.poll(timeout_ms=1_000)
            if not records:
                continue
            try:
                await copy(records, consumer, producer, sink)
            except AbortableError as error:
                print(f"aborted, and read again: {error}")
                for record in reversed(records):
                    consumer.seek(TopicPartition(record.topic, record.partition), record.offset)
                continue
            missing -= len(records)
            print(f"committed {len(records)} orders to {sink}")


async def main(bootstrap: str, source: str, sink: str) -> None:
    async with Client(bootstrap) as client:
        await feed(client, source)
        await transform(client, source, sink)


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("-b", "--bootstrap", default="localhost:9092")
    options.add_argument("--source", default="orders-in")
    options.add_argument("--sink", default="orders-taxed")
    given = options.parse_args()
    asyncio.run(main(given.bootstrap, given.source, given.sink))
