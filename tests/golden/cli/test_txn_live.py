"""Transactions as commands show them, where times and sizes are part of it."""

import asyncio
import json
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from odradek.cli.requests import lag
from odradek.client import Client, Producer, TransactionalProducer
from odradek.client.admin import Admin
from odradek.core.types import TopicPartition
from tests.support.command import odradek


def rows(bootstrap: str, *arguments: str, code: int = 0) -> list[dict[str, Any]]:
    outcome = odradek(*arguments, "-b", bootstrap, "-f", "jsonl")
    assert outcome.code == code, outcome
    return [json.loads(line) for line in outcome.text.splitlines()]


def run(bootstrap: str, work: Callable[[Client], Coroutine[Any, Any, None]]) -> None:
    async def outer() -> None:
        async with Client(bootstrap) as client:
            await work(client)

    asyncio.run(outer())


def test_a_timeline_tells_what_happened_on_each_partition(
    bootstrap: str, make_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, name, group = make_topic(2), unique("x"), unique("g")

    async def work(client: Client) -> None:
        async with TransactionalProducer(client, name) as producer:
            await producer.init_transactions()
            for end in (producer.commit, producer.abort, producer.commit):
                producer.begin()
                for i in range(4):
                    await (await producer.send(topic, b"v", partition=i % 2))
                await producer.send_offsets({TopicPartition(topic, 0): 1}, group)
                await end()
                await asyncio.sleep(0.02)
            producer.begin()
            await (await producer.send(topic, b"open", partition=1))
            await check()

    async def check() -> None:
        events = await asyncio.to_thread(rows, bootstrap, "txn", "timeline", name, "-n", "3")
        mine = [e for e in events if e["partition"] in (f"{topic}-0", None)]
        assert [e["event"] for e in mine if e["event"] not in ("batches", "partition added")] == [
            *["begin", "prepare abort", "abort marker", "aborted"],
            *["begin", "prepare commit", "commit marker", "committed"],
            "begin",
        ]
        batches = [(e["offset"], e["records"]) for e in mine if e["event"] == "batches"]
        assert batches == [(3, 2), (6, 2)]
        others = {e["partition"].rpartition("-")[0] for e in events if e["partition"]}
        assert others == {topic, "__consumer_offsets"}
        last = [e for e in events if e["partition"] == f"{topic}-1"][-1]
        assert last["event"] in ("batches", "partition added")
        text = (await asyncio.to_thread(odradek, "txn", "timeline", name, "-b", bootstrap)).text
        assert text.splitlines()[0].startswith("coordinator")
        assert any(line.startswith(f"{topic}-1 ") for line in text.splitlines())

    run(bootstrap, work)


def test_lag_tells_how_old_the_first_unread_record_is_and_when_it_will_be_read(
    bootstrap: str, topic: str, unique: Callable[[str], str]
) -> None:
    group, tp = unique("g"), TopicPartition(topic, 0)

    async def work(client: Client) -> None:
        admin = Admin(client)
        async with TransactionalProducer(client, unique("x"), batch_bytes=300) as producer:
            await producer.init_transactions()
            now_ms = client.runtime.clock.now_ms()
            for number, end in enumerate((producer.commit, producer.abort, producer.commit)):
                producer.begin()
                for i in range(50):
                    stamp = now_ms - 3_600_000 + (number * 50 + i) * 1_000
                    sent = await producer.send(topic, bytes(20), timestamp_ms=stamp)
                await sent
                await end()
        await admin.commit(group, {tp: 10})
        (row,) = await asyncio.to_thread(rows, bootstrap, "group", "lag", group)
        assert (row["committed"], row["lag"], row["unread"], row["eta"]) == (10, 143, 90, None)
        assert 3_590 <= row["time"] <= 3_620
        sampled = asyncio.create_task(
            asyncio.to_thread(rows, bootstrap, "group", "lag", group, "--sample", "2s")
        )
        await asyncio.sleep(1)
        await admin.commit(group, {tp: 40})
        (row,) = await sampled
        assert row["unread"] == 60
        assert 2 <= row["eta"] <= 8  # 30 of 90 in two seconds, and a little for asking
        await admin.commit(group, {tp: 153})
        (row,) = await asyncio.to_thread(rows, bootstrap, "group", "lag", group)
        assert (row["unread"], row["time"], row["eta"]) == (0, 0, 0)
        await admin.delete_group(group)

    run(bootstrap, work)


def test_more_than_may_be_read_is_unknown(
    bootstrap: str, topic: str, unique: Callable[[str], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    group = unique("g")
    assert odradek("produce", topic, "-b", bootstrap, stdin=b"a record\n" * 1_000).code == 0
    assert odradek("group", "seek", group, "-t", topic, "-o", "start", "-y", "-b", bootstrap).code == 0
    (row,) = rows(bootstrap, "group", "lag", group)
    assert (row["lag"], row["unread"]) == (1_000, 1_000)
    monkeypatch.setattr(lag, "READ_LIMIT_BYTES", 1_000)
    (row,) = rows(bootstrap, "group", "lag", group)
    assert (row["lag"], row["unread"], row["time"]) == (1_000, None, None)
    odradek("group", "delete", group, "-y", "-b", bootstrap)


def test_consume_tells_what_became_of_each_record(
    bootstrap: str, make_topic: Callable[..., str], unique: Callable[[str], str]
) -> None:
    topic, holder, later = make_topic(1), unique("x"), unique("y")

    async def work(client: Client) -> None:
        async with (
            Producer(client) as plain,
            TransactionalProducer(client, holder) as first,
            TransactionalProducer(client, later) as second,
        ):
            await first.init_transactions()
            await second.init_transactions()
            await (await plain.send(topic, b"plain", partition=0))
            for value, end in ((b"kept", first.commit), (b"dropped", first.abort)):
                first.begin()
                await (await first.send(topic, value, partition=0))
                await end()
            first.begin()
            await (await first.send(topic, b"open", partition=0))
            for value, end in ((b"kept behind", second.commit), (b"dropped behind", second.abort)):
                second.begin()
                await (await second.send(topic, value, partition=0))
                await end()
            await (await plain.send(topic, b"plain behind", partition=0))
            await asyncio.to_thread(check)

    def check() -> None:
        everything = [
            ("plain", "committed", None),
            ("kept", "committed", holder),
            ("dropped", "aborted", holder),
            ("open", "open", holder),
            ("kept behind", "committed", later),
            ("dropped behind", "aborted", later),
            ("plain behind", "committed", None),
        ]

        def told(*arguments: str) -> list[tuple[str, str, str | None]]:
            found = rows(bootstrap, "consume", topic, *arguments)
            return [(row["value"], row["outcome"], row["transactional_id"]) for row in found]

        assert told("--outcome", "all") == everything
        assert told("--outcome", "aborted,open") == [row for row in everything if row[1] != "committed"]
        assert told("--outcome", "aborted", "-n", "1") == everything[2:3]
        assert told("--outcome", "all", "-o", "start:5") == everything[:3]
        written = odradek("consume", topic, "-b", bootstrap, "-f", "%S %X %v\\n")
        assert written.text.splitlines() == [f"{s} {x or '-'} {v}" for v, s, x in everything]
        plain = odradek("consume", topic, "-b", bootstrap, "--outcome", "open")
        assert plain.text == "open\topen\n"
        for refused in (("--follow",), ("-g", "g"), ("--isolation", "read_committed")):
            assert odradek("consume", topic, "-b", bootstrap, "--outcome", "all", *refused).code == 2
        assert "some of committed, aborted, open, or all" in (
            odradek("consume", topic, "-b", bootstrap, "--outcome", "lost").stderr
        )

    run(bootstrap, work)
