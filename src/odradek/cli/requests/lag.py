"""The lag of groups: in records that they will get, in time, and the time until they catch up."""

from collections.abc import Sequence
from typing import NamedTuple

from odradek.cli.requests.cluster_access import READ_COMMITTED, ClusterAccess
from odradek.cli.requests.group_admin import GroupOffset
from odradek.cli.requests.scan import ReadLimit, ReadLimitError, UnreadRecords, unread
from odradek.cli.terminal.times import Seconds, seconds
from odradek.core.types import TopicPartition

READ_LIMIT_BYTES = 64 << 20
"""What one showing reads at most to count records; what is not counted then is unknown."""


class Behind(NamedTuple):
    """None where it is not known."""

    unread: int | None
    time: Seconds | None
    eta: Seconds | None


class LagMeter:
    """Knows two moments: the ETA comes from how offsets moved between them."""

    def __init__(self, cluster: ClusterAccess) -> None:
        self._cluster = cluster
        self._before: dict[tuple[str, TopicPartition], tuple[int, int, int]] = {}
        self._now: dict[tuple[str, TopicPartition], tuple[int, int, int]] = {}
        self._limit = ReadLimit(READ_LIMIT_BYTES)

    def new_moment(self) -> None:
        self._before, self._now = self._now, {}
        self._limit = ReadLimit(READ_LIMIT_BYTES)

    def measure(
        self, group: str, offsets: Sequence[GroupOffset], now_ms: int
    ) -> dict[TopicPartition, Behind]:
        known = [o for o in offsets if o.committed is not None and o.end is not None]
        counted = self._count(known)
        behind = {}
        for offset in known:
            assert offset.committed is not None and offset.end is not None
            self._now[group, offset.tp] = (now_ms, offset.committed, offset.end)
            found = counted[offset.tp]
            records = None if found is None else found.records
            behind[offset.tp] = Behind(records, _time(found, now_ms), self._eta(group, offset.tp, records))
        return behind

    def _count(self, offsets: Sequence[GroupOffset]) -> dict[TopicPartition, UnreadRecords | None]:
        topics, _ = self._cluster.find_topics(list(dict.fromkeys(o.tp.topic for o in offsets)))
        by_name = {topic.name: topic for topic in topics}
        bounds = self._cluster.bounds(topics, READ_COMMITTED)
        counted: dict[TopicPartition, UnreadRecords | None] = {}
        for tp, committed, _ in offsets:
            assert committed is not None
            start, stop = bounds[tp]
            position = max(committed, start)  # what was deleted since it was committed will not be read
            try:
                counted[tp] = (
                    unread(self._cluster, by_name[tp.topic], tp, position, stop, self._limit)
                    if position < stop
                    else UnreadRecords(0, None)
                )
            except ReadLimitError:
                counted[tp] = None
        return counted

    def _eta(self, group: str, tp: TopicPartition, records: int | None) -> Seconds | None:
        if records == 0:
            return Seconds(0)
        then, now = self._before.get((group, tp)), self._now[group, tp]
        if records is None or then is None:
            return None
        return eta(records, now[0] - then[0], now[1] - then[1], now[2] - then[2])


def eta(records: int, elapsed_ms: int, read: int, written: int) -> Seconds | None:
    """Until so many records are read, if it goes on as it went; None if the gap does not shrink."""
    gained = read - written
    return seconds(records * elapsed_ms / gained) if gained > 0 and elapsed_ms > 0 else None


def _time(found: UnreadRecords | None, now_ms: int) -> Seconds | None:
    if found is None:
        return None
    if found.records == 0:
        return Seconds(0)
    return None if found.first_timestamp_ms is None else seconds(now_ms - found.first_timestamp_ms)
