"""The health of a node, for /healthz."""

from collections.abc import Sequence
from typing import Protocol

from odradek.core.errors import KafkaError
from odradek.log.manager import LogManager


class MayFail(Protocol):
    """A part of the node without which it cannot go on."""

    @property
    def failure(self) -> KafkaError | None: ...


class Health:
    """`started` is called when the node serves clients."""

    __slots__ = ("_logs", "_parts")

    def __init__(self, logs: LogManager) -> None:
        self._logs = logs
        self._parts: Sequence[MayFail] | None = None

    def started(self, *parts: MayFail) -> None:
        assert self._parts is None, "a node starts once"
        self._parts = parts

    @property
    def is_ready(self) -> bool:
        return self._parts is not None

    def trouble(self) -> str | None:
        """Why the node is not healthy, or None."""
        if self._parts is None:
            return f"starting: {self._logs.recovery}" if self._logs.recovery.logs else "starting"
        for part in (*self._logs.directories, *self._parts):
            if part.failure is not None:
                return str(part.failure)
        return None
