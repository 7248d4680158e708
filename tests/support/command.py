"""The `odradek` command inside the test's process: arguments and stdin in, exit code and both streams out."""

import io
import os
import sys
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
    with mock.patch.multiple(sys, **streams), mock.patch.dict(os.environ, environment):
        code = run()
        sys.stdout.flush()
        return Outcome(code, out.getvalue(), err.getvalue().decode())
