"""What a stretch of Python costs, in numbers that do not depend on the machine's noise.

A profiler counts Python calls and system calls, a small C library counts allocations (it is compiled when it
is needed), callgrind counts instructions. Each meter counts one of them, since each disturbs the others.
"""

import ctypes
import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from types import BuiltinFunctionType, FrameType
from typing import Any, Final, Protocol

_SOURCE: Final = Path(__file__).with_name("probe.c")
_SYSTEM_MODULES: Final = frozenset({"posix", "select", "_socket", "fcntl"})
_SYSTEM_TYPES: Final = ("socket", "epoll")


class Meter(Protocol):
    """Counts between `begin` and `end`, which gives the count."""

    def begin(self) -> None: ...

    def end(self) -> int: ...


class Calls:
    """Calls of Python functions."""

    def begin(self) -> None:
        self._count = 0
        sys.setprofile(self._profile)

    def end(self) -> int:
        sys.setprofile(None)
        return self._count - 1  # that of `end`

    def _profile(self, frame: FrameType, event: str, arg: object) -> None:
        if event == "call":
            self._count += 1


class SystemCalls:
    """Calls of functions that are a system call each: of os, select, fcntl, and of sockets."""

    def begin(self) -> None:
        self._count = 0
        sys.setprofile(self._profile)

    def end(self) -> int:
        sys.setprofile(None)
        return self._count

    def _profile(self, frame: FrameType, event: str, arg: Any) -> None:
        if event == "c_call" and isinstance(arg, BuiltinFunctionType):
            owner = type(arg.__self__).__name__
            if arg.__module__ in _SYSTEM_MODULES or owner in _SYSTEM_TYPES:
                self._count += 1


class Allocations:
    """Blocks that Python asked its allocators for."""

    def __init__(self, library: ctypes.CDLL) -> None:
        self._library = library

    def begin(self) -> None:
        self._before = self._library.probe_allocations()
        self._library.probe_install()

    def end(self) -> int:
        self._library.probe_remove()
        return int(self._library.probe_allocations()) - self._before


class Instructions:
    """What callgrind counts, which writes a file for each count into a folder."""

    def __init__(self, library: ctypes.CDLL, folder: Path) -> None:
        self._library, self._folder = library, folder
        assert library.probe_on_valgrind(), "not under valgrind, or its headers are not installed"
        library.probe_instrument()

    def begin(self) -> None:
        self._library.probe_collect()

    def end(self) -> int:
        self._library.probe_dump()
        (written,) = self._folder.glob("out.*")
        found = re.search(r"^totals: (\d+)", written.read_text(), re.MULTILINE)
        written.unlink()
        assert found, "callgrind collected nothing"
        return int(found[1])


def load_library() -> ctypes.CDLL | None:
    """The C library; None where there is no compiler."""
    compiler = os.environ.get("CC", "cc")
    with tempfile.TemporaryDirectory() as directory:
        built = Path(directory, "probe.so")
        include = sysconfig.get_paths()["include"]
        command = [compiler, "-O2", "-shared", "-fPIC", f"-I{include}", str(_SOURCE), "-o", str(built)]
        try:
            subprocess.run(command, check=True, capture_output=True)
        except (OSError, subprocess.CalledProcessError):
            return None
        library = ctypes.PyDLL(str(built))
    library.probe_allocations.restype = ctypes.c_long
    return library
