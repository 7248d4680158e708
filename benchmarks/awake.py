"""Keeps the cores awake while something is measured: what a sleeping virtual core costs is not a broker's.

One loop per core at idle priority, which gives way to everything else at once. It runs for both brokers.
"""

import contextlib
import os
import pathlib
import subprocess
from collections.abc import Iterator

from cluster import HERE, run


@contextlib.contextmanager
def awake(scratch: pathlib.Path) -> Iterator[None]:
    program = scratch / "awake"
    run("gcc", "-O2", "-o", program, HERE / "awake.c")
    loops = [subprocess.Popen([program]) for _ in range(os.cpu_count() or 1)]
    try:
        yield
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()
