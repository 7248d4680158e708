"""How much one cause may log: a client in a loop must not fill the disk, or hide other lines.

A cause is a place in the code and, where it is known, the peer (`extra={"peer": host}`). What it logs beyond
its share of a window is counted, and the count is logged when the window ends.
"""

import asyncio
import logging
import threading
from typing import Final, NamedTuple

_log = logging.getLogger(__name__)

WINDOW_S: Final = 10.0
MAX_WARNINGS: Final = 10
MAX_NOTES: Final = 100
MAX_CAUSES: Final = 500


class Cause(NamedTuple):
    path: str
    line: int
    template: str
    peer: str | None


class LogLimit(logging.Filter):
    """A filter that lets everything pass until `run`: before the node is ready no client can log anything."""

    def __init__(self) -> None:
        super().__init__()
        self._is_on = False
        self._lock = threading.Lock()
        self._counts: dict[Cause, int] = {}
        self._suppressed: dict[Cause, int] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        if not self._is_on or record.name == _log.name:
            return True
        peer = getattr(record, "peer", None)
        cause = Cause(record.pathname, record.lineno, str(record.msg), peer)
        with self._lock:
            if cause not in self._counts and len(self._counts) >= MAX_CAUSES:
                # There may be too many peers to count each one. The number of places in the code is fixed.
                cause = cause._replace(template="", peer=None)
            count = self._counts[cause] = self._counts.get(cause, 0) + 1
            if count <= (MAX_WARNINGS if record.levelno >= logging.WARNING else MAX_NOTES):
                return True
            self._suppressed[cause] = self._suppressed.get(cause, 0) + 1
            return False

    def end_window(self) -> None:
        """Log how many messages were suppressed, and reset the counts."""
        with self._lock:
            suppressed, self._suppressed, self._counts = self._suppressed, {}, {}
        for cause, count in suppressed.items():
            place = cause.template or f"{cause.path.rpartition('/')[2]}:{cause.line}"
            peer = "" if cause.peer is None else f" from {cause.peer}"
            _log.warning("%d more within %d s%s, not shown: %r", count, WINDOW_S, peer, place)

    async def run(self) -> None:
        """Act until cancelled; windows follow the clock of the event loop."""
        self._is_on = True
        try:
            while True:
                await asyncio.sleep(WINDOW_S)
                self.end_window()
        finally:
            self._is_on = False
            self.end_window()
