"""The `odradek` command inside the test's process: arguments and stdin in, exit code and both streams out."""

import contextlib
import io
import logging
import os
import pty
import sys
import threading
import tty
from collections.abc import Iterator
from typing import NamedTuple
from unittest import mock

from odradek.cli.main import run


class Outcome(NamedTuple):
    code: int
    stdout: bytes
    stderr: str

    @property
    def text(self) -> str:
        return self.stdout.decode()


def odradek(*arguments: str, stdin: bytes = b"", **environment: str) -> Outcome:
    """Run `odradek ARGUMENTS`; streams are pipes, never a terminal."""
    out, err = io.BytesIO(), io.BytesIO()
    streams = {
        "argv": ["odradek", *arguments],
        "stdin": io.TextIOWrapper(io.BytesIO(stdin)),
        "stdout": io.TextIOWrapper(out, encoding="utf-8", write_through=True),
        "stderr": io.TextIOWrapper(err, encoding="utf-8", write_through=True),
    }
    with mock.patch.multiple(sys, **streams), mock.patch.dict(os.environ, environment), _logging_kept():
        code = run()
        sys.stdout.flush()
        return Outcome(code, out.getvalue(), err.getvalue().decode())


def odradek_on_terminal(*arguments: str, **environment: str) -> Outcome:
    """The same with stdout and stderr on a terminal; the outcome's stdout is all that it is sent."""
    master, slave = pty.openpty()
    tty.setraw(slave)  # what is read is what was written: no \r before \n
    received: list[bytes] = []
    reader = threading.Thread(target=_read_all, args=(master, received))
    reader.start()
    try:
        with open(slave, "w", encoding="utf-8") as screen:
            streams = {
                "argv": ["odradek", *arguments],
                "stdin": io.TextIOWrapper(io.BytesIO()),
                "stdout": screen,
                "stderr": screen,
            }
            with (
                mock.patch.multiple(sys, **streams),
                mock.patch.dict(os.environ, environment),
                _logging_kept(),
            ):
                code = run()
    finally:
        reader.join()
        os.close(master)
    return Outcome(code, b"".join(received), "")


@contextlib.contextmanager
def _logging_kept() -> Iterator[None]:
    """A command that starts a node sets up the log of its process: here it is that of the tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    try:
        yield
    finally:
        root.handlers[:] = handlers
        root.setLevel(level)


def _read_all(master: int, received: list[bytes]) -> None:
    """Until the other side is closed, which Linux tells as EIO."""
    with contextlib.suppress(OSError):
        while data := os.read(master, 1 << 16):
            received.append(data)
