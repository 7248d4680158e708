"""What grows with the number of attempts and batches, and must not: without Spark, on a node of its own.

CI plays a part of it. ODRADEK_SOAK_ATTEMPTS and ODRADEK_SOAK_DECISIONS say how much (`make soak-spark`).
"""

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from odradek.client.admin import Admin
from odradek.client.batches import NOBODY
from odradek.client.client import Client
from odradek.client.transaction_errors import AbortableError, FatalError
from odradek.client.transaction_requests import TransactionRequests
from odradek.core.types import ProducerIdAndEpoch
from odradek.runtime.ports import free_port
from odradek.spark.ledger.ledger import (
    HISTORY_TOPIC,
    Participant,
    Propose,
    Stream,
    SupersededError,
    coordinator_id,
    decode_decision,
)
from odradek.spark.ledger.ledger_log import ensure_topics
from odradek.spark.sink.tasks import Task
from tests.spark.byhand import Query, Worker
from tests.spark.conftest import read_committed
from tests.support.node import NodeProcess, running
from tests.support.topics import create_topic

ATTEMPTS = int(os.environ.get("ODRADEK_SOAK_ATTEMPTS", "3000"))
DECISIONS = int(os.environ.get("ODRADEK_SOAK_DECISIONS", "60"))
LAST_EPOCH = 32_766
STREAM = Stream("query", "sink")

pytestmark = pytest.mark.timeout(3_600)

# The week for which ids are remembered is made short, and there is one partition instead of 50, so that as
# much comes together in it as otherwise in months.
SETTINGS = {
    "transactional.id.expiration.ms": "2000",
    "transaction.remove.expired.transaction.cleanup.interval.ms": "500",
    "producer.id.expiration.ms": "2000",
    "producer.id.expiration.check.interval.ms": "500",
    "transaction.state.log.num.partitions": "1",
    "log.cleaner.backoff.ms": "500",
}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[NodeProcess]:
    started = start(tmp_path / "data")
    create_topic(started.bootstrap, "out", 1, {})
    yield started
    started.stop()


def start(data_dir: Path) -> NodeProcess:
    settings = [part for name, value in SETTINGS.items() for part in ("--set", f"{name}={value}")]
    return NodeProcess(data_dir, "--port", str(free_port()), *settings)


class Sizes:
    """What may grow: of the node, and of this process, which is driver and workers."""

    def __init__(self, node: NodeProcess, ids: int) -> None:
        self.node_kb, self.client_kb = memory_kb(node.pid), memory_kb(os.getpid())
        self.ids = ids
        self.log_kb = {
            name: sum(path.stat().st_size for path in node.data_dir.glob(f"{name}-*/*.log")) // 1024
            for name in ("__transaction_state", "__odradek_ledger")
        }

    def __str__(self) -> str:
        logs = ", ".join(f"{name} {size} KiB" for name, size in self.log_kb.items())
        return f"node {self.node_kb} KiB, client {self.client_kb} KiB, {self.ids} ids, {logs}"


def memory_kb(pid: int) -> int:
    """What a process has of memory now, without files that it maps."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0])


async def ids_of(client: Client) -> int:
    """How many transactional ids there are. Answered when all of the coordinator is loaded."""
    return sum(len(listed) for listed in (await Admin(client).list_transactions()).values())


def load_s(node: NodeProcess) -> float:
    """From the start of the process until its transaction coordinator answers for all of its ids."""
    began = time.monotonic()
    node.restart()

    async def ask() -> None:
        async with Client(node.bootstrap, retry_backoff_ms=5, retry_backoff_max_ms=5) as client:
            await ids_of(client)

    asyncio.run(ask())
    return time.monotonic() - began


class Fleet:
    """Worker processes that come and go, four at a time."""

    LIFE = 5

    def __init__(self, bootstrap: str) -> None:
        self._bootstrap = bootstrap
        self._workers: list[tuple[Client, Worker]] = []

    async def renew(self) -> None:
        await self.close()
        for _ in range(4):
            client = Client(self._bootstrap)
            self._workers.append((client, Worker(client)))

    async def close(self) -> None:
        for client, worker in self._workers:
            worker.close()
            await client.close()
        self._workers.clear()

    async def write(self, batch: int) -> list[Participant]:
        """Two dozen attempts. Some write and are never heard of again, one dies before it has written."""
        if batch % self.LIFE == 0 or not self._workers:
            await self.renew()
        task = Task(STREAM, "run00000", batch)
        workers = [worker for _, worker in self._workers]
        written = await asyncio.gather(
            *(workers[i % 4].write(task, "out", f"{batch}-{i}") for i in range(23)), workers[0].begin(task)
        )
        return [p for i, p in enumerate(written) if isinstance(p, Participant) and i % 8]


async def attempt_many(bootstrap: str, node: NodeProcess, first: int, count: int) -> tuple[int, Sizes]:
    """Batches from `first` on, until there were so many attempts; the next batch and what is there then."""
    fleet = Fleet(bootstrap)
    async with Client(bootstrap) as client:
        await ensure_topics(client)
        driver = Query(client, STREAM, "run00000", "out")
        for number in range(first, first + -(-count // 24)):
            written = await fleet.write(number)
            await driver.decider.commit(driver.batch(number, *written))
        assert await driver.decider.open_participants() == [], "swept, those that died too"
        await driver.close()
        await fleet.close()
        return number + 1, Sizes(node, await ids_of(client))


def test_attempts_without_number_take_bounded_memory_and_a_bounded_time_to_load(node: NodeProcess) -> None:
    """Two thirds of them warm up; what comes after must not add to it."""
    reached, early = asyncio.run(attempt_many(node.bootstrap, node, 0, ATTEMPTS * 2 // 3))
    node.stop()
    early_load_s = load_s(node)
    began = time.monotonic()
    _, late = asyncio.run(attempt_many(node.bootstrap, node, reached, ATTEMPTS // 3))
    took_s = time.monotonic() - began
    node.stop()
    late_load_s = load_s(node)
    print(f"\n{ATTEMPTS * 2 // 3} attempts: {early}, loaded in {early_load_s:.2f} s")
    print(f"{ATTEMPTS} attempts: {late}, loaded in {late_load_s:.2f} s; {took_s:.0f} s for the last of them")
    # Three times what was seen (1.4 MiB of each, however many attempts), and 128 bytes per attempt. One life
    # of a node in six has 5 MiB more from its beginning, whatever it does: these are two lives.
    allowed_kb = 4_096 + 5_120 + ATTEMPTS // 3 // 8
    assert late.node_kb - early.node_kb < allowed_kb
    assert late.client_kb - early.client_kb < allowed_kb
    assert late.ids < 1_000, "ids that nobody uses any more go"
    # Not compacted they would have 750 KiB and 20 KiB per 1,000 attempts, the ledger up to its first segment.
    assert late.log_kb["__transaction_state"] < min(4 * 1024, ATTEMPTS // 2)
    assert late.log_kb["__odradek_ledger"] < min(4 * 1024, ATTEMPTS // 20)
    assert late_load_s - early_load_s < 3


def test_a_decision_whose_ids_are_forgotten_is_finished_again(node: NodeProcess) -> None:
    """A query that comes back when its transactional ids have expired: they were complete."""

    async def story() -> None:
        async with Client(node.bootstrap) as client:
            await ensure_topics(client)
            await client.refresh(["out"])
            first, second = (Query(client, STREAM, f"run0000{i}", "out") for i in range(2))
            written = await first.write(0, "a")
            assert written is not None
            await first.decider.commit(first.batch(0, written))
            while await ids_of(client):
                await asyncio.sleep(0.1)
            assert await second.write(0, "a") is None
            await second.decider.commit(second.batch(0))
            await second.decider.commit(second.batch(1, await second.write(1, "b")))

    asyncio.run(story())
    assert [message.value() for message in read_committed(node.bootstrap, "out")] == [b"a", b"b"]


# --- the rotation of producer ids ------------------------------------------------------------------------


async def use_up(client: Client, transactional_id: str, until: int) -> None:
    """Bring an id to an epoch, as many batches would, but faster: InitProducerId gives the next one."""
    requests = TransactionRequests(client, transactional_id)
    deadline = asyncio.get_running_loop().time() + 300

    async def init() -> int:
        given = await requests.init(NOBODY, 10_000, deadline, enable_2pc=False, keep_prepared=False)
        return int(given.producer_epoch)

    epoch = await init()
    while epoch < until:
        epoch = max(await asyncio.gather(*(init() for _ in range(min(100, until - epoch)))))
    requests.close()


async def identity(query: Query, transactional_id: str) -> ProducerIdAndEpoch:
    found = (await query.decider._describe([transactional_id]))[transactional_id]
    return ProducerIdAndEpoch(found.producer_id, found.producer_epoch)


async def is_refused(query: Query, number: int) -> None:
    """A coordinator that read the ledger in time and sends its decision too late, and one that reads it."""
    known = (await query.decider._ledger.read()).entry(STREAM)
    with pytest.raises((AbortableError, FatalError)):
        await query.decider._decide(Propose(known), query.batch(number))
    with pytest.raises(SupersededError):
        await query.decider.commit(query.batch(number))


async def decide_across(client: Client) -> tuple[int, dict[str, set[int]]]:
    """How many batches were decided, and the producer ids that the coordinator and a slot had."""
    first, late, healthy = (Query(client, STREAM, f"run0000{i}", "out") for i in range(3))
    await first.decider.commit(first.batch(0, await first.write(0, "0")))
    await late.decider.commit(late.batch(1, await late.write(1, "1")))
    number = 1

    async def decide() -> str:
        nonlocal number
        number += 1
        written = await healthy.write(number, str(number))
        assert written is not None
        await healthy.decider.commit(healthy.batch(number, written))
        return written.transactional_id

    coordinator = coordinator_id("odradek", STREAM)
    watched = [coordinator, await decide()]
    if DECISIONS < LAST_EPOCH:
        # An odd epoch of a slot: it is given a new producer id when a transaction ends, not when it is taken.
        for name in watched:
            await use_up(client, name, LAST_EPOCH - 2 * (DECISIONS // 4) - 1)
    had: dict[str, set[int]] = {name: set() for name in watched}
    is_late_there = False
    while number < DECISIONS:
        await decide()
        for name in watched:
            had[name].add((await identity(healthy, name)).producer_id)
        if not is_late_there and (await identity(healthy, coordinator)).producer_epoch > LAST_EPOCH - 5:
            is_late_there = True
            await use_up(client, coordinator, LAST_EPOCH - 1)
            await late.decider._take_charge()
            assert (await identity(healthy, coordinator)).producer_epoch == LAST_EPOCH
    assert is_late_there
    await is_refused(late, number + 1)
    await is_refused(first, number + 1)
    await decide()
    for query in (first, late, healthy):
        await query.close()
    return number + 1, had


def test_zombies_from_before_the_rotation_of_producer_ids_decide_nothing(tmp_path: Path) -> None:
    """One has the first epoch of the old producer id, another one the last that there is."""

    async def story() -> tuple[int, dict[str, set[int]]]:
        async with Client(node.bootstrap) as client:
            await ensure_topics(client)
            await client.refresh(["out"])
            return await decide_across(client)

    with running(tmp_path / "data") as node:
        create_topic(node.bootstrap, "out", 1, {})
        decided, had = asyncio.run(story())
        values = [(message.value() or b"").decode() for message in read_committed(node.bootstrap, "out")]
        history = [decode_decision(m.value() or b"") for m in read_committed(node.bootstrap, HISTORY_TOPIC)]
    assert all(len(ids) > 1 for ids in had.values()), f"a producer id was not rotated: {had}"
    assert [decision.batch for _, decision in history] == list(range(decided))
    assert values == [str(number) for number in range(decided)]
