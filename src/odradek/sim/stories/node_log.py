"""Collects the log messages of nodes during a story. An error without a planned fault is a violation."""

import logging
import os
import traceback
from collections.abc import Iterator
from contextlib import contextmanager

from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.trace import Trace


class NodeLog(logging.Handler):
    """Traces the log messages of the nodes, and collects the errors."""

    def __init__(self, trace: Trace) -> None:
        super().__init__(logging.INFO)
        self._trace = trace
        self.errors: list[str] = []

    @contextmanager
    def attached(self) -> Iterator[None]:
        """Collect all log messages of the block. They are not logged elsewhere."""
        logger = logging.getLogger("odradek")
        before = logger.propagate, logger.level
        logger.propagate = False
        logger.setLevel(logging.INFO)
        logger.addHandler(self)
        try:
            yield
        finally:
            logger.removeHandler(self)
            logger.propagate = before[0]
            logger.setLevel(before[1])

    @contextmanager
    def forgiving(self) -> Iterator[None]:
        """Ignore the errors of a block in which a fault explains them."""
        known = len(self.errors)
        yield
        del self.errors[known:]

    def emit(self, record: logging.LogRecord) -> None:
        line = f"{record.name}: {record.getMessage()}"
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            line += f": {error!r}"
        self._trace.event("log", record.levelname, line)
        if record.levelno >= logging.ERROR and not isinstance(error, ProcessCrashed):
            where = ""
            if error is not None:
                frames = traceback.extract_tb(error.__traceback__)[-3:]
                where = " at " + ", ".join(f"{os.path.basename(f.filename)}:{f.lineno}" for f in frames)
            self.errors.append(f"the node logged: {line}{where}")
