"""The streams of a command: stdout carries only data, stderr everything else.

All that a command shows passes here, and is escaped where a terminal would obey it: what a cluster stores or
answers must not move the cursor, set the title or hide a line. What goes to a pipe or a file stays as it is.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import BinaryIO, TextIO

from odradek.cli.errors import Failure
from odradek.cli.terminal.escaping import escape_layout, escape_string

_RED = "\x1b[31m"
_BOLD = "\x1b[1m"
_RESET = "\x1b[0m"


class ReaderGoneError(Exception):
    """The reader of stdout has closed it. It is not an OSError, because no connection to a broker failed."""


class UnwritableError(Failure):
    """stdout takes no more: its disk is full, or worse."""


class Terminal:
    """Where a command writes and asks. Colours and live progress only where a person is looking."""

    __slots__ = ("_environment", "_err", "_in", "_out", "_raw", "quiet")

    def __init__(
        self,
        environment: Mapping[str, str],
        *,
        quiet: bool = False,
        raw: bool = False,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self._environment = environment
        self._in = stdin or sys.stdin
        self._out = stdout or sys.stdout
        self._err = stderr or sys.stderr
        self.quiet = quiet
        self._raw = raw

    @property
    def is_live(self) -> bool:
        """May stderr be redrawn? Not in CI, not on a dumb terminal, not when it goes to a file."""
        if self.quiet or self._environment.get("CI") or self._environment.get("TERM") == "dumb":
            return False
        return self._err.isatty()

    @property
    def has_colour(self) -> bool:
        return self.is_live and not self._environment.get("NO_COLOR")

    @property
    def can_ask(self) -> bool:
        return self._in.isatty() and self._err.isatty()

    @property
    def is_screen(self) -> bool:
        return self._out.isatty() and self._environment.get("TERM") != "dumb"

    @property
    def escapes_data(self) -> bool:
        """Whether a person reads stdout, and did not ask for bytes (`--raw`)."""
        return self._out.isatty() and not self._raw

    def clear(self) -> None:
        self._out.write("\x1b[H\x1b[2J")

    @property
    def bytes_in(self) -> BinaryIO:
        return self._in.buffer

    def data(self, text: str) -> None:
        if self.escapes_data:
            text = escape_layout(text)
        with _writing():
            self._out.write(text)
            self._out.flush()

    def data_bytes(self, data: bytes) -> None:
        """Record bytes on stdout, at once."""
        if self.escapes_data:
            data = escape_layout(data.decode(errors="backslashreplace")).encode()
        with _writing():
            self._out.buffer.write(data)
            self._out.buffer.flush()

    def note(self, text: str) -> None:
        """A line for the person; `-q` keeps it away."""
        if not self.quiet:
            self._tell(text + "\n")

    def redraw(self, text: str) -> None:
        """Replace the line a person is looking at; only where `is_live`."""
        self._tell(text, before="\r\x1b[K")

    def redraw_lines(self, lines: Sequence[str], drawn: int) -> None:
        """Replace the last lines with these. Only if `is_live`."""
        up = f"\x1b[{drawn}A" if drawn else ""
        self._tell("".join(f"{line}\n" for line in lines), before=f"{up}\r\x1b[J")

    def error(self, *lines: str, hint: str | None = None) -> None:
        label = f"{_RED}{_BOLD}error:{_RESET}" if self.has_colour else "error:"
        text = [*lines, f"  {hint}"] if hint else lines
        if self._err.isatty():
            text = [escape_string(line) for line in text]
        self._tell("\n".join(text) + "\n", before=f"{label} ")

    def ask(self, question: str) -> bool:
        self._tell(f"{question} [y/N] ")
        return self._in.readline().strip().lower() in ("y", "yes")

    def _tell(self, text: str, before: str = "") -> None:
        """Write to stderr. What stands before the text is for the terminal to obey."""
        self._err.write(before + (escape_layout(text) if self._err.isatty() else text))
        self._err.flush()


@contextmanager
def _writing() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as e:
        raise ReaderGoneError from e
    except OSError as e:
        raise UnwritableError(f"cannot write to stdout: {e.strerror}") from e
