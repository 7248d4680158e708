"""Protocols for what a node uses of the operating system: clocks, files, sockets, random numbers, threads.

`real.py` implements them with the operating system, `sim/` with virtual time and faults. The code of a node
opens files and sockets, reads clocks and draws random numbers only through them. Errors are the operating
system's own (OSError with errno, BlockingIOError for "not now"), and counts may be short, as on a real
machine.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.core.types import Buffer

T = TypeVar("T")

SYSTEM_BUFFER = -1
"""The operating system chooses the size of a socket's buffer."""


class Clock(Protocol):
    """`now_ms` is wall-clock time. It may jump, forward or back.

    Durations and timers use a clock that never goes back: the event loop's (`loop.time`, `call_later`), or
    `steady_ms`, which counts from an arbitrary point.
    """

    def now_ms(self) -> int: ...
    def steady_ms(self) -> int: ...


class FileStat(NamedTuple):
    size: int
    mtime_ms: int
    is_dir: bool


class Disk(Protocol):
    """Files by descriptor, with the semantics and the errors of the POSIX calls of the same names.

    The calls of the hot path have positional arguments only, so that `real.py` can use the functions of the
    os module directly, without a Python frame in between.
    """

    def open(self, path: str, flags: int, mode: int = 0o644) -> int: ...
    def close(self, fd: int) -> None: ...
    def size(self, fd: int) -> int: ...
    def pread(self, fd: int, count: int, offset: int, /) -> bytes: ...
    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int: ...
    def preadv_nowait(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Read from the page cache only. Raises BlockingIOError if the disk would have to be read."""
        ...

    def pwrite(self, fd: int, data: Buffer, offset: int, /) -> int: ...
    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int: ...
    def path_of(self, fd: int) -> str | None:
        """The path of a descriptor's file, if it can be found. For messages: errors of calls by descriptor
        do not name the file."""
        ...

    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def ftruncate(self, fd: int, length: int) -> None: ...
    def fallocate_keep_size(self, fd: int, offset: int, length: int) -> None:
        """Reserve blocks without growing the file; does nothing if the file system cannot."""
        ...

    def stat(self, path: str) -> FileStat: ...
    def exists(self, path: str) -> bool: ...
    def listdir(self, path: str) -> list[str]:
        """Names in sorted order, so that the caller does not depend on the file system's order."""
        ...

    def mkdir(self, path: str) -> None: ...
    def makedirs(self, path: str) -> None:
        """Make a directory and its missing parents; does nothing if it exists."""
        ...

    def rmdir(self, path: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None:
        """Rename, replacing the target, as rename(2) does."""
        ...

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Set the modification time of a file."""
        ...

    def fsync_dir(self, path: str) -> None: ...
    def lock(self, path: str) -> int:
        """Lock a file exclusively, creating it if needed. Raises BlockingIOError if it is locked.

        Closing the returned descriptor releases the lock, and so does the end of the process.
        """
        ...

    def usage(self, path: str) -> tuple[int, int]:
        """(total bytes, usable bytes) of the volume."""
        ...


class Socket(Protocol):
    """A connected, non-blocking stream socket. Remove its callbacks from the Net before closing it."""

    @property
    def peer(self) -> tuple[str, int]: ...
    def fileno(self) -> int:
        """A number that no other open socket of this runtime has; -1 once closed."""
        ...

    def recv_into(self, buffer: Buffer, /) -> int: ...
    def send(self, data: Buffer, /) -> int: ...
    def sendmsg(self, buffers: Sequence[Buffer], /) -> int: ...
    def sendfile(self, fd: int, offset: int, count: int, /) -> int:
        """Send from a file of the same runtime's Disk."""
        ...

    def close(self) -> None: ...


class ListeningSocket(Protocol):
    @property
    def address(self) -> tuple[str, int]: ...
    def fileno(self) -> int: ...
    def accept(self) -> Socket: ...
    def close(self) -> None: ...


class Net(Protocol):
    """Sockets, and callbacks while they are ready (level-triggered).

    Each socket has one reader and one writer callback: adding another replaces it. Removing a callback that
    was never added does nothing.
    """

    def listen(self, host: str, port: int, backlog: int = 512) -> ListeningSocket: ...
    async def resolve(self, host: str) -> str:
        """The first address of a host name. Raises OSError."""
        ...

    async def connect(self, host: str, port: int, receive_buffer_bytes: int = SYSTEM_BUFFER) -> Socket: ...
    def add_reader(self, sock: Socket | ListeningSocket, callback: Callable[[], None]) -> None: ...
    def remove_reader(self, sock: Socket | ListeningSocket) -> None: ...
    def add_writer(self, sock: Socket, callback: Callable[[], None]) -> None: ...
    def remove_writer(self, sock: Socket) -> None: ...


class Runtime(Protocol):
    """Everything that a node gets when it is created."""

    clock: Clock
    disk: Disk
    net: Net
    rng: random.Random

    def descriptor_limit(self) -> int:
        """How many files and sockets the process may have open at a time."""
        ...

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a system call, or C code that releases the GIL, outside the event loop."""
        ...

    def for_quorum(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`offload` for what an election or a commit of the metadata log waits for: nobody else's work is
        before it."""
        ...

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`offload` for long work that no client waits for: it runs at a lower priority."""
        ...
