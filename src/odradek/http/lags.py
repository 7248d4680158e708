"""How far consumer groups are behind: in offsets from their commits, in time from what was scraped before.

The age of the first unread record is interpolated between the ends seen at earlier scrapes, as
kafka-lag-exporter does it: no scrape ever reads a log.
"""

from collections import deque
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from odradek.coordinators.groups.admin import listed
from odradek.core.types import TopicPartition

if TYPE_CHECKING:
    from odradek.http.observed import Observed

POINTS = 60
ROWS_AT_ONCE = 100


class PartitionLag(NamedTuple):
    topic: str
    partition: int
    committed: int
    lag: int
    lag_ms: int | None  # None until two scrapes have seen the log grow


class GroupLags(NamedTuple):
    name: str
    protocol: str
    state: str
    members: int
    rows: list[PartitionLag]


class Timeline:
    """When the end of a log was where: the ends of the latest scrapes at which it had moved."""

    __slots__ = ("_points",)

    def __init__(self) -> None:
        self._points: deque[tuple[int, int]] = deque(maxlen=POINTS)

    def record(self, now_ms: int, end_offset: int) -> None:
        points = self._points
        if points and points[-1][1] > end_offset:
            points.clear()  # the log was cut back
        if len(points) > 1 and points[-2][1] == points[-1][1] == end_offset:
            points[-1] = now_ms, end_offset  # at rest: only the first and the last moment matter
        else:
            points.append((now_ms, end_offset))

    def age_ms(self, now_ms: int, offset: int) -> int | None:
        """How long ago the end passed an offset; beyond what was seen, at the pace that was seen."""
        if len(self._points) < 2:
            return None
        earlier = later = None
        for point in self._points:
            if point[1] > offset:
                later = point
                break
            earlier = point
        if earlier is None or later is None:
            earlier, later = self._points[0], self._points[-1]
        (time_a, offset_a), (time_b, offset_b) = earlier, later
        if offset_b == offset_a:
            return None
        passed_ms = time_a + (time_b - time_a) * (offset - offset_a) / (offset_b - offset_a)
        return max(0, int(now_ms - passed_ms))


class Lags:
    """The lags of every group coordinated here, on partitions led here."""

    def __init__(self, node: "Observed") -> None:
        self._node = node
        self._timelines: dict[TopicPartition, Timeline] = {}

    def groups(self, now_ms: int) -> Iterator[GroupLags | None]:
        """Group by group; None in between is a pause. Groups may come and go while the caller pauses."""
        timelines: dict[TopicPartition, Timeline] = {}
        looked_at = 0
        for shard in list(self._node.groups.shards()):
            for name, group in list(shard.groups.items()):
                rows = []
                for topic, partitions in list(shard.offsets.of_group(name).items()):
                    for index, committed in list(partitions.items()):
                        looked_at += 1
                        if looked_at % ROWS_AT_ONCE == 0:
                            yield None
                        tp = TopicPartition(topic, index)
                        partition = self._node.replicas.partitions.get(tp)
                        if partition is None or not partition.is_leader:
                            continue
                        end_offset = partition.log.high_watermark
                        if tp not in timelines:
                            timelines[tp] = self._timelines.get(tp) or Timeline()
                            timelines[tp].record(now_ms, end_offset)
                        lag = max(0, end_offset - committed.offset)
                        lag_ms = timelines[tp].age_ms(now_ms, committed.offset) if lag else 0
                        rows.append(PartitionLag(topic, index, committed.offset, lag, lag_ms))
                row = listed(group)
                yield GroupLags(name, row.group_type, row.group_state, len(group.members), rows)
        self._timelines = timelines
