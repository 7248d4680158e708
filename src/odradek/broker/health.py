"""The health of a node, for /healthz."""

from odradek.log.manager import LogManager
from odradek.raft.driver import RaftDriver


class Health:
    """`started` is called when the node serves clients."""

    __slots__ = ("_logs", "_raft")

    def __init__(self, logs: LogManager) -> None:
        self._logs = logs
        self._raft: RaftDriver | None = None

    def started(self, raft: RaftDriver) -> None:
        assert self._raft is None, "a node starts once"
        self._raft = raft

    @property
    def is_ready(self) -> bool:
        return self._raft is not None

    def trouble(self) -> str | None:
        """Why the node is not healthy, or None."""
        if self._raft is None:
            return f"starting: {self._logs.recovery}" if self._logs.recovery.logs else "starting"
        for directory in self._logs.directories:
            if directory.failure is not None:
                return str(directory.failure)
        return None if self._raft.failure is None else str(self._raft.failure)
