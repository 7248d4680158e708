"""`odradek up` in a process of its own, and the processes of its nodes."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.support.node import ODRADEK
from tests.support.readable import is_readable

LIMIT_S = 60


class Up:
    """A running `odradek up`; what it says is read from stderr."""

    def __init__(self, *arguments: str) -> None:
        self.process = subprocess.Popen(
            [str(ODRADEK), "up", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            bufsize=0,
        )
        self.said = ""

    def until(self, pattern: str) -> re.Match[str]:
        deadline = time.monotonic() + LIMIT_S
        err = self.process.stderr
        assert err is not None
        while not (found := re.search(pattern, self.said, re.MULTILINE)):
            is_there = is_readable(err, deadline - time.monotonic())
            data = os.read(err.fileno(), 1 << 16) if is_there else b""
            assert data, f"{pattern!r} is not in\n{self.said}"
            self.said += data.decode()
        return found

    def node_processes(self) -> dict[int, int]:
        """Process ids by node id."""
        found = {}
        for pid in Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text().split():
            number = re.search(r"node-(\d+)\.properties", Path(f"/proc/{pid}/cmdline").read_text())
            if number:
                found[int(number[1])] = int(pid)
        return found

    def folder(self) -> Path:
        """Where the nodes keep their data."""
        pid = next(iter(self.node_processes().values()))
        words = Path(f"/proc/{pid}/cmdline").read_text().split("\0")
        return Path(words[words.index("--config") + 1]).parent

    def end(self) -> tuple[int, str]:
        """Exit code and stdout, once it has ended."""
        out, err = self.process.communicate(timeout=LIMIT_S)
        self.said += err.decode()
        return self.process.returncode, out.decode()


@contextmanager
def up(*arguments: str) -> Iterator[Up]:
    running = Up(*arguments)
    try:
        yield running
    finally:
        running.process.terminate()  # so that it removes what it keeps in memory
        try:
            running.process.communicate(timeout=LIMIT_S)
        finally:
            running.process.kill()  # its nodes end with it
            running.process.wait()
