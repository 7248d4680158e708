"""Progress of long work on stderr: a bar on a terminal, else one plain line every ten seconds.

Nothing is shown for work under half a second. Only counts and times are known here.
"""

from collections.abc import Callable

from odradek.cli.terminal.terminal import Terminal
from odradek.cli.terminal.times import format_duration

_QUIET_MS = 500
_REDRAW_MS = 100
_PLAIN_MS = 10_000
_BAR_CELLS = 20


class Progress:
    """Counts work; `advance` may be called as often as wanted, it draws seldom."""

    __slots__ = ("_done", "_label", "_last_ms", "_now_ms", "_started_ms", "_terminal", "_total", "_unit")

    def __init__(
        self, terminal: Terminal, now_ms: Callable[[], int], label: str, unit: str, total: int | None = None
    ) -> None:
        self._terminal = terminal
        self._now_ms = now_ms
        self._label = label
        self._unit = unit
        self._total = total
        self._done = 0
        self._started_ms = now_ms()
        self._last_ms = self._started_ms

    def __enter__(self) -> "Progress":
        return self

    def __exit__(self, *_: object) -> None:
        if self._terminal.is_live and self._last_ms > self._started_ms:
            self._terminal.redraw("")

    def advance(self, count: int = 1) -> None:
        self._done += count
        now_ms = self._now_ms()
        if self._terminal.quiet:
            return
        if self._terminal.is_live:
            if now_ms - self._started_ms >= _QUIET_MS and now_ms - self._last_ms >= _REDRAW_MS:
                self._last_ms = now_ms
                self._terminal.redraw(self.line(now_ms))
        elif now_ms - self._last_ms >= _PLAIN_MS:
            self._last_ms = now_ms
            self._terminal.note(self.line(now_ms))

    def line(self, now_ms: int) -> str:
        """What is done, how fast, for how long, and what remains."""
        elapsed_ms = max(1, now_ms - self._started_ms)
        rate = self._done * 1000 / elapsed_ms
        passed = f"{rate:,.0f} {self._unit}/s, {format_duration(elapsed_ms)}"
        if not self._total:
            return f"{self._label}: {self._done:,} {self._unit}, {passed}"
        share = min(1.0, self._done / self._total)
        filled = round(share * _BAR_CELLS)
        bar = "#" * filled + "." * (_BAR_CELLS - filled)
        left_ms = (self._total - self._done) / rate * 1000 if rate else 0
        counts = f"{self._done:,}/{self._total:,} {self._unit}"
        return f"{self._label}: [{bar}] {share:.0%} {counts}, {passed}, {format_duration(left_ms)} left"
