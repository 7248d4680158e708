"""The node's log lines on stderr: in Kafka's shape, or JSON lines with ECS names. Formatting only."""

import json
import logging
from datetime import UTC, datetime
from typing import TextIO

_LEVELS = {"WARNING": "WARN", "CRITICAL": "FATAL"}


class KafkaFormatter(logging.Formatter):
    """`[2026-11-15 20:42:48,123] INFO message (logger)`, times local, as Kafka writes them."""

    def format(self, record: logging.LogRecord) -> str:
        moment = datetime.fromtimestamp(record.created)
        stamp = f"{moment:%Y-%m-%d %H:%M:%S},{int(record.msecs):03d}"
        level = _LEVELS.get(record.levelname, record.levelname)
        line = f"[{stamp}] {level} {record.getMessage()} ({record.name})"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


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
        return json.dumps(line, ensure_ascii=False)


def set_up_logging(log_format: str, stream: TextIO) -> None:
    """Send every log line of INFO and above to the stream."""
    handler = logging.StreamHandler(stream)
    handler.setFormatter(JsonFormatter() if log_format == "json" else KafkaFormatter())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(logging.INFO)
