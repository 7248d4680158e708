"""The progress of log recovery, as one line that is redrawn on a terminal."""

import os
import time
from typing import Final

from odradek.cli.terminal.terminal import Terminal
from odradek.log.opening.starting import Recovery

_REDRAW_S: Final = 0.1


class RecoveryLine:
    """On a terminal it takes the place of the log's own lines; elsewhere it does nothing."""

    def __init__(self, recovery: Recovery, terminal: Terminal | None = None) -> None:
        self._recovery = recovery
        self._terminal = terminal or Terminal(os.environ)
        self._drawn_s = 0.0

    def __enter__(self) -> "RecoveryLine":
        if self._terminal.is_live:
            self._recovery.on_progress = self._draw
        return self

    def __exit__(self, *_: object) -> None:
        if self._drawn_s:
            self._terminal.redraw("")

    def _draw(self) -> None:
        now_s = time.monotonic()
        if now_s >= self._drawn_s + _REDRAW_S:
            self._drawn_s = now_s
            self._terminal.redraw(str(self._recovery))
