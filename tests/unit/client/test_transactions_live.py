"""The transactional producer against live clusters: a node of ours and Apache, both transaction versions."""

import asyncio
import signal
import time
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from odradek.client.admin import Admin
from odradek.client.client import Client
from odradek.client.consumer import READ_COMMITTED, Consumer
from odradek.client.transaction_errors import AbortableError, FatalError
from odradek.client.transaction_requests import GroupMetadata
from odradek.client.transaction_states import State
from odradek.client.transactional import TransactionalProducer
from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.runtime.ports import free_port
from odradek.wire.api_keys import ApiKey
from odradek.wire.messages import request_types
from tests.support import peer
from tests.support.node import NodeProcess, running

pytestmark = pytest.mark.timeout(300)
SWEEP = "transaction.abort.timed.out.transaction.cleanup.interval.ms=200"
TWO_PHASE = "transaction.two.phase.commit.enable=true"
NEWEST = "unstable.api.versions.enable=true"
UPGRADE, DOWNGRADE = 1, 2


@pytest.fixture(scope="module", params=["odradek", pytest.param("apache", marks=pytest.mark.apache)])
def cluster(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    directory = tmp_path_factory.mktemp("cluster")
    if request.param == "odradek":
        with running(directory / "data", "--set", SWEEP, "--set", TWO_PHASE) as node:
            yield node.bootstrap
    else:
        yield peer.start(directory / "k", free_port(), SWEEP, NEWEST)
        peer.stop(directory / "k")


@pytest.fixture(scope="module", params=[2, 1], ids=["version 2", "version 1"])
def version(cluster: str, request: pytest.FixtureRequest) -> int:
    """The cluster's transaction version, set for the tests that follow."""
    asyncio.run(change_version(cluster, request.param))
    return int(request.param)


async def change_version(cluster: str, version: int) -> None:
    """Change the transaction version while the cluster runs, and wait until it is told to clients."""
    async with Client(cluster) as client:
        types = request_types(ApiKey.UPDATE_FEATURES)
        await client.refresh()
        found = client.finalized_feature("transaction.version")
        if found == version:
            return
        update = types.FeatureUpdateKey(
            feature="transaction.version",
            max_version_level=version,
            upgrade_type=UPGRADE if version > found else DOWNGRADE,
        )
        asked = types.UpdateFeaturesRequest(timeout=10_000, feature_updates=[update])
        answer = await client.send(ApiKey.UPDATE_FEATURES, asked, node_id=client.cluster.controller_id)
        assert answer.error_code == 0, answer
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        async with Client(cluster) as client:
            await client.refresh()
            if client.finalized_feature("transaction.version") == version:
                return
    raise AssertionError("the feature did not change")


class World:
    """A client with a topic of two partitions, and names of its own."""

    def __init__(self, client: Client, topic: str) -> None:
        self.client, self.topic, self.admin = client, topic, Admin(client)
        self.id = f"x-{topic}"
        self.group = f"g-{topic}"

    @asynccontextmanager
    async def producer(self, **options: Any) -> AsyncIterator[TransactionalProducer]:
        async with TransactionalProducer(self.client, self.id, **options) as producer:
            await producer.init_transactions()
            yield producer

    async def values(self) -> list[bytes | None]:
        """What a read_committed reader gets, up to the end of the log; its position ends there too."""
        partitions = [TopicPartition(self.topic, i) for i in (0, 1)]
        async with Consumer(
            self.client, isolation_level=READ_COMMITTED, auto_offset_reset="earliest", max_wait_ms=50
        ) as consumer:
            consumer.assign(partitions)
            values: list[bytes | None] = []
            async with asyncio.timeout(30):
                while True:
                    values += [record.value for record in await consumer.poll(50)]
                    ends = await self.admin.list_offsets(dict.fromkeys(partitions, -1))
                    if all(consumer.position(tp) == ends[tp].offset for tp in partitions):
                        return sorted(values)

    async def is_stable(self) -> bool:
        """Is no transaction open?"""
        asked = dict.fromkeys([TopicPartition(self.topic, i) for i in (0, 1)], -1)
        ends = await self.admin.list_offsets(asked)
        stable = await self.admin.list_offsets(asked, isolation_level=READ_COMMITTED)
        return all(ends[tp].offset == stable[tp].offset for tp in asked)

    async def committed(self) -> dict[int, int]:
        partitions = [TopicPartition(self.topic, i) for i in (0, 1)]
        found = await self.admin.committed(self.group, partitions, require_stable=True)
        return {tp.partition: row.committed_offset for tp, row in found.items()}


Scenario = Callable[[World], Coroutine[Any, Any, None]]


def run(bootstrap: str, scenario: Scenario, **options: Any) -> None:
    async def outer() -> None:
        async with Client(bootstrap, **options) as client:
            topic = f"t-{uuid4().hex[:8]}"
            await Admin(client).create_topics({topic: 2})
            await scenario(World(client, topic))

    asyncio.run(outer())


def test_commits_are_seen_and_aborts_are_not(cluster: str, version: int) -> None:
    async def scenario(world: World) -> None:
        async with world.producer() as producer:
            for number in range(6):
                producer.begin()
                for i in range(4):
                    await producer.send(world.topic, b"%d-%d" % (number, i), partition=i % 2)
                await producer.send_offsets({TopicPartition(world.topic, 0): number + 1}, world.group)
                await (producer.commit() if number % 3 != 2 else producer.abort())
            assert producer._terms.version_1 is (version == 1)
        kept = [number for number in range(6) if number % 3 != 2]
        assert await world.values() == [b"%d-%d" % (number, i) for number in kept for i in range(4)]
        assert await world.committed() == {0: 5}

    run(cluster, scenario)


def test_batches_by_the_hundred_arrive_once_and_in_order(cluster: str, version: int) -> None:
    async def scenario(world: World) -> None:
        async with world.producer(batch_bytes=100) as producer, producer.transaction():
            futures = [await producer.send(world.topic, b"%04d" % i, partition=0) for i in range(500)]
        assert [future.result().offset for future in futures] == list(range(500))
        assert await world.values() == [b"%04d" % i for i in range(500)]

    run(cluster, scenario)


def test_a_second_producer_fences_the_first_and_aborts_what_it_left(cluster: str, version: int) -> None:
    async def scenario(world: World) -> None:
        async with world.producer() as zombie:
            zombie.begin()
            await (await zombie.send(world.topic, b"left", partition=0))
            async with world.producer() as successor:
                async with successor.transaction():
                    await successor.send(world.topic, b"kept", partition=0)
                with pytest.raises(KafkaError) as error:  # noqa: PT012
                    await zombie.send(world.topic, b"late", partition=0)
                    await zombie.commit()
                assert error.value.code in (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.PRODUCER_FENCED)
                if zombie.state is State.ABORTABLE_ERROR:
                    with pytest.raises(FatalError, match="PRODUCER_FENCED"):
                        await zombie.abort()
                assert zombie.state is State.FATAL_ERROR
                async with successor.transaction():
                    await successor.send(world.topic, b"more", partition=1)
        assert await world.values() == [b"kept", b"more"]

    run(cluster, scenario)


def test_offsets_of_a_member_of_the_past_are_refused(cluster: str, version: int) -> None:
    async def scenario(world: World) -> None:
        async with (
            world.producer() as producer,
            Consumer(world.client, group_id=world.group, auto_offset_reset="earliest") as consumer,
        ):
            consumer.subscribe([world.topic])
            async with asyncio.timeout(60):
                while not consumer.assignment:
                    await consumer.poll(50)
            now = consumer.group_metadata
            offsets = {TopicPartition(world.topic, 0): 3}
            for past, code in (
                (now._replace(generation_id=now.generation_id - 1), ErrorCode.ILLEGAL_GENERATION),
                (now._replace(member_id="nobody"), ErrorCode.UNKNOWN_MEMBER_ID),
            ):
                producer.begin()
                with pytest.raises(AbortableError) as error:
                    await producer.send_offsets(offsets, past)
                assert error.value.code is code
                await producer.abort()
            assert await world.committed() == {}
            async with producer.transaction():
                await producer.send_offsets(offsets, now)
            assert await world.committed() == {0: 3}

    run(cluster, scenario)


def test_a_transaction_past_its_timeout_is_aborted_and_the_producer_learns_it(
    cluster: str, version: int
) -> None:
    async def scenario(world: World) -> None:
        async with world.producer(transaction_timeout_ms=500) as producer:
            producer.begin()
            await (await producer.send(world.topic, b"slow", partition=0))
            async with asyncio.timeout(30):
                while not await world.is_stable():
                    await asyncio.sleep(0.1)
            with pytest.raises(KafkaError):  # noqa: PT012
                await producer.send(world.topic, b"too late", partition=0)
                await producer.commit()
            assert producer.state in (State.ABORTABLE_ERROR, State.FATAL_ERROR)
        assert await world.values() == []

    run(cluster, scenario)


def test_the_version_changes_under_open_transactions(tmp_path: Path) -> None:
    """Here, where it ends nobody; Apache 4.3.1 has no more answers for producers of a version it left."""

    async def scenario(world: World) -> None:
        async with (
            world.producer() as steady,
            TransactionalProducer(world.client, world.id + "-aborting") as aborting,
        ):
            await aborting.init_transactions()
            for number, version in enumerate((1, 0, 2, 0, 1, 2)):
                for producer in (steady, aborting):
                    producer.begin()
                    await (await producer.send(world.topic, b"%d-before" % number, partition=0))
                await change_version(cluster, version)
                await steady.send(world.topic, b"%d-after" % number, partition=1)
                await steady.send_offsets({TopicPartition(world.topic, 0): number + 1}, world.group)
                await steady.commit()
                await aborting.abort()
                async with (
                    Client(cluster) as told,
                    TransactionalProducer(told, world.id + "-told") as fresh,
                ):
                    await fresh.init_transactions()
                    async with fresh.transaction():
                        await fresh.send(world.topic, b"%d-told" % number, partition=0)
                    assert fresh._terms.version_1 is (version < 2)
        words = (b"after", b"before", b"told")
        expected = [b"%d-%s" % (number, word) for number in range(6) for word in words]
        assert await world.values() == expected
        assert await world.committed() == {0: 6}
        assert await world.is_stable()

    with running(tmp_path / "data") as node:
        cluster = node.bootstrap
        run(cluster, scenario)


def test_a_prepared_transaction_outlives_its_producer(cluster: str, request: pytest.FixtureRequest) -> None:
    """Apache 4.3.1 takes prepared transactions in, and cannot hand them on to a later producer yet."""
    keeps = "apache" not in request.node.callspec.params["cluster"]

    async def scenario(world: World) -> None:
        first = TransactionalProducer(world.client, world.id, enable_2pc=True)
        await first.init_transactions()
        first.begin()
        await first.send(world.topic, b"prepared", partition=0)
        prepared = await first.prepare()
        if not keeps:
            await first.complete(prepared)
        await first.close()
        await asyncio.sleep(0.5)
        async with TransactionalProducer(world.client, world.id, enable_2pc=True) as second:
            if not keeps:
                with pytest.raises(FatalError, match="UNSUPPORTED_VERSION"):
                    await second.init_transactions(keep_prepared=True)
            else:
                assert not await world.is_stable()
                assert await second.init_transactions(keep_prepared=True) == prepared
                assert second.state is State.PREPARED
                assert await second.complete(prepared)
        assert await world.values() == [b"prepared"]

    run(cluster, scenario)


def test_aborted_records_are_left_out_across_segments_and_fetches(cluster: str) -> None:
    """Three producers take turns in one partition of small segments; a third of their transactions fails."""

    async def scenario(world: World) -> None:
        topic = f"{world.topic}-segments"
        tp = TopicPartition(topic, 0)
        await world.admin.create_topics({topic: 1}, configs={"segment.bytes": "1048576"})
        kept: list[int] = []
        producers = [TransactionalProducer(world.client, f"{topic}-{i}") for i in range(3)]
        for producer in producers:
            await producer.init_transactions()
        for turn in range(8):
            offsets: dict[int, list[int]] = {}
            for producer in producers:
                producer.begin()
            for _ in range(2):
                for i, producer in enumerate(producers):
                    delivery = await (await producer.send(topic, bytes(150_000)))
                    offsets.setdefault(i, []).append(delivery.offset)
            for i, producer in enumerate(producers):
                if (turn + i) % 3:
                    await producer.commit()
                    kept += offsets[i]
                else:
                    await producer.abort()
        for producer in producers:
            await producer.close()
        end = (await world.admin.list_offsets({tp: -1}))[tp].offset
        for start in (0, 13, end // 2):
            async with Consumer(
                world.client, isolation_level=READ_COMMITTED, max_partition_bytes=400_000, max_wait_ms=50
            ) as consumer:
                consumer.assign({tp: start})
                seen: list[int] = []
                async with asyncio.timeout(60):
                    while consumer.position(tp) < end:  # the last markers may come after it
                        seen += [record.offset for record in await consumer.poll(100)]
                assert seen == [offset for offset in sorted(kept) if offset >= start]

    run(cluster, scenario)


class OurNode:
    """A node of ours that can be killed and comes back under its address."""

    def __init__(self, directory: Path) -> None:
        self._data = directory / "data"
        self._node = NodeProcess(self._data)
        self.bootstrap = self._node.bootstrap

    def kill(self) -> None:
        self._node.stop(signal.SIGKILL)

    def restart(self) -> None:
        self._node = NodeProcess(self._data, "--port", self.bootstrap.rpartition(":")[2])

    close = kill


class ApacheNode:
    def __init__(self, directory: Path) -> None:
        self._directory = directory / "k"
        self.bootstrap = peer.start(self._directory, free_port())

    def kill(self) -> None:
        self._peer("kill")

    def restart(self) -> None:
        self._peer("restart")

    def close(self) -> None:
        peer.stop(self._directory)

    def _peer(self, command: str) -> None:
        peer.command(command, self._directory, "1")


@pytest.mark.parametrize(
    ("make_node", "count", "kills"),
    [
        pytest.param(OurNode, 60, (5, 17, 29, 41, 53), id="odradek"),
        pytest.param(ApacheNode, 20, (8,), id="apache", marks=pytest.mark.apache),
    ],
)
def test_every_commit_happened_or_was_reported_unknown_though_the_node_is_killed(
    tmp_path: Path, make_node: Callable[[Path], Any], count: int, kills: Sequence[int]
) -> None:
    """A commit whose outcome is unknown is asked for again: it then has happened, or can only be aborted."""
    node = make_node(tmp_path)
    kept: list[bytes] = []

    async def scenario(world: World) -> None:
        options = {"max_block_ms": 1_000, "delivery_timeout_ms": 60_000}
        async with TransactionalProducer(world.client, world.id, **options) as producer:
            await insisting(producer.init_transactions)
            for number in range(count):
                values = [b"%03d-%d" % (number, i) for i in range(3)]
                comeback = None
                if number in kills:
                    node.kill()
                    comeback = asyncio.create_task(restart())
                producer.begin()
                try:
                    for i, value in enumerate(values):
                        await producer.send(world.topic, value, partition=i % 2)
                    offsets = {TopicPartition(world.topic, 0): number}
                    await producer.send_offsets(offsets, GroupMetadata(world.group))
                    await insisting(producer.commit)
                    kept.extend(values)
                except AbortableError:
                    await insisting(producer.abort)
                if comeback is not None:
                    await comeback
        assert await world.values() == sorted(kept)

    async def restart() -> None:
        await asyncio.sleep(0.3)
        await asyncio.to_thread(node.restart)

    async def insisting(call: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        """Until it is told what became of it. OutcomeUnknownError is a TimeoutError."""
        while True:
            try:
                await call()
                return
            except TimeoutError:
                continue

    try:
        run(node.bootstrap, scenario, request_timeout_ms=2_000)
    finally:
        node.close()
    assert len(kept) >= 3 * (count - 3 * len(kills))
