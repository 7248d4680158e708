"""Bounds: log start offset, last stable offset, high watermark and log end offset of a log. Pure, no
files."""

from enum import IntEnum

from odradek.log.producers.state import ProducerState


class Isolation(IntEnum):
    """The bound that a reader reads up to."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


class Bounds:
    """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, after every change.

    An append sets `log_end_offset` directly, and only forward. `truncations` counts truncations of the end:
    work that was prepared before a truncation is invalid after it.
    """

    __slots__ = (
        "_first_unstable_offset",
        "_producers",
        "high_watermark",
        "log_end_offset",
        "log_start_offset",
        "truncations",
    )

    def __init__(
        self, producers: ProducerState, log_start_offset: int, log_end_offset: int, high_watermark: int
    ) -> None:
        """The high watermark comes from a checkpoint. It is clamped to the log."""
        self._producers = producers
        self.log_start_offset = log_start_offset
        self.log_end_offset = log_end_offset
        self.high_watermark = min(max(high_watermark, log_start_offset), log_end_offset)
        self._first_unstable_offset: int | None = None
        self.truncations = 0
        self.producers_reloaded()

    def _check(self) -> None:
        assert (
            self.log_start_offset <= self.last_stable_offset <= self.high_watermark <= self.log_end_offset
        ), (
            f"log start {self.log_start_offset}, last stable {self.last_stable_offset}, "
            f"high watermark {self.high_watermark}, log end {self.log_end_offset}"
        )

    @property
    def last_stable_offset(self) -> int:
        """All transactions below it are decided, and all records below it are committed."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def of(self, isolation: Isolation) -> int:
        """The first offset that a reader of this isolation does not see."""
        if isolation is Isolation.LOG_END:
            return self.log_end_offset
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self.high_watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Advance the high watermark. Returns whether it moved. It never goes back."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset, f"high watermark {offset} beyond {self.log_end_offset}"
        self.high_watermark = offset
        if self._producers.has_transactions:
            self._producers.high_watermark_moved(offset)
            self.transactions_changed()
        return True

    def advance_log_start(self, offset: int) -> None:
        assert offset > self.log_start_offset, f"log start goes from {self.log_start_offset} to {offset}"
        self.log_start_offset = offset
        self._producers.high_watermark_moved(offset)
        self.transactions_changed()
        self._check()

    def truncate_to(self, offset: int) -> None:
        """The log ends at an offset now. The caller reloads the producers and calls `producers_reloaded`."""
        assert offset <= self.log_end_offset, f"truncation to {offset} of a log that ends earlier"
        self.truncations += 1
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)

    def restart_at(self, offset: int) -> None:
        """The log is empty, and its next record gets the offset. The caller calls `producers_reloaded`."""
        self.truncations += 1
        self.log_start_offset = self.high_watermark = self.log_end_offset = offset

    def producers_reloaded(self) -> None:
        """The producers were loaded from a snapshot and the records after it."""
        self._producers.high_watermark_moved(self.high_watermark)
        self.transactions_changed()
        self._check()

    def transactions_changed(self) -> None:
        """A transaction began or ended, or a marker was replicated."""
        first = self._producers.first_unstable_offset
        self._first_unstable_offset = None if first is None else max(first, self.log_start_offset)
