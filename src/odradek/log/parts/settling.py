"""Settling: which records may be acknowledged, and which wait for a flush because of flush.messages. No
I/O."""

from collections.abc import Callable
from typing import Final

from odradek.core.types import TopicPartition
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.durability import Durability
from odradek.log.parts.log_config import LogConfig
from odradek.log.segments.segments import Segments

NEVER: Final = (1 << 63) - 1


class Settling:
    """Records from `_due_from` are not acknowledged until a flush has reached `_due_to`.

    `on_flush_due` is called when a flush is needed, `on_settled` when `settled_offset` has moved.
    """

    __slots__ = (
        "_bounds",
        "_config",
        "_due_from",
        "_due_to",
        "_durability",
        "_segments",
        "on_flush_due",
        "on_settled",
    )

    def __init__(self, config: LogConfig, segments: Segments, bounds: Bounds, durability: Durability) -> None:
        self._config = config
        self._segments = segments
        self._bounds = bounds
        self._durability = durability
        self._due_from = self._due_to = 0
        self.on_flush_due: Callable[[TopicPartition], None] | None = None
        self.on_settled: Callable[[], None] | None = None

    @property
    def flushes_by_count(self) -> bool:
        """Whether acknowledgements may have to wait for a flush (flush.messages)."""
        return self._config.topic.flush_messages < NEVER

    @property
    def settled_offset(self) -> int:
        """Records below it may be acknowledged: no flush is due for them, or it is done."""
        recovery_point = self._durability.recovery_point
        if self._due_to <= recovery_point:
            return self._bounds.log_end_offset
        return max(self._due_from, recovery_point)

    @property
    def flush_target(self) -> int:
        """The end of the next flush: the log end if a producer waits, otherwise the start of the active
        segment."""
        if self._due_to > self._durability.recovery_point:
            return self._bounds.log_end_offset
        return self._segments.active.base_offset

    def await_flush(self, start: int) -> bool:
        """Returns whether the records appended from `start` reach flush.messages. Then they wait for a new
        flush."""
        recovery_point, end = self._durability.recovery_point, self._bounds.log_end_offset
        if end - max(recovery_point, self._due_to) < self._config.topic.flush_messages:
            return False
        if self._due_to <= recovery_point:
            self._due_from = start
        self._due_to = end
        assert self._due_from <= self._due_to
        return True

    def truncated(self, offset: int) -> None:
        self._due_from, self._due_to = min(self._due_from, offset), min(self._due_to, offset)

    def restarted(self, offset: int) -> None:
        self._due_from = self._due_to = offset

    def moved_from(self, settled_offset: int) -> None:
        """A flush has ended. Before it, `settled_offset` had this value."""
        if self.on_settled is not None and self.settled_offset != settled_offset:
            self.on_settled()
