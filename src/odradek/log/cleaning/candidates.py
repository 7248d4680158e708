"""Decides which logs can be cleaned, up to which offset, and in which order. It reads only the timestamps of
segments.

A log is cleaned in whole segments: from the first one up to the one that contains the first uncleanable
offset. Records below the first dirty offset were cleaned before: each key occurs once there.
"""

import logging
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from odradek.log.log import Log

_log = logging.getLogger(__name__)

_NEVER_MS: Final = (1 << 63) - 1


class LogToClean(NamedTuple):
    """A compacted log for the cleaner. `overdue`: max.compaction.lag.ms has passed."""

    log: "Log"
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    overdue: bool

    @property
    def dirty_ratio(self) -> float:
        total_bytes = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total_bytes if total_bytes else 0.0

    @property
    def is_due(self) -> bool:
        """Whether it is dirty enough or overdue."""
        if self.overdue and self.cleanable_bytes > 0:
            return True
        return self.dirty_ratio > self.log.config.min_cleanable_dirty_ratio


def examine(log: "Log", now_ms: int) -> LogToClean:
    """Find out what there is to clean in a log. Raises OSError, and KafkaError if segments cannot be read."""
    first_dirty = first_dirty_offset(log)
    segments = log.segments
    uncleanable = segments.floor(max(first_dirty, _first_uncleanable_offset(log, first_dirty, now_ms)))
    assert uncleanable is not None, "the log start is in a segment"
    end = uncleanable.base_offset
    clean_bytes = sum(segment.size for segment in segments.all() if segment.base_offset < first_dirty)
    cleanable = segments.between(first_dirty, end) if first_dirty < end else []
    cleanable_bytes = sum(segment.size for segment in cleanable)
    return LogToClean(
        log, first_dirty, end, clean_bytes, cleanable_bytes, _is_overdue(log, first_dirty, now_ms)
    )


def first_dirty_offset(log: "Log") -> int:
    """The end of the last cleaning. If it is outside the log, the whole log counts as dirty."""
    cleaned = log.cleaned_offset
    if cleaned is None or log.log_start_offset <= cleaned <= log.log_end_offset:
        return log.log_start_offset if cleaned is None else cleaned
    if cleaned > log.log_end_offset or not log.config.deletes_old_records:
        _log.warning(
            "%s: the cleaner checkpoint says %d, but the log has offsets %d to %d: cleaning from its start",
            log.path,
            cleaned,
            log.log_start_offset,
            log.log_end_offset,
        )
    return log.log_start_offset


def _first_uncleanable_offset(log: "Log", first_dirty: int, now_ms: int) -> int:
    """Open transactions, the active segment, and records younger than min.compaction.lag.ms are not
    cleaned."""
    bound = min(log.last_stable_offset, log.segments.active.base_offset)
    lag_ms = log.config.min_compaction_lag_ms
    if lag_ms > 0:
        for segment in log.segments.between(first_dirty, bound) if first_dirty < bound else ():
            if segment.largest_timestamp_ms() > now_ms - lag_ms:
                return min(bound, segment.base_offset)
    return bound


def _is_overdue(log: "Log", first_dirty: int, now_ms: int) -> bool:
    """Whether the first record of a complete dirty segment is older than max.compaction.lag.ms."""
    lag_ms, active = log.config.max_compaction_lag_ms, log.segments.active
    if lag_ms >= _NEVER_MS or first_dirty >= active.base_offset:
        return False
    began_ms = [segment.first_timestamp for segment in log.segments.between(first_dirty, active.base_offset)]
    return any(0 < first_ms < now_ms - lag_ms for first_ms in began_ms if first_ms is not None)


def dirtiest(candidates: Iterable[LogToClean]) -> LogToClean | None:
    """The log to clean next."""
    return max(
        (candidate for candidate in candidates if candidate.is_due),
        key=lambda candidate: candidate.dirty_ratio,
        default=None,
    )
