"""Processes whose parent ended before them become children of the process that runs the tests.

It waits for them, so that their CPU time counts as that of its children. A driver that is killed leaves
Spark's JVM behind, and a script that starts a broker ends before it.
"""

import ctypes
import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any, Final

_PR_SET_CHILD_SUBREAPER: Final = 36
_PAUSE_S: Final = 0.5
_PATIENCE_S: Final = 2.0
"""What is our own child is noted a moment after it was started, and may have ended by then."""


class Orphans:
    """A child that was not started here is an orphan."""

    def __init__(self) -> None:
        self._started: set[int] = set()
        self._ended: dict[int, float] = {}

    def adopt(self) -> None:
        """Only on Linux; elsewhere orphans are not counted."""
        try:
            refused = ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
        except AttributeError:
            return
        if not refused:
            self._note_what_is_started()
            threading.Thread(target=self._wait_for_ever, daemon=True, name="orphans").start()

    def _note_what_is_started(self) -> None:
        execute, started = subprocess.Popen._execute_child, self._started  # type: ignore[attr-defined]

        def noted(process: Any, *args: Any) -> None:
            execute(process, *args)
            started.add(process.pid)

        subprocess.Popen._execute_child = noted  # type: ignore[attr-defined]

    def _wait_for_ever(self) -> None:
        while True:
            time.sleep(_PAUSE_S)
            if _has_ended_child():  # to look at all processes would disturb tests that count allocations
                self.wait(_PATIENCE_S)

    def wait(self, patience_s: float = 0) -> None:
        """For those that ended this long ago."""
        now = time.monotonic()
        self._ended = {pid: self._ended.get(pid, now) for pid in _ended_children() - self._started}
        for pid, since in self._ended.items():
            if now - since >= patience_s:
                try:
                    os.waitpid(pid, os.WNOHANG)
                except ChildProcessError:  # another thread was first
                    pass


def _has_ended_child() -> bool:
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT) is not None
    except ChildProcessError:
        return False


def _ended_children() -> set[int]:
    found = set()
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            state, parent = path.read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.add(int(path.parent.name))
    return found
