"""Records with their outcome: committed, aborted, or in a transaction that is still open.

Up to the last stable offset, a fetch lists the aborted transactions. Above it, the next marker of the same
producer decides.
"""

import sys
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from odradek.cli.requests.cluster_access import READ_UNCOMMITTED, ClusterAccess, TopicInfo
from odradek.cli.requests.scan import ReadLimit, scan
from odradek.core.types import TopicPartition
from odradek.records.batch import BatchMeta, Record, iter_records
from odradek.records.control import ControlType, parse_control_key

COMMITTED: Final = "committed"
ABORTED: Final = "aborted"
OPEN: Final = "open"
OUTCOMES: Final = (COMMITTED, ABORTED, OPEN)


class ReadRange(NamedTuple):
    """What to read of a partition; `last_stable_offset` and `log_end_offset` are those of the moment."""

    start: int
    stop: int
    last_stable_offset: int
    log_end_offset: int


class Found(NamedTuple):
    """Records of a batch. What belongs to no transaction is committed by itself."""

    batch: BatchMeta
    outcome: str
    records: list[Record]


def records_with_outcomes(
    cluster: ClusterAccess, topic: TopicInfo, tp: TopicPartition, wanted: ReadRange
) -> Iterator[Found]:
    def found(data: Any, batch: BatchMeta, outcome: str) -> Found:
        records = [r for r in iter_records(data, batch) if wanted.start <= r.offset < wanted.stop]
        return Found(batch, outcome, records)

    limit = ReadLimit(sys.maxsize)
    stable = min(wanted.stop, wanted.last_stable_offset)
    for data, batch, is_shown in scan(cluster, topic, tp, wanted.start, stable, limit):
        if not batch.is_control:
            yield found(data, batch, COMMITTED if is_shown else ABORTED)
    first = max(wanted.start, wanted.last_stable_offset)
    if first >= wanted.stop:
        return
    decisions = _decisions(cluster, topic, tp, first, wanted.log_end_offset, limit)
    for data, batch, _ in scan(
        cluster, topic, tp, first, wanted.stop, limit, isolation_level=READ_UNCOMMITTED
    ):
        if not batch.is_control:
            yield found(data, batch, _outcome(batch, decisions))


Decisions = Mapping[int, list[tuple[int, str]]]
"""By producer id: (offset of a marker, what it says), in the order of the log."""


def _decisions(
    cluster: ClusterAccess, topic: TopicInfo, tp: TopicPartition, start: int, stop: int, limit: ReadLimit
) -> Decisions:
    found: dict[int, list[tuple[int, str]]] = {}
    for data, batch, _ in scan(cluster, topic, tp, start, stop, limit, isolation_level=READ_UNCOMMITTED):
        if batch.is_control:
            record = next(iter(iter_records(data, batch)), None)
            if record is not None:
                kind = parse_control_key(record.key)
                outcome = COMMITTED if kind is ControlType.COMMIT else ABORTED
                found.setdefault(batch.producer_id, []).append((batch.base_offset, outcome))
    return found


def _outcome(batch: BatchMeta, decisions: Decisions) -> str:
    if not batch.is_transactional:
        return COMMITTED
    markers = decisions.get(batch.producer_id, [])
    at = bisect_right(markers, (batch.last_offset, ""))
    return markers[at][1] if at < len(markers) else OPEN
