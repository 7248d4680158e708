"""Decides which segments retention deletes. log.py deletes them."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from odradek.log.segments.segment import Segment

if TYPE_CHECKING:
    from odradek.log.log import Log

_Breach = Callable[[Segment, Segment | None], bool]


def breached(log: "Log", now_ms: int) -> list[Segment]:
    """The oldest segments that are below the log start, or beyond retention by size or time."""
    segments = log.segments.all()
    gone = _oldest(log, segments, lambda _, following: _ends_by(following, log.log_start_offset))
    config = log.config
    if not config.deletes_old_records:
        return gone
    if config.retention_bytes >= 0:
        surplus = log.size_bytes - sum(segment.size for segment in gone) - config.retention_bytes

        def oversized(segment: Segment, _: Segment | None) -> bool:
            nonlocal surplus
            surplus -= segment.size
            return surplus >= 0

        gone = gone + _oldest(log, segments[len(gone) :], oversized)
    if config.retention_ms >= 0:
        oldest_ms = now_ms - config.retention_ms
        gone = gone + _oldest(
            log, segments[len(gone) :], lambda segment, _: segment.largest_timestamp_ms() < oldest_ms
        )
    return gone


def _ends_by(following: Segment | None, offset: int) -> bool:
    return following is not None and following.base_offset <= offset


def _oldest(log: "Log", segments: list[Segment], is_breached: _Breach) -> list[Segment]:
    """The oldest consecutive segments that breach a rule, below the high watermark, without an empty active
    one."""
    run: list[Segment] = []
    for segment, following in zip(segments, [*segments[1:], None], strict=True):
        end_offset = log.log_end_offset if following is None else following.base_offset
        if following is None and segment.size == 0:
            break
        if end_offset > log.high_watermark or not is_breached(segment, following):
            break
        run.append(segment)
    return run
