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
_instead_of_root = logging.Logger("odradek.testing", logging.INFO)


class LogTail(logging.Handler):
    """The last lines that one thread logged."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.seen = 0
        self._lines: deque[str] = deque(maxlen=LINES)
        self._thread: int | None = None
        self.setFormatter(logging.Formatter(_FORMAT))

    def attach(self, thread: threading.Thread) -> None:
        """Take the node's lines until `detach`."""
        self._thread = thread.ident
        _instead_of_root.addHandler(self)
        _hang_below(_instead_of_root)

    def detach(self) -> None:
        _instead_of_root.removeHandler(self)
        if not _instead_of_root.handlers:
            _hang_below(logging.getLogger())

    def emit(self, record: logging.LogRecord) -> None:
        if record.thread == self._thread:
            self.seen += 1
            self._lines.append(self.format(record))

    def since(self, mark: int) -> list[str]:
        """The lines after the first `mark` that were ever seen, as far as they are kept."""
        lines = list(self._lines)
        return lines[max(0, len(lines) - (self.seen - mark)) :]


def _hang_below(parent: logging.Logger) -> None:
    _package.parent = parent
    _package.setLevel(_package.level)  # clears the cached levels of all loggers
