"""What exactly once costs a micro-batch, without Spark: two tasks begin and write, the driver decides."""

import asyncio
import statistics
import time
from collections.abc import Iterator

from odradek.client.client import Client
from odradek.core.types import TopicPartition
from odradek.records import kernel
from odradek.records.header import HEADER_BYTES
from odradek.spark.ledger.deciding import Decider, WrittenBatch
from odradek.spark.ledger.ledger import Participant, Range, Stream
from odradek.spark.ledger.ledger_log import LedgerLog, ensure_topics
from odradek.spark.sink.participating import Attempt, Slots, Task

TASKS, PARTITIONS, RECORDS = 2, 4, 50
WARM_BATCHES, BATCHES = 50, 200
RUN = "benchrun"

Times = dict[str, list[float]]


class _Worker:
    """A Python process of Spark, as far as the cluster sees it."""

    def __init__(self, bootstrap: str) -> None:
        self.client = Client(bootstrap)
        self._ledger = LedgerLog(self.client)
        self._slots = Slots("bench")

    async def write(self, task: Task, topic: str, times: Times) -> Participant:
        began = time.perf_counter()
        attempt = await Attempt.begin(self.client, self._ledger, self._slots, task, 0)
        assert attempt is not None
        begun = time.perf_counter()
        for partition in range(PARTITIONS):
            data = kernel.encode([(0, None, b"x" * 100, ())] * RECORDS, 0, HEADER_BYTES)
            await attempt.outbox.put(TopicPartition(topic, partition), data, RECORDS, int(time.time() * 1000))
        participant = await attempt.finish()
        assert participant is not None
        times["begin"].append(begun - began)
        times["write"].append(time.perf_counter() - begun)
        return participant


async def _play(bootstrap: str, source: str, topic: str) -> Times:
    times: Times = {"begin": [], "write": [], "decide": []}
    async with Client(bootstrap) as client:
        await ensure_topics(client)
        stream = Stream(f"bench-{time.monotonic_ns()}", "sink")
        decider = Decider(client, stream, prefix="bench", group=f"bench.{stream.query}")
        workers = [_Worker(bootstrap) for _ in range(TASKS)]
        for number in range(WARM_BATCHES + BATCHES):
            task = Task(stream, RUN, number)
            participants = await asyncio.gather(*(worker.write(task, topic, times) for worker in workers))
            range_ = Range((str(number),), (str(number + 1),))
            offsets = {TopicPartition(source, 0): number}
            began = time.perf_counter()
            await decider.commit(WrittenBatch(number, RUN, "", range_, tuple(participants), offsets))
            times["decide"].append(time.perf_counter() - began)
        await decider.close()
        for worker in workers:
            await worker.client.close()
    return times


def protocol_ms(bootstrap: str, source: str, topic: str) -> Iterator[tuple[str, float]]:
    """Milliseconds: to begin a transaction, to write and wait for the cluster, to decide and commit."""
    for step, taken in asyncio.run(_play(bootstrap, source, topic)).items():
        warm = taken[-BATCHES:]
        yield f"{step}.p50", statistics.median(warm) * 1000
        yield f"{step}.p99", statistics.quantiles(warm, n=100)[98] * 1000
