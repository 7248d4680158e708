"""The transactional clients of a simulation: producers, pipelines that consume and produce, and readers."""

import asyncio
import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID

from odradek.core.errors import ErrorCode
from odradek.core.types import TopicPartition
from odradek.records.batch import iter_batches, iter_records
from odradek.records.control import ControlType, parse_control_key
from odradek.sim.checkers.txn_history import Reader, Txn, TxnFate, TxnHistory
from odradek.sim.workloads.caller import Caller, NoAnswer
from odradek.sim.workloads.consuming import fetch_committed, fetch_request, records_from
from odradek.sim.workloads.txn_client import Over, Refused, TxnClient
from odradek.wire.api_keys import ApiKey

READ_COMMITTED = 1
GROUP = "pipelines"
ABORTS = 0.25
IMPATIENT = 0.15
CHANGED_MINDS = 0.15


class TxnProducer:
    """Writes to several partitions and commits or aborts. It starts again when it is fenced."""

    def __init__(
        self, name: str, client: TxnClient, partitions: Sequence[TopicPartition], rng: random.Random
    ) -> None:
        self._name = name
        self._client = client
        self._partitions = partitions
        self._rng = rng
        self._lives = 0
        self._number = 0
        self._next = 0

    async def run(self, until: float) -> None:
        loop, rng = asyncio.get_running_loop(), self._rng
        while loop.time() < until:
            self._lives += 1
            try:
                await self._client.init()
                while loop.time() < until:
                    await self._transaction()
                    await asyncio.sleep(rng.expovariate(5))
            except (NoAnswer, Over):
                await asyncio.sleep(rng.uniform(0.05, 0.6))
        if rng.random() < 0.5:
            await self._die_in_a_transaction()
        self._client.caller.close()

    async def _die_in_a_transaction(self) -> None:
        """Leave a transaction open: the coordinator must abort it."""
        self._lives += 1
        with suppress(NoAnswer, Over):
            await self._client.init()
            txn = self._client.history.begin(f"{self._name}.{self._lives}", self._number + 1)
            await self._client.write(txn, self._partitions[0], [self._value()])

    async def _transaction(self) -> None:
        rng, client = self._rng, self._client
        self._number += 1
        txn = client.history.begin(f"{self._name}.{self._lives}", self._number)
        try:
            for tp in rng.sample(list(self._partitions), rng.randint(1, len(self._partitions))):
                await client.write(txn, tp, [self._value() for _ in range(rng.randint(1, 3))])
                if rng.random() < 0.02:
                    await asyncio.sleep(rng.uniform(1, 5))
        except Refused:
            if rng.random() < 0.3:
                # A zombie: it must not commit the transaction of its successor.
                await client.end(txn, commit=True)
            raise
        if rng.random() < IMPATIENT:
            await client.end_impatiently(txn)
        else:
            await client.end(txn, commit=rng.random() >= ABORTS)
        if rng.random() < CHANGED_MINDS:
            # This transaction has no records. Its end must not count for the previous one.
            self._number += 1
            await client.end(client.history.begin(f"{self._name}.{self._lives}", self._number), commit=False)

    def _value(self) -> bytes:
        self._next += 1
        return f"{self._name}/{self._next}".encode()


class Decider:
    """A producer with two-phase transactions (KIP-939) that often dies between the decision and its commit or
    abort.

    Its successor finds the transaction open and ends it as decided, or finds that it has ended.
    """

    def __init__(
        self, name: str, client: TxnClient, partitions: Sequence[TopicPartition], rng: random.Random
    ) -> None:
        self._name = name
        self._client = client
        self._partitions = partitions
        self._rng = rng
        self._number = 0
        self._decisions: list[tuple[Txn, bool]] = []
        self._undecided: Txn | None = None

    async def run(self, until: float) -> None:
        loop = asyncio.get_running_loop()
        while loop.time() < until or self._undecided is not None:
            try:
                await self._recover()
                while loop.time() < until:
                    await self._transaction()
                    await asyncio.sleep(self._rng.expovariate(5))
            except (NoAnswer, Over):
                await asyncio.sleep(self._rng.uniform(0.05, 0.6))
        self._client.caller.close()
        for txn, commit in self._decisions:
            txn.fate = TxnFate.COMMITTED if commit else TxnFate.ABORTED

    async def _recover(self) -> None:
        is_open = await self._client.init(keep_prepared=True)
        txn = self._undecided
        if is_open:
            assert txn is not None
            decided = [commit for prepared, commit in self._decisions if prepared is txn]
            await self._client.end(txn, commit=decided == [True])
        self._undecided = None

    async def _transaction(self) -> None:
        rng, client = self._rng, self._client
        self._number += 1
        self._undecided = txn = client.history.begin(f"{self._name}.{self._number}", self._number)
        for tp in rng.sample(list(self._partitions), rng.randint(1, len(self._partitions))):
            await client.write(txn, tp, [f"{self._name}/{self._number}/{tp.partition}".encode()])
        commit = rng.random() >= ABORTS
        self._decisions.append((txn, commit))
        if rng.random() < 0.3:
            raise Over("killed between the decision and its report")
        await client.end(txn, commit=commit)
        self._undecided = None


class Pipeline:
    """Copies one input partition to the output, and commits the input offset in the same transaction."""

    def __init__(
        self,
        name: str,
        client: TxnClient,
        source: TopicPartition,
        target: TopicPartition,
        topic_ids: dict[str, UUID],
        rng: random.Random,
    ) -> None:
        self._name = name
        self._client = client
        self._source = source
        self._target = target
        self._topic_ids = topic_ids
        self._rng = rng
        self._number = 0
        self._lives = 0

    async def run(self, until: float) -> None:
        loop, rng = asyncio.get_running_loop(), self._rng
        while loop.time() < until:
            self._lives += 1
            try:
                await self._client.init()
                position = await self._committed()
                while loop.time() < until:
                    position = await self._copy(position)
                    await asyncio.sleep(rng.expovariate(5))
            except (NoAnswer, Over):
                await asyncio.sleep(rng.uniform(0.05, 0.6))
        self._client.caller.close()

    async def _committed(self) -> int:
        """The committed offset of the pipeline's group."""
        found = await fetch_committed(self._client.caller, GROUP, [self._source], self._topic_ids)
        return max(0, found[self._source])

    async def _copy(self, position: int) -> int:
        rng, client, source = self._rng, self._client, self._source
        request = fetch_request({source: position}, self._topic_ids, max_wait_ms=0, max_bytes=1 << 16)
        response = await client.caller.call(ApiKey.FETCH, request, version=16)
        (data,) = response.responses[0].partitions
        if data.error_code:
            raise Over(ErrorCode(data.error_code).name)
        records = records_from(data.records, position)[: rng.randint(1, 4)]
        if not records:
            await asyncio.sleep(0.5)
            return position
        self._number += 1
        life = f"{self._name}.{self._lives}"
        txn = client.history.begin(life, self._number)
        attempt = f"#{life}.{self._number}".encode()
        await client.write(txn, self._target, [b"copy/" + value + attempt for _, value in records])
        following = records[-1][0] + 1
        await client.commit_offset(GROUP, source, following)
        commit = rng.random() >= ABORTS
        await client.end(txn, commit=commit)
        return following if commit else position


class CommittedReader:
    """Reads a partition with read_committed, and filters aborted records as a client does."""

    def __init__(
        self,
        name: str,
        caller: Caller,
        history: TxnHistory,
        tp: TopicPartition,
        topic_ids: dict[str, UUID],
        rng: random.Random,
    ) -> None:
        self._caller = caller
        self._topic_ids = topic_ids
        self._rng = rng
        self.seen = Reader(name, tp)
        history.readers.append(self.seen)

    async def run(self, until: float) -> None:
        while asyncio.get_running_loop().time() < until:
            try:
                await self.poll()
            except NoAnswer:
                await asyncio.sleep(0.2)
            await asyncio.sleep(self._rng.uniform(0.1, 0.6))
        self._caller.close()

    async def poll(self, version: int | None = None) -> int:
        """Read available records. Returns the last stable offset."""
        seen, rng = self.seen, self._rng
        max_bytes = rng.choice((1, 300, 64_000))
        request = fetch_request(
            {seen.tp: seen.position}, self._topic_ids, max_wait_ms=100, max_bytes=max_bytes
        )
        request.isolation_level = READ_COMMITTED
        response = await self._caller.call(ApiKey.FETCH, request, version=version or rng.choice((11, 16)))
        (data,) = response.responses[0].partitions
        if data.error_code:
            raise NoAnswer(ErrorCode(data.error_code).name)
        values, seen.position = committed_records(data, seen.position)
        seen.polled += values
        last_stable: int = data.last_stable_offset
        return last_stable


def committed_records(data: Any, position: int) -> tuple[list[tuple[int, bytes]], int]:
    """(committed records of a fetched partition, position after them)."""
    found: list[tuple[int, bytes]] = []
    if not data.records:
        return found, position
    aborted = sorted((a.first_offset, a.producer_id) for a in data.aborted_transactions or ())
    skipped: set[int] = set()
    for batch in iter_batches(data.records):
        while aborted and aborted[0][0] <= batch.last_offset:
            skipped.add(aborted.pop(0)[1])
        if batch.last_offset < position:
            continue
        if batch.is_control:
            (record,) = iter_records(data.records, batch)
            if parse_control_key(record.key) is ControlType.ABORT:
                skipped.discard(batch.producer_id)
        elif not (batch.is_transactional and batch.producer_id in skipped):
            found += [
                (r.offset, r.value or b"") for r in iter_records(data.records, batch) if r.offset >= position
            ]
        position = batch.last_offset + 1
    return found, position
