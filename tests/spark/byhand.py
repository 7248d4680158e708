"""Runs of a query by hand, without Spark: what its driver and one of its worker processes do."""

import time

from odradek.client.client import Client
from odradek.core.types import TopicPartition
from odradek.records import kernel
from odradek.records.header import HEADER_BYTES
from odradek.spark.ledger.deciding import Decider, WrittenBatch
from odradek.spark.ledger.ledger import Participant, Range, Stream
from odradek.spark.ledger.ledger_log import LedgerLog
from odradek.spark.sink.outbox import DELIVERY_TIMEOUT_S
from odradek.spark.sink.participating import Attempt, Slots
from odradek.spark.sink.tasks import Task


class Worker:
    """A Python process of Spark: the ids that it uses, and what it has read."""

    def __init__(self, client: Client, timeout_s: float = DELIVERY_TIMEOUT_S) -> None:
        self._client = client
        self._timeout_s = timeout_s
        self._slots = Slots("odradek")
        self._ledger = LedgerLog(client)

    async def begin(self, task: Task) -> Attempt | None:
        return await Attempt.begin(self._client, self._ledger, self._slots, task, 0, self._timeout_s)

    async def write(self, task: Task, topic: str, *values: str) -> Participant | None:
        attempt = await self.begin(task)
        if attempt is None:
            return None
        records = [(0, None, value.encode(), ()) for value in values]
        data = kernel.encode(records, 0, HEADER_BYTES)
        await attempt.outbox.put(TopicPartition(topic, 0), data, len(values), int(time.time() * 1000))
        return await attempt.finish()

    def close(self) -> None:
        self._ledger.close()


class Query:
    """A run of a query: its driver, and one worker."""

    def __init__(
        self,
        client: Client,
        stream: Stream,
        run: str,
        topic: str,
        timeout_s: float = DELIVERY_TIMEOUT_S,
    ) -> None:
        self.client = client
        self.stream = stream
        self.run = run
        self.topic = topic
        self.worker = Worker(client, timeout_s)
        self.decider = Decider(client, stream, timeout_s=timeout_s)

    def task(self, batch: int) -> Task:
        return Task(self.stream, self.run, batch)

    async def begin(self, batch: int) -> Attempt | None:
        return await self.worker.begin(self.task(batch))

    async def write(self, batch: int, *values: str) -> Participant | None:
        return await self.worker.write(self.task(batch), self.topic, *values)

    def batch(self, number: int, *participants: Participant | None) -> WrittenBatch:
        range_ = Range((str(number),), (str(number + 1),))
        return WrittenBatch(number, self.run, "", range_, tuple(p for p in participants if p is not None), {})

    async def close(self) -> None:
        self.worker.close()
        await self.decider.close()
