"""The whole proof: a Spark job compares the decisions with the output."""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from pyspark.sql import SparkSession

from odradek.client.blocking import BlockingClient
from odradek.core.types import ProducerIdAndEpoch, TopicPartition
from odradek.spark.ledger.ledger import Decision, Stream, topics_of
from odradek.spark.options import Connecting
from odradek.spark.proving.overlaps import check_bounds, check_known, check_overlaps
from odradek.spark.proving.ranges import Covered, check_ranges, once_each, writers_of
from odradek.spark.proving.rows import compare_rows
from odradek.spark.proving.scanning import (
    bounds_of,
    count_transactions,
    ends_of,
    has_all_history,
    ids_of,
    list_ids,
    partitions_of,
    read_history,
    topic_id_of,
)
from odradek.spark.proving.transactions import Judge, Judged, Written, merge, participants_of
from odradek.spark.proving.violations import Violation
from odradek.spark.source.planning import OffsetRange, Offsets, split

_OFFSETS_PER_TASK = 5_000_000


class NothingToProveError(Exception):
    """No stream is known that reads the one topic and writes the other."""


class Question(NamedTuple):
    source: str
    sink: str
    by: str = "none"
    stream: str | None = None
    """The id of a query, or query/sink: only this one of several."""


class Proof(NamedTuple):
    streams: list[str]
    other_streams: list[str]
    """They wrote to the output, too, and are not judged: they read other topics, or were not asked for."""
    first_batch: int
    batches: int
    inputs: int
    behind: int
    """Offsets of the input that are not in a decided batch yet."""
    judged: Judged
    violations: list[Violation]


def prove(
    client: BlockingClient, connecting: Connecting, spark: Callable[[], SparkSession], question: Question
) -> Proof:
    """Decisions are read before and after the output: one that was made meanwhile names what it committed."""
    writers = writers_of(read_history(client), question.source, question.sink)
    streams = _choose(writers.between, question)
    source_id = topic_id_of(client, question.source)
    violations: list[Violation] = []
    decided: dict[Stream, list[Decision]] = {}
    for stream, decisions in streams.items():
        decided[stream], twice = once_each(stream, decisions)
        violations += twice
    covered = {
        stream: check_ranges(stream, kept, question.source, source_id) for stream, kept in decided.items()
    }
    for found in covered.values():
        violations += found.violations
    violations += check_overlaps(covered)
    if question.stream is None:
        violations += check_known(writers.unknown, question.sink)

    judged = _judge(client, connecting, spark, question, decided)
    violations += judged.violations
    source = bounds_of(client, partitions_of(client, question.source))
    log_starts = {r.tp: r.start for r in source}
    violations += check_bounds(covered, log_starts, ends_of(client, [r.tp for r in source]))
    if question.by != "none":
        sink = bounds_of(client, partitions_of(client, question.sink))
        violations += compare_rows(spark(), connecting, _clip(source, covered), sink, question.by)
    others = {*writers.between, *writers.elsewhere, *writers.unknown} - set(decided)
    return Proof(
        streams=sorted(str(stream) for stream in decided),
        other_streams=sorted(str(stream) for stream in others),
        first_batch=min(kept[0].batch for kept in decided.values()),
        batches=sum(len(kept) for kept in decided.values()),
        inputs=sum(_inputs(source, found) for found in covered.values()),
        behind=sum(max(0, r.end - max(r.start, _reached(covered, r.tp))) for r in source),
        judged=judged,
        violations=violations,
    )


def _choose(between: Mapping[Stream, list[Decision]], question: Question) -> dict[Stream, list[Decision]]:
    wanted = question.stream
    found = {s: kept for s, kept in between.items() if wanted in (None, s.query, str(s))}
    if not found:
        which = f"the query {wanted}" if wanted else "a query"
        raise NothingToProveError(
            f"found no decision of {which} that reads {question.source} and writes {question.sink}"
        )
    return found


def _judge(
    client: BlockingClient,
    connecting: Connecting,
    spark: Callable[[], SparkSession],
    question: Question,
    decided: Mapping[Stream, list[Decision]],
) -> Judged:
    ids = {stream: ids_of(client, stream, kept) for stream, kept in decided.items()}
    written, log_starts = _scan(client, connecting, spark, question.sink, decided)
    later = read_history(client)
    named: set[ProducerIdAndEpoch] = set(participants_of(decision for _, decision in later))
    for kept in decided.values():
        named |= set(participants_of(kept))
    unfinished = {name for found in ids.values() for name in found.unfinished}
    judge = Judge(question.sink, written, named, unfinished, log_starts, has_all=has_all_history(client))
    for stream, kept in decided.items():
        judge.judge(stream, kept, ids[stream].producer_ids)
    if question.stream is None:
        judge.judge_others(list_ids(client).producer_ids)
    return judge.result()


def _scan(
    client: BlockingClient,
    connecting: Connecting,
    spark: Callable[[], SparkSession],
    sink: str,
    decided: Mapping[Stream, list[Decision]],
) -> tuple[list[Written], Offsets]:
    """Everything in the output, and in whatever other topics the same transactions wrote to."""
    topics = {sink}.union(*(topics_of(decision) for kept in decided.values() for decision in kept))
    wanted = bounds_of(client, [tp for topic in sorted(topics) for tp in partitions_of(client, topic)])
    log_starts = {r.tp: r.start for r in wanted}
    tasks = [(connecting, r, log_starts[r.tp]) for r in split(wanted, None, _OFFSETS_PER_TASK)]
    if not tasks:
        return [], log_starts
    context = spark().sparkContext
    found = context.parallelize(tasks, len(tasks)).flatMap(lambda task: count_transactions(*task)).collect()
    return merge(found), log_starts


def _reached(covered: Mapping[Stream, Covered], tp: TopicPartition) -> int:
    return max((found.ends.get(tp, 0) for found in covered.values()), default=0)


def _inputs(source: Sequence[OffsetRange], found: Covered) -> int:
    firsts = {r.tp: r.start for r in source}
    return sum(max(0, end - found.starts.get(tp, firsts.get(tp, 0))) for tp, end in found.ends.items())


def _clip(source: Sequence[OffsetRange], covered: Mapping[Stream, Covered]) -> list[OffsetRange]:
    """The part of the input that batches were made of."""
    clipped = []
    for tp, start, end in source:
        begins = [found.starts.get(tp, start) for found in covered.values() if tp in found.ends]
        clipped.append(
            OffsetRange(tp, max(start, min(begins, default=start)), min(end, _reached(covered, tp)))
        )
    return clipped
