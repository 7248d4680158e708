"""The node's log lines on stderr: in Kafka's format, or JSON lines with ECS names. Formatting only.

Control characters are escaped here, in whole messages: whatever a client puts into one stays on its line.
"""

import json
import logging
import traceback
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TextIO

from odradek.cli.node.log_limit import LogLimit
from odradek.cli.terminal.escaping import escape_layout, escape_string

_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class KafkaFormatter(logging.Formatter):
    """`[2026-11-15 20:42:48,123] INFO message (logger)`, times local, as Kafka writes them."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{int(record.msecs):03d}"
        level = _LEVELS.get(record.levelname, record.levelname)
        line = f"[{stamp}] {level} {escape_string(record.getMessage())} ({record.name})"
        if record.exc_info and record.exc_info[1] is not None:
            line += "\n" + "\n".join(_trace(record.exc_info[1]))
        return line


def _trace(error: BaseException) -> Iterator[str]:
    """The lines of a traceback; the text of an error, which may be anybody's, is on one of them."""
    for piece in traceback.TracebackException.from_exception(error).format():
        text = piece.rstrip("\n")
        # A frame, and what stands between an error and its cause, have several lines, all of them ours.
        yield escape_layout(text) if text.startswith(('  File "', "\n")) else escape_string(text)


class JsonFormatter(logging.Formatter):
    """One JSON object a line with the names of the Elastic Common Schema."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created, UTC)
        line = {
            "@timestamp": moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
            "log.level": _LEVELS.get(record.levelname, record.levelname),
            "message": record.getMessage(),
            "ecs.version": "8.11.0",
            "log.logger": record.name,
            "service.name": "odradek",
            "process.pid": record.process,
        }
        if record.exc_info and record.exc_info[0] is not None:
            line["error.type"] = record.exc_info[0].__name__
            line["error.message"] = str(record.exc_info[1])
            line["error.stack_trace"] = self.formatException(record.exc_info)
        return escape_layout(json.dumps(line, ensure_ascii=False))


def set_up_logging(log_format: str, stream: TextIO) -> LogLimit:
    """Send every log line of INFO and above to the stream; what it gives limits them once it is run."""
    limit = LogLimit()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaFormatter())
    handler.addFilter(limit)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
    return limit
