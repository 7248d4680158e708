"""BatchReader: finds the batches for a read, up to the bound of its isolation, and the aborted transactions
in them."""

import logging
from typing import NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import TopicPartition
from odradek.log.files import FileSlice
from odradek.log.parts.bounds import Bounds, Isolation
from odradek.log.parts.log_config import LogConfig
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments

_log = logging.getLogger(__name__)


class Position(NamedTuple):
    """The position of the batch that contains an offset, in its segment."""

    segment: Segment
    base_offset: int
    position: int
    size: int


class FetchInfo:
    """The result of a read. `aborted` is None unless the isolation is TXN_COMMITTED."""

    __slots__ = ("aborted", "first_offset", "size", "slice")

    def __init__(
        self, first_offset: int, slice: FileSlice | None, aborted: list[tuple[int, int]] | None = None
    ) -> None:
        self.slice = slice
        self.first_offset = first_offset
        self.size = 0 if slice is None else slice.size
        self.aborted = aborted


class BatchReader:
    """Finds batches by offset. `newest` is the start of the last append, where consumers without lag read."""

    __slots__ = ("_bound", "_bounds", "_config", "_dir", "_gaps", "_segments", "newest")

    def __init__(
        self, directory: PartitionDir, config: LogConfig, segments: Segments, bounds: Bounds
    ) -> None:
        self._dir = directory
        self._config = config
        self._segments = segments
        self._bounds = bounds
        self.newest: Position | None = None
        self._bound: Position | None = None
        self._gaps: set[int] = set()

    def forget_positions(self) -> None:
        """Segments were truncated or replaced: cached positions are invalid."""
        self._bound = self.newest = None

    def read(self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool) -> FetchInfo:
        """Raises OFFSET_OUT_OF_RANGE, OSError."""
        bounds = self._bounds
        end = bounds.log_end_offset
        if not bounds.log_start_offset <= offset <= end:
            raise out_of_range(self._dir.topic_partition, offset, bounds.log_start_offset, end)
        committed = isolation is Isolation.TXN_COMMITTED
        if isolation is Isolation.LOG_END:
            bound = end
        else:
            bound = bounds.last_stable_offset if committed else bounds.high_watermark
        if offset >= bound:
            return FetchInfo(offset, None, [] if committed else None)
        newest = self.newest
        found = newest if newest is not None and newest.base_offset == offset else self._find(offset)
        if found is None:
            return FetchInfo(offset, None, [] if committed else None)
        segment, base_offset, position, batch_size = found
        if bound == end and segment is self._segments.active:
            last_position = segment.size
        else:
            last_position = self._bound_position(segment, bound)
        size = min(last_position - position, max(max_bytes, batch_size if min_one_message else 0))
        if size <= 0:
            return FetchInfo(offset, None, [] if committed else None)
        aborted = self._aborted(segment, offset, position + size) if committed else None
        return FetchInfo(base_offset, segment.slice(position, size), aborted)

    def _find(self, offset: int) -> Position | None:
        """The batch that contains an offset, or the first one after it if the offset is missing."""
        segment = self._segments.floor(offset)
        while segment is not None:
            found = segment.translate(offset)
            if found is not None:
                if segment.base_offset > offset and not self._config.topic.is_compacted:
                    self._warn_of_gap(segment)
                return Position(segment, *found)
            segment = self._segments.after(segment)
        return None

    def _warn_of_gap(self, segment: Segment) -> None:
        """Warns once. The topic is not compacted, so the segment before this one was removed by hand."""
        if segment.base_offset not in self._gaps:
            self._gaps.add(segment.base_offset)
            _log.warning("The records before %s are missing: reads skip the gap", segment.file.path)

    def _bound_position(self, segment: Segment, bound: int) -> int:
        """The end position of the batches below an offset in a segment, if that is not the log end."""
        if segment is not self._segments.active:
            following = self._segments.after(segment)
            if following is None or following.base_offset <= bound:
                return segment.size
        known = self._bound
        if known is None or known.segment is not segment or known.base_offset != bound:
            found = segment.translate(bound)
            position = segment.size if found is None else found[1]
            self._bound = known = Position(segment, bound, position, 0)
        return known.position

    def _aborted(self, segment: Segment, offset: int, end_position: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions in the range of a read."""
        end = self._bounds.log_end_offset
        upper_bound = segment.offset_index.upper_bound(end_position)
        if upper_bound is None:
            following = self._segments.after(segment)
            upper_bound = end if following is None else following.base_offset
        found: list[tuple[int, int]] = []
        for later in self._segments.between(segment.base_offset, end + 1):
            if later.collect_aborted(offset, upper_bound, found):
                break
        return found


def out_of_range(topic_partition: TopicPartition, offset: int, start: int, end: int) -> KafkaError:
    return KafkaError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"Received request for offset {offset} for partition {topic_partition}, "
        f"but we only have log segments in the range {start} to {end}.",
    )
