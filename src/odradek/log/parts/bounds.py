"""Where a log begins and ends, and how far its readers see. Pure: no file is touched here."""

from enum import IntEnum

from odradek.log.producers.state import ProducerState


class Isolation(IntEnum):
    """How far a reader may see."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


class Bounds:
    """log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset, after every change.

    An append moves `log_end_offset` itself, and only forward. `truncations` counts how often the end was cut
    off: what was prepared before a truncation is void after it.
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
        """The high watermark comes from a checkpoint: it is brought within the log."""
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
        """Everything below it is decided and committed."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def of(self, isolation: Isolation) -> int:
        """The first offset that a reader may not see."""
        if isolation is Isolation.LOG_END:
            return self.log_end_offset
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self.high_watermark

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see further; True when it moved. It never goes back."""
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
        """The log ends at an offset now. The producers are reloaded next: `producers_reloaded` follows."""
        assert offset <= self.log_end_offset, f"truncation to {offset} of a log that ends earlier"
        self.truncations += 1
        self.log_end_offset = offset
        self.log_start_offset = min(self.log_start_offset, offset)
        self.high_watermark = min(self.high_watermark, offset)

    def restart_at(self, offset: int) -> None:
        """The log is empty, and its next record gets the offset. `producers_reloaded` follows."""
        self.truncations += 1
        self.log_start_offset = self.high_watermark = self.log_end_offset = offset

    def producers_reloaded(self) -> None:
        """The producers are those of a snapshot and the records after it."""
        self._producers.high_watermark_moved(self.high_watermark)
        self.transactions_changed()
        self._check()

    def transactions_changed(self) -> None:
        """A transaction has begun or ended, or a marker is replicated."""
        first = self._producers.first_unstable_offset
        self._first_unstable_offset = None if first is None else max(first, self.log_start_offset)
