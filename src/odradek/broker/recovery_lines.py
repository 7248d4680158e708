"""Logs the progress of the recovery of logs, about once per second."""

import asyncio
import logging

from odradek.log.opening.starting import Recovery

_log = logging.getLogger(__name__)

PAUSE_S = 1


class RecoveryLines:
    """A recovery calls `write` when it has made progress. The first line comes after a second."""

    __slots__ = ("_last_s", "_recovery")

    def __init__(self, recovery: Recovery) -> None:
        self._recovery = recovery
        self._last_s = asyncio.get_running_loop().time()

    def write(self) -> None:
        now_s = asyncio.get_running_loop().time()
        if now_s >= self._last_s + PAUSE_S:
            self._last_s = now_s
            _log.info("%s", self._recovery)
