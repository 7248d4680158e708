"""Processes that have to be gone."""

import subprocess
import time
from collections.abc import Iterable


def is_running(pid: int) -> bool:
    """Not one that has ended and that nobody has asked after yet."""
    listed = subprocess.run(
        ["ps", "-o", "stat=", "-p", str(pid)], capture_output=True, text=True, check=False
    ).stdout.strip()
    return listed != "" and not listed.startswith("Z")


def wait_until_gone(pids: Iterable[int], timeout_s: float = 20) -> None:
    deadline = time.monotonic() + timeout_s
    left = list(pids)
    while left := [pid for pid in left if is_running(pid)]:
        assert time.monotonic() < deadline, f"still running: {left}"
        time.sleep(0.02)
