"""Makes transactions for the scripts. Each line is a step and prints nothing:

transaction ID TOPIC COUNT commit|abort|open    COUNT records to partition 0, then this end
offsets ID GROUP TOPIC OFFSET commit|open       an offset committed in a transaction
hang TOPIC PRODUCER-ID                          a record of a transaction that has no coordinator
"""

import asyncio
from typing import Any

from odradek.client import Client, TransactionalProducer
from odradek.client.admin import BROKER, DELETE, SET, Admin
from odradek.core.types import TopicPartition
from odradek.records.batch import build_batch
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types

STEPS = ("transaction", "offsets", "hang")
VERIFICATION = "transaction.partition.verification.enable"
_LAST_UNVERIFIED_BY_NAME = 11


def prepare(bootstrap: str, line: str) -> str:
    step, *arguments = line.split()
    asyncio.run(_run(bootstrap, step, arguments))
    return ""


async def _run(bootstrap: str, step: str, arguments: list[str]) -> None:
    async with Client(bootstrap) as client:
        if step == "transaction":
            await transaction(client, *arguments)
        elif step == "offsets":
            await offsets(client, *arguments)
        else:
            await hang(client, *arguments)


async def transaction(client: Client, transactional_id: str, topic: str, count: str, end: str) -> None:
    producer = TransactionalProducer(client, transactional_id, transaction_timeout_ms=300_000)
    await producer.init_transactions()
    producer.begin()
    for i in range(int(count)):
        await (await producer.send(topic, b"%d" % i, partition=0))
    await _end(client, producer, transactional_id, end)


async def offsets(
    client: Client, transactional_id: str, group: str, topic: str, offset: str, end: str
) -> None:
    producer = TransactionalProducer(client, transactional_id, transaction_timeout_ms=300_000)
    await producer.init_transactions()
    producer.begin()
    await producer.send_offsets({TopicPartition(topic, 0): int(offset)}, group)
    await _end(client, producer, transactional_id, end)


async def _end(client: Client, producer: TransactionalProducer, transactional_id: str, end: str) -> None:
    """An open transaction is left behind without a word."""
    if end == "open":
        return
    await (producer.commit() if end == "commit" else producer.abort())
    types = request_types(ApiKey.DESCRIBE_TRANSACTIONS)
    request = types.DescribeTransactionsRequest(transactional_ids=[transactional_id])
    state = ""
    async with asyncio.timeout(30):
        while not state.startswith("Complete"):
            node_id = await client.coordinator(transactional_id, 1)
            answer = await client.send(ApiKey.DESCRIBE_TRANSACTIONS, request, node_id=node_id)
            state = answer.transaction_states[0].transaction_state
    await producer.close()


async def hang(client: Client, topic: str, producer_id: str) -> None:
    """As brokers did before they asked the coordinator: with that switched off, they still do."""
    admin = Admin(client)
    await client.refresh([topic])
    tp = TopicPartition(topic, 0)
    leader = await client.leader(tp)
    await admin.alter_configs(BROKER, str(leader), [(VERIFICATION, SET, "false")])
    try:
        async with asyncio.timeout(30):
            while await _write(client, leader, topic, int(producer_id)):
                await asyncio.sleep(0.05)
    finally:
        await admin.alter_configs(BROKER, str(leader), [(VERIFICATION, DELETE, None)])


async def _write(client: Client, leader: int, topic: str, producer_id: int) -> int:
    types = request_types(ApiKey.PRODUCE)
    data: Any = build_batch(
        [(1_000, None, b"left", ())],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        transactional=True,
    )
    part = types.PartitionProduceData(index=0, records=data)
    request = types.ProduceRequest(
        transactional_id="cli-nobody",
        acks=-1,
        timeout=10_000,
        topic_data=[types.TopicProduceData(name=topic, partition_data=[part])],
    )
    answer = await client.send(ApiKey.PRODUCE, request, node_id=leader, max_version=_LAST_UNVERIFIED_BY_NAME)
    return int(answer.responses[0].partition_responses[0].error_code)
