"""The progress of a demo: a few lines that are redrawn, or without a terminal a plain line now and then."""

import shutil
from typing import TYPE_CHECKING

from odradek.cli.terminal.terminal import Terminal

if TYPE_CHECKING:
    from odradek.spark.demo.story import Story

_BAR_CELLS = 30
_PLAIN_S = 10.0
_SKULL = "\u2620"


class DemoView:
    """`tell` is a line that stays; `show` replaces what it showed before."""

    def __init__(self, terminal: Terminal, planned: dict[str, int]) -> None:
        self._terminal = terminal
        self._planned = planned
        self._drawn = 0
        self._plain_s = 0.0

    def tell(self, at_s: float, text: str) -> None:
        line = f"{at_s:6.1f} s  {text}"
        if self._terminal.is_live:
            self._draw([f"{_SKULL} {line}" if text.startswith("killed") else f"  {line}"])
            self._drawn = 0
        else:
            self._terminal.note(line)

    def show(self, story: "Story") -> None:
        if self._terminal.is_live:
            self._draw(view_lines(story, self._planned))
        elif story.now.at_s - self._plain_s >= _PLAIN_S:
            self._plain_s = story.now.at_s
            self._terminal.note(plain_line(story))

    def clear(self) -> None:
        """Before something else is written."""
        if self._drawn:
            self._draw([])

    def _draw(self, lines: list[str]) -> None:
        width = shutil.get_terminal_size().columns - 1
        self._terminal.redraw_lines([line[:width] for line in lines], self._drawn)
        self._drawn = len(lines)


def view_lines(story: "Story", planned: dict[str, int]) -> list[str]:
    now = story.now
    kills = ", ".join(f"{target} {story.killed(target)} of {count}" for target, count in planned.items())
    return [
        "",
        f"  produced  {_bar(now.produced, story.orders)}  {now.produced:,} of {story.orders:,} orders",
        f"  enriched  {_bar(now.committed, story.orders)}  {now.committed:,} committed, lag {now.lag:,}",
        f"  windows   {_bar(now.windows, story.windows)}  {now.windows:,} of {story.windows:,} committed",
        f"  {now.at_s:.1f} s, killed: {kills}",
    ]


def plain_line(story: "Story") -> str:
    now = story.now
    return (
        f"{now.at_s:6.1f} s  {now.produced:,} of {story.orders:,} orders produced, "
        f"{now.committed:,} enriched, {now.windows:,} of {story.windows:,} windows, lag {now.lag:,}"
    )


def _bar(count: int, total: int) -> str:
    filled = round(_BAR_CELLS * min(1.0, count / max(1, total)))
    return "[" + "#" * filled + "." * (_BAR_CELLS - filled) + "]"
