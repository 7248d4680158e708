"""What can be seen of a run from outside, by clients of the broker: records, transactions, decisions."""

import json
from typing import Any

from odradek.client.admin import LATEST, Admin
from odradek.client.client import Client
from odradek.client.consumer import Consumer
from odradek.client.fetching import READ_COMMITTED, READ_UNCOMMITTED
from odradek.client.partition_reader import ConsumerRecord
from odradek.core.types import TopicPartition
from odradek.spark.demo.orders import ENRICHED, ORDERS, REVENUE, parse_order, parse_revenue
from odradek.spark.demo.proof import Contents
from odradek.spark.demo.stage import PARTITIONS
from odradek.spark.ledger.ledger import (
    HISTORY_TOPIC,
    Decision,
    Stream,
    decode_decision,
    run_of,
    stream_prefix,
)

_OPEN = ("Ongoing", "PrepareCommit", "PrepareAbort")
_PREFIX = "odradek"
_AT_ONCE = 100_000


def follow(client: Client, topic: str, isolation_level: int) -> Consumer:
    """A consumer of a whole topic, from its beginning on."""
    consumer = Consumer(client, isolation_level=isolation_level)
    consumer.assign({TopicPartition(topic, partition): 0 for partition in range(PARTITIONS[topic])})
    return consumer


async def count_open(client: Client, query_id: str) -> int:
    """Transactions of a query's tasks that are neither committed nor aborted."""
    stream = Stream(query_id, "sink")
    listed = await Admin(client).list_transactions(_OPEN, stream_prefix(_PREFIX, stream))
    ids = [state.transactional_id for states in listed.values() for state in states]
    return sum(run_of(_PREFIX, stream, name) is not None for name in ids)


async def read_decisions(client: Client) -> list[tuple[Stream, Decision]]:
    """Every batch that was decided, oldest first."""
    if HISTORY_TOPIC not in (await client.retrying(lambda: client.refresh([HISTORY_TOPIC]))).topics:
        return []
    records = await read_all(client, [TopicPartition(HISTORY_TOPIC, 0)], READ_COMMITTED)
    return [decode_decision(record.value) for record in records if record.value is not None]


async def read_all(
    client: Client, partitions: list[TopicPartition], isolation_level: int
) -> list[ConsumerRecord]:
    """Everything up to where the partitions end now for a reader of this isolation."""
    listed = await Admin(client).list_offsets(
        dict.fromkeys(partitions, LATEST), isolation_level=isolation_level
    )
    found: list[ConsumerRecord] = []
    async with Consumer(client, isolation_level=isolation_level) as consumer:
        consumer.assign(dict.fromkeys(partitions, 0))
        while any((consumer.position(tp) or 0) < listed[tp].offset for tp in partitions):
            found += await consumer.poll(max_records=_AT_ONCE)
    return [r for r in found if r.offset < listed[TopicPartition(r.topic, r.partition)].offset]


async def read_contents(client: Client) -> Contents:
    """What the proof is about: the topics as readers see them, once the driver has ended."""

    async def values(topic: str, isolation_level: int = READ_COMMITTED) -> list[bytes]:
        partitions = [TopicPartition(topic, partition) for partition in range(PARTITIONS[topic])]
        return [record.value or b"" for record in await read_all(client, partitions, isolation_level)]

    enriched, revenue = await values(ENRICHED), await values(REVENUE)
    written = len(await values(ENRICHED, READ_UNCOMMITTED)) + len(await values(REVENUE, READ_UNCOMMITTED))
    return Contents(
        inputs=[parse_order(value) for value in await values(ORDERS)],
        enriched=[_parsed(value) for value in enriched],
        revenue=[parse_revenue(value) for value in revenue],
        aborted=written - len(enriched) - len(revenue),
        open_transactions=len(await Admin(client).open_transactions()),
    )


def _parsed(value: bytes) -> dict[str, Any]:
    parsed: dict[str, Any] = json.loads(value)
    return parsed
