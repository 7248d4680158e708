"""Writes DataFrames to topics: the batch writer and the streaming writer, exactly once unless disabled.

`write` runs in the tasks and `commit` on the driver, in other processes. Commit messages carry data between
them. ledger.py has the rules of the protocol.
"""

import asyncio
import logging
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from random import Random
from typing import Any
from uuid import uuid4

import pyarrow as pa
from pyspark import TaskContext
from pyspark.sql.datasource import (
    DataSourceArrowWriter,
    DataSourceStreamArrowWriter,
    WriterCommitMessage,
)
from pyspark.sql.types import StructType

from odradek.client.blocking import BlockingClient
from odradek.client.client import Client
from odradek.client.idempotence import Idempotence
from odradek.core.errors import KafkaError
from odradek.records.compression import CODEC_IDS
from odradek.spark.ledger.deciding import Decider, WrittenBatch, abandon
from odradek.spark.ledger.finishing import finish_early
from odradek.spark.ledger.ledger import LedgerError, Participant, Range, Stream
from odradek.spark.ledger.ledger_log import LedgerLog, ensure_topics, is_there
from odradek.spark.options import OptionError, SinkOptions
from odradek.spark.process import client_of, forget, freeze_what_is_loaded, kept, reaching
from odradek.spark.quick import SentToTasks
from odradek.spark.sink import tasks
from odradek.spark.sink.outbox import Outbox
from odradek.spark.sink.participating import Attempt, Slots
from odradek.spark.sink.rows import RowEncoder, check_columns
from odradek.spark.sink.tasks import Task
from odradek.spark.source import checkpoint
from odradek.spark.telling import cause_first

_log = logging.getLogger(__name__)

_PATIENCE_S = 5.0
"""For what is done early and will be done again."""
_NO_RUN_YET = ""


@dataclass
class TaskWritten(WriterCommitMessage):
    """What a task tells the driver."""

    task: Task | None
    participant: Participant | None
    skipped: int = 0
    """Rows that were not written, since their batch is decided."""


class _Writer:
    """What both writers do in a task."""

    def __init__(self, options: SinkOptions, schema: StructType, job: str) -> None:
        freeze_what_is_loaded()
        self.options = options
        self.job = job
        types = {field.name: field.dataType.simpleString() for field in schema.fields}
        check_columns(list(types), types, options.topic)

    def write_task(self, rows: Iterator[pa.RecordBatch], task: Task) -> TaskWritten:
        freeze_what_is_loaded()
        with reaching(self.options.connecting):
            return self._write_task(rows, task)

    def _write_task(self, rows: Iterator[pa.RecordBatch], task: Task) -> TaskWritten:
        client = client_of(self.options.connecting)
        if not self.options.exactly_once:
            outbox = client.run(_idempotent_outbox(client.client, self._codec, self._timeout_s))
            try:
                self._put_all(client, rows, outbox)
                client.run(outbox.flush())
            finally:
                client.run(outbox.close())
            return TaskWritten(None, None)
        first = next((batch for batch in rows if batch.num_rows), None)
        if first is None:
            return TaskWritten(task, None)
        ledger, slots = _ledger_of(client, self.options), _slots_of(self.options)
        attempt = client.run(Attempt.begin(client.client, ledger, slots, task, self._codec, self._timeout_s))
        if attempt is None:
            return TaskWritten(task, None, first.num_rows + sum(batch.num_rows for batch in rows))
        try:
            self._put_all(client, chain([first], rows), attempt.outbox)
            return TaskWritten(task, client.run(attempt.finish()))
        except BaseException:
            with suppress(OSError, KafkaError):  # else the sweep ends it
                client.run(attempt.abort())
            raise

    @property
    def _codec(self) -> int:
        return CODEC_IDS[self.options.codec]

    @property
    def _timeout_s(self) -> float:
        return self.options.connecting.delivery_timeout_ms / 1000

    def _put_all(self, client: BlockingClient, rows: Iterator[pa.RecordBatch], outbox: Outbox) -> None:
        options = self.options
        encoder = RowEncoder(
            options.topic, options.batch_bytes, Random(), with_headers=options.include_headers
        )
        counts: dict[str, int] = {}
        for batch in rows:
            for topic in encoder.topics_of(batch):
                if topic not in counts:
                    found = client.call(_partitions, client.client, topic)
                    counts[topic] = len(found)
            now_ms = int(time.time() * 1000)
            encoded = list(encoder.encode(batch, counts))
            client.run(_put(outbox, encoded, now_ms))


@cause_first
class StreamWriter(SentToTasks, DataSourceStreamArrowWriter):
    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        if options.batch is not None:
            raise OptionError("batchId is for df.write: the batches of a writeStream have numbers")
        self._writer = _Writer(options, schema, "")
        if options.exactly_once and options.checkpoint is not None:
            # On the driver, before the tasks of every batch, in a process that Spark keeps: done once.
            kept(("finished", options), lambda: _finish_last(options))

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        return self._writer.write_task(iterator, tasks.of_stream(context.getLocalProperty, self._options))

    @property
    def _options(self) -> SinkOptions:
        return self._writer.options

    def commit(self, messages: list[Any], batchId: int) -> None:
        options = self._options
        task = _task_of(messages)
        if not options.exactly_once or task is None:
            return  # without a task nothing was written
        range_ = checkpoint.read_range(options.checkpoint, batchId)
        _decide(options, task._replace(batch=batchId), "", range_, messages)

    def abort(self, messages: list[Any], batchId: int) -> None:
        _abandon(self._options, messages)


@cause_first
class Writer(SentToTasks, DataSourceArrowWriter):
    """A job of its own, all or nothing; or a write in foreachBatch, which belongs to a batch of a query."""

    def __init__(self, options: SinkOptions, schema: StructType) -> None:
        self._writer = _Writer(options, schema, uuid4().hex[:12])

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        context = TaskContext.get()
        assert context is not None
        task = tasks.of_write(context.getLocalProperty, self._writer.options, self._writer.job)
        return self._writer.write_task(iterator, task)

    def commit(self, messages: list[Any]) -> None:
        options, job = self._writer.options, self._writer.job
        task = _task_of(messages)
        if not options.exactly_once or task is None:
            return
        is_last = not tasks.is_of_batches(task, options, job)
        is_told = options.checkpoint is not None and not is_last
        query = task.stream.query if options.batch is None else None
        range_ = Range()
        if is_told:
            assert options.checkpoint is not None
            range_ = checkpoint.read_range_of(options.checkpoint, task.batch, query)
        _decide(options, task, job, range_, messages, is_last=is_last)

    def abort(self, messages: list[Any]) -> None:
        _abandon(self._writer.options, messages)


def _finish_last(options: SinkOptions) -> None:
    """Commit what a run that died had decided, before this one reads anything. Where it cannot be done now,
    the tasks or the driver do it, when the batch is run again, and tell what is wrong."""
    assert options.checkpoint is not None
    query = checkpoint.query_id(options.checkpoint)
    if query is None:
        return
    stream, timeout_s = Stream(query, options.sink), options.connecting.delivery_timeout_ms / 1000
    client = client_of(options.connecting)

    async def look() -> None:
        ledger = LedgerLog(client.client)
        try:
            async with asyncio.timeout(_PATIENCE_S):
                entry = await ledger.entry(stream) if await is_there(client.client) else None
                if entry is not None:
                    await finish_early(client.client, entry.decision, _NO_RUN_YET, timeout_s)
        finally:
            ledger.close()

    try:
        client.run(look())
    except (LedgerError, KafkaError, OSError) as e:
        _log.warning("%s: could not check yet whether the last batch was committed: %s", stream, e)


def _task_of(messages: Sequence[TaskWritten | None]) -> Task | None:
    """For which batch tasks wrote; those that failed tell nothing."""
    return next((m.task for m in messages if m is not None and m.task is not None), None)


def _slots_of(options: SinkOptions) -> Slots:
    found: Slots = kept(("slots", options.connecting, options.prefix), lambda: Slots(options.prefix))
    return found


def _ledger_of(client: BlockingClient, options: SinkOptions) -> LedgerLog:
    async def make() -> LedgerLog:
        await ensure_topics(client.client)
        return LedgerLog(client.client)

    found: LedgerLog = kept(("ledger", options.connecting), lambda: client.run(make()))
    return found


def _decide(
    options: SinkOptions,
    task: Task,
    job: str,
    range_: Range,
    messages: Sequence[TaskWritten | None],
    *,
    is_last: bool = False,
) -> None:
    """`is_last`: no batch of this stream will follow, so its decider need not be kept."""
    client = client_of(options.connecting)
    participants = tuple(m.participant for m in messages if m is not None and m.participant is not None)
    skipped = sum(m.skipped for m in messages if m is not None)
    batch = WrittenBatch(task.batch, task.run, job, range_, participants, {}, skipped)
    # A query that is restarted in this driver may have other options.
    key = ("decider", options.connecting, options.prefix, task.stream, options.group, options.adopts)
    with reaching(options.connecting):
        decider = kept(key, lambda: client.run(_make_decider(client.client, options, task.stream)))
        offsets = checkpoint.source_offsets(range_, client.client.cluster.cluster_id)
        try:
            client.run(decider.commit(batch._replace(offsets=offsets)))
            if is_last:
                _forget_jobs(client, decider)
        except BaseException:
            is_last = True
            raise
        finally:
            if is_last:
                forget(key)
                client.run(decider.close())


def _forget_jobs(client: BlockingClient, decider: Decider) -> None:
    try:
        client.run(decider.forget_jobs())
    except (LedgerError, KafkaError, OSError) as e:
        _log.warning("could not remove past jobs from the ledger, the next write tries again: %s", e)


async def _make_decider(client: Client, options: SinkOptions, stream: Stream) -> Decider:
    await ensure_topics(client)
    group = options.group or f"{options.prefix}.{stream.query}"
    return Decider(
        client,
        stream,
        prefix=options.prefix,
        group=group,
        adopts=options.adopts,
        name=options.name,
        timeout_s=options.connecting.delivery_timeout_ms / 1000,
    )


def _abandon(options: SinkOptions, messages: Sequence[TaskWritten | None]) -> None:
    """The batch failed. What its tasks left open is ended if that can be done now, else by the next run."""
    task = _task_of(messages)
    if not options.exactly_once or task is None:
        return
    client = client_of(options.connecting)
    with suppress(LedgerError, KafkaError, OSError):  # the error that made the batch fail must be raised
        client.run(abandon(client.client, task.stream, options.prefix, task.run))


async def _idempotent_outbox(client: Client, codec: int, timeout_s: float) -> Outbox:
    terms = Idempotence(client, idempotent=True)
    await terms.prepare()
    assert terms.identity is not None
    return Outbox(client, terms.identity, None, codec=codec, delivery_timeout_s=timeout_s)


async def _partitions(client: Client, topic: str) -> list[int]:
    """As they are now, since a worker lives for long. A topic that is missing is made, where the cluster does
    that for producers."""

    async def ask() -> list[int]:
        await client.refresh([topic], allow_auto_creation=True)
        return await client.partitions(topic)

    return await client.retrying(ask)


async def _put(outbox: Outbox, encoded: list[Any], now_ms: int) -> None:
    for tp, batch, count in encoded:
        await outbox.put(tp, batch, count, now_ms)
