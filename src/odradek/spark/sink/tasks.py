"""Which batch a task of Spark writes for: of which query, in which run, with which number. Pure.

Spark says so in the local properties of the task's job, where it does: not to plain jobs, and not to those
that a program starts from other threads, or through Spark Connect. There options say it instead.
"""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from odradek.spark.ledger.ledger import Stream
from odradek.spark.options import OptionError, SinkOptions

QUERY, BATCH, GROUP = "sql.streaming.queryId", "streaming.sql.batchId", "spark.jobGroup.id"
"""Spark's local properties. The group of a query's jobs is its run's id, unless a program names another."""

FIRST_BATCH = 0
_RUN_CHARACTERS = 8

_NO_CHECKPOINT = (
    "a write in foreachBatch needs the checkpointLocation of its query, and Spark does not pass it on. "
    "Without it, a batch of an older copy of the checkpoint would be taken for the one that was committed "
    "last, and be lost. Add this line to the write, with the path of writeStream: "
    '.option("checkpointLocation", PATH). Nothing was written'
)

Property = Callable[[str], str | None]


class Task(NamedTuple):
    """Which batch an attempt writes for."""

    stream: Stream
    run: str
    batch: int


def of_stream(of: Property, options: SinkOptions) -> Task:
    """Of a writeStream."""
    query, group, batch = of(QUERY), of(GROUP), of(BATCH)
    assert query is not None and group is not None and batch is not None
    return Task(Stream(query, options.sink), group[:_RUN_CHARACTERS], int(batch))


def of_write(of: Property, options: SinkOptions, job: str) -> Task:
    """Of a df.write, whose own name is `job`: what its options say goes before what Spark says, so that a
    program is the same wherever it runs."""
    own_run = job[:_RUN_CHARACTERS]
    query, batch = of(QUERY), of(BATCH)
    if query is not None and batch is not None and options.exactly_once and options.checkpoint is None:
        raise OptionError(_NO_CHECKPOINT)
    if options.batch is not None:
        assert options.idempotency_key is not None
        return Task(Stream(options.idempotency_key, options.sink), own_run, options.batch)
    if query is not None and batch is not None:
        return Task(Stream(query, options.sink), _run_of_group(of(GROUP)) or own_run, int(batch))
    return Task(Stream(options.idempotency_key or job, options.sink), own_run, FIRST_BATCH)


def is_of_batches(task: Task, options: SinkOptions, job: str) -> bool:
    """Whether more batches of the stream may follow: not after a plain write."""
    return options.batch is not None or task.stream.query not in (job, options.idempotency_key)


def _run_of_group(group: str | None) -> str | None:
    """None for a group that a program has named: another driver may name its own so, too, and a dot in it
    would be taken for the end of the name."""
    try:
        return str(UUID(group))[:_RUN_CHARACTERS] if group is not None else None
    except ValueError:
        return None
