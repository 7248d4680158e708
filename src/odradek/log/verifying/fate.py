"""Predicts what the next start of a node does about damage. Pure. loader.py and recovery.py do it."""

from bisect import bisect_right
from collections.abc import Sequence

IGNORED = "not noticed"
GONE_OVER = "reads skip the gap"
REBUILT_WHEN_READ = "rebuilt from the log when a read finds the error"


class Fate:
    """Predictions for one log. After an unclean stop, the segments from the recovery point are recovered."""

    def __init__(
        self, base_offsets: Sequence[int], unflushed: Sequence[int], *, clean: bool, recovery_point: int
    ) -> None:
        self.clean = clean
        self._unflushed = unflushed
        self.recovery_point = recovery_point
        self._segments = len(base_offsets)
        self._first = self._segments if clean else max(0, bisect_right(base_offsets, recovery_point) - 1)

    def is_recovered(self, segment: int) -> bool:
        return segment >= self._first

    def of_batches(self, segment: int, cut_bytes: int, *, has_structure: bool) -> str:
        """For an invalid batch. `has_structure`: the batches after it can still be found."""
        later = self._segments - segment - 1
        if self.is_recovered(segment) or (later == 0 and not has_structure):
            dropped = f", and the {later} segments after it are removed" if later else ""
            return f"{cut_bytes} bytes are cut off here{dropped}"
        if has_structure:
            return f"{IGNORED}: consumers that check CRCs fail here"
        return f"{IGNORED}: reads from here fail with CORRUPT_MESSAGE"

    def of_border(self, segment: int, first_missing: int, base_offset: int) -> str:
        """For missing offsets before a segment."""
        lost = any(max(first_missing, self.recovery_point) < end <= base_offset for end in self._unflushed)
        if lost and self.is_recovered(segment - 1):
            return "this segment and those after it are removed"
        return GONE_OVER

    def of_far_offset(self, segment: int) -> str:
        """For an offset that is too large for the indexes of its segment."""
        return "the segment is split here" if self.is_recovered(segment) else IGNORED

    def of_indexes(self, segment: int) -> str:
        return "rebuilt from the log" if self.is_recovered(segment) else REBUILT_WHEN_READ
