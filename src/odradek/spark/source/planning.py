"""Which offsets a micro-batch takes, and how they are split over tasks. Pure."""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from odradek.core.types import TopicPartition

Offsets = dict[TopicPartition, int]

CLUSTER, TOPICS, STARTS = "@cluster", "@topics", "@starts"
"""No topic can be called so: the cluster that a checkpoint's offsets belong to, the ids of its topics, and
where partitions begin that are new in this batch: all of them in the first. When the batch is run again this
is still the same, and what a broker answers may not be."""


class OffsetRange(NamedTuple):
    tp: TopicPartition
    start: int
    end: int

    @property
    def size(self) -> int:
        return max(self.end - self.start, 0)


def to_json(
    offsets: Mapping[TopicPartition, int],
    cluster_id: str | None,
    topic_ids: Mapping[str, str] | None = None,
    starts: Mapping[TopicPartition, int] | None = None,
) -> dict[str, Any]:
    """As the official connector writes them, and whose they are. `starts` are those of new partitions."""
    out = _by_topic(offsets)
    if cluster_id is not None:
        out[CLUSTER] = cluster_id
    ids = {name: id_ for name, id_ in (topic_ids or {}).items() if name in out}
    if ids:
        out[TOPICS] = ids
    if starts:
        out[STARTS] = _by_topic(starts)
    return out


def _by_topic(offsets: Mapping[TopicPartition, int]) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for tp in sorted(offsets):
        out.setdefault(tp.topic, {})[str(tp.partition)] = offsets[tp]
    return out


def from_json(value: Mapping[str, Any]) -> tuple[Offsets, str | None]:
    offsets = {
        TopicPartition(topic, int(partition)): int(offset)
        for topic, partitions in value.items()
        if topic not in (CLUSTER, TOPICS, STARTS)
        for partition, offset in partitions.items()
    }
    return offsets, value.get(CLUSTER)


def starts_of(end: Mapping[str, Any]) -> Offsets:
    """Where the batch that ends here begins in partitions that were new in it."""
    return from_json(end.get(STARTS, {}))[0]


def is_same_place(one: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Whether a reader goes on from the same offsets: where earlier batches began does not matter to it."""
    return {**one, STARTS: None} == {**other, STARTS: None}


def made_anew(before: Mapping[str, Any], now: Mapping[str, str]) -> list[str]:
    """The topics that have another id now than when these offsets were written."""
    ids: Mapping[str, str] = before.get(TOPICS, {})
    return sorted(name for name, id_ in ids.items() if now.get(name, id_) != id_)


def limit_to(rows: int, start: Mapping[TopicPartition, int], end: Mapping[TopicPartition, int]) -> Offsets:
    """About `rows` offsets at most, from every partition in proportion to its size, but at least one from
    each that has any."""
    sizes = {tp: end[tp] - start.get(tp, end[tp]) for tp in end}
    total = sum(size for size in sizes.values() if size > 0)
    if total <= rows:
        return dict(end)
    limited: Offsets = {}
    for tp, size in sizes.items():
        share = -(-rows * size // total) if size > 0 else 0
        limited[tp] = min(end[tp], start.get(tp, end[tp]) + share)
    return limited


def split(
    ranges: Sequence[OffsetRange], min_partitions: int | None, max_records: int | None
) -> list[OffsetRange]:
    """A task for every partition; several for a large partition if the options ask for it."""
    ranges = [r for r in ranges if r.size]
    if max_records is not None:
        ranges = [piece for r in ranges for piece in _pieces(r, -(-r.size // max_records))]
    if min_partitions is not None and len(ranges) < min_partitions:
        total = sum(r.size for r in ranges)
        shares = [-(-r.size * min_partitions // total) for r in ranges]
        ranges = [piece for r, share in zip(ranges, shares, strict=True) for piece in _pieces(r, share)]
    return list(ranges)


def pack(ranges: Sequence[OffsetRange], least: int) -> list[tuple[OffsetRange, ...]]:
    """The ranges of each task: at least `least` offsets, if there are that many. Starting and ending a task
    takes longer than reading thousands of records, so one task reads a small micro-batch."""
    tasks: list[tuple[OffsetRange, ...]] = []
    gathered: list[OffsetRange] = []
    total = 0
    for r in ranges:
        gathered.append(r)
        total += r.size
        if total >= least:
            tasks.append(tuple(gathered))
            gathered, total = [], 0
    if gathered:
        tasks.append(tuple(gathered))
    return tasks


def _pieces(r: OffsetRange, count: int) -> list[OffsetRange]:
    count = min(count, r.size)
    cuts = [r.start + r.size * i // count for i in range(count + 1)]
    return [OffsetRange(r.tp, a, b) for a, b in pairwise(cuts)]
