"""The last lines of one broker's log, kept for reports and out of the log of the test around it.

While a broker runs, the package's logger hangs below a logger of our own instead of the root. Turning its
propagation off would not do: pytest attaches to loggers that do not propagate.
"""

import logging
import threading
from collections import deque

LINES = 200
_FORMAT = "%(asctime)s %(levelname)s %(message)s (%(name)s)"

_package = logging.getLogger("odradek")
_lock = threading.Lock()
_instead_of_root = logging.Logger("odradek.testing", logging.INFO)


class LogTail(logging.Handler):
    """The last lines that the threads of a broker, or of several, logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seen = 0
        self._lines: deque[str] = deque(maxlen=LINES)
        self._threads: dict[int | None, str] = {}
        self.setFormatter(logging.Formatter(_FORMAT))

    def attach(self, thread: threading.Thread, prefix: str = "") -> None:
        """Take the lines of a node until `detach`."""
        with _lock:
            self._threads[thread.ident] = prefix
            _instead_of_root.addHandler(self)
            _hang_below(_instead_of_root)

    def detach(self, thread: threading.Thread) -> None:
        with _lock:
            del self._threads[thread.ident]
            if not self._threads:
                _instead_of_root.removeHandler(self)
            if not _instead_of_root.handlers:
                _hang_below(logging.getLogger())

    def emit(self, record: logging.LogRecord) -> None:
        prefix = self._threads.get(record.thread)
        if prefix is not None:
            self.seen += 1
            self._lines.append(prefix + self.format(record))

    def since(self, mark: int) -> list[str]:
        """The lines after the first `mark` that were ever seen, as far as they are kept."""
        lines = list(self._lines)
        return lines[max(0, len(lines) - (self.seen - mark)) :]


def _hang_below(parent: logging.Logger) -> None:
    _package.parent = parent
    _package.setLevel(_package.level)  # clears the cached levels of all loggers
