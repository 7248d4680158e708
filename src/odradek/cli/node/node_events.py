"""What a node's lines say about its cluster, in a few words: what `odradek up` shows of it. Pure."""

import re
import signal
from collections.abc import Callable
from typing import Final

_READY: Final = re.compile(r"odradek \S+ ready: (\S+), .* (\d+ ms)")
_LOGGED: Final = re.compile(r"\[[^]]*\] (INFO|WARN|ERROR|FATAL) (.*) \([\w.]+\)")

_NEWS: Final[tuple[tuple[re.Pattern[str], Callable[[re.Match[str]], str]], ...]] = (
    (re.compile(r"Node \d+ is now Leader\(epoch=(\d+)"), lambda m: f"leads the quorum, epoch {m[1]}"),
    (re.compile(r"Node \d+ is now Resigned\(epoch=(\d+)"), lambda m: f"resigned as leader of epoch {m[1]}"),
    (
        re.compile(r"The controller of node \d+ is active at epoch (\d+)"),
        lambda m: f"active controller, epoch {m[1]}",
    ),
    (
        re.compile(r"Fencing broker (\d+) at epoch \d+ because (.*?)\.?$"),
        lambda m: f"fenced node {m[1]}: {m[2]}",
    ),
    (re.compile(r"The broker has been (fenced|unfenced)$"), lambda m: m[1]),
)


def ready_text(line: str) -> str | None:
    """Of the one line on a node's stdout."""
    found = _READY.match(line)
    return found and f"ready {found[1]} {found[2]}"


def event_text(line: str) -> str | None:
    """Of a log line; None where it is no event of the cluster. Warnings and errors always are."""
    logged = _LOGGED.match(line)
    if logged is None:
        return None
    level, message = logged.groups()
    for pattern, text in _NEWS:
        found = pattern.match(message)
        if found:
            return text(found)
    if level == "INFO":
        return None
    return f"{'warning' if level == 'WARN' else 'error'}: {message}"


def exit_text(code: int) -> str:
    """Of a process that nobody stopped, by its exit code as subprocess gives it."""
    return f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with exit code {code}"
