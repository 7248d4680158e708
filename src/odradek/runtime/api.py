"""What the node asks of the world, as protocols at the level of system calls: time, files, sockets, chance.

`real.py` answers with the operating system, `sim/` with virtual time and faults. Nothing else in the
package opens, sleeps, reads a clock or draws a random number. Errors are the operating system's own
(OSError with errno, BlockingIOError for "not now"), counts may be short, as they are on a real machine.
"""

import asyncio
import random
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar

from odradek.core.types import Buffer

T = TypeVar("T")


class Clock(Protocol):
    """Wall-clock time, which somebody may set, forward or back.

    Durations and timers use a clock that only goes forward: the event loop's own (`loop.time`, `call_later`),
    or this one's `steady_ms`, whose beginning means nothing.
    """

    def now_ms(self) -> int: ...
    def steady_ms(self) -> int: ...


class FileStat(NamedTuple):
    size: int
    mtime_ms: int
    is_dir: bool


class Disk(Protocol):
    """Files by descriptor, with the semantics and the errors of the POSIX calls of the same names.

    The calls of the hot path take their arguments by position only, so that `real.py` can hand out the
    operating system's functions themselves, without a Python frame in between.
    """

    def open(self, path: str, flags: int, mode: int = 0o644) -> int: ...
    def close(self, fd: int) -> None: ...
    def size(self, fd: int) -> int: ...
    def pread(self, fd: int, count: int, offset: int, /) -> bytes: ...
    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int: ...
    def preadv_nowait(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        """Read only what the page cache holds: raises BlockingIOError where the disk would be touched."""
        ...

    def pwrite(self, fd: int, data: Buffer, offset: int, /) -> int: ...
    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int: ...
    def path_of(self, fd: int) -> str | None:
        """What file a descriptor is of, as far as that can be told. Reads and writes by descriptor fail
        without a name: this is for the message."""
        ...

    def fsync(self, fd: int) -> None: ...
    def fdatasync(self, fd: int) -> None: ...
    def ftruncate(self, fd: int, length: int) -> None: ...
    def fallocate_keep_size(self, fd: int, offset: int, length: int) -> None:
        """Reserve blocks without growing the file; does nothing where the file system cannot."""
        ...

    def stat(self, path: str) -> FileStat: ...
    def exists(self, path: str) -> bool: ...
    def listdir(self, path: str) -> list[str]:
        """Names in sorted order, so that what follows does not depend on the file system."""
        ...

    def mkdir(self, path: str) -> None: ...
    def makedirs(self, path: str) -> None:
        """Make a directory and its missing parents; nothing to do when it exists."""
        ...

    def rmdir(self, path: str) -> None: ...
    def unlink(self, path: str) -> None: ...
    def rename(self, old: str, new: str) -> None:
        """Rename, replacing the target, as rename(2) does."""
        ...

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        """Give a file the time at which it counts as last written."""
        ...

    def fsync_dir(self, path: str) -> None: ...
    def lock(self, path: str) -> int:
        """Take an exclusive lock on a file, creating it; BlockingIOError when it is taken.

        Closing the returned descriptor gives the lock back, and so does the death of the process.
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

    One reader and one writer callback per socket: adding another replaces it. Removing what was never
    added does nothing.
    """

    def listen(self, host: str, port: int, backlog: int = 512) -> ListeningSocket: ...
    async def resolve(self, host: str) -> str:
        """The first address of a host name. Raises OSError."""
        ...

    async def connect(self, host: str, port: int) -> Socket: ...
    def add_reader(self, sock: Socket | ListeningSocket, callback: Callable[[], None]) -> None: ...
    def remove_reader(self, sock: Socket | ListeningSocket) -> None: ...
    def add_writer(self, sock: Socket, callback: Callable[[], None]) -> None: ...
    def remove_writer(self, sock: Socket) -> None: ...


class Runtime(Protocol):
    """Everything a node is given at birth."""

    clock: Clock
    disk: Disk
    net: Net
    rng: random.Random

    def descriptor_limit(self) -> int:
        """How many files and sockets this process may have open at the same time."""
        ...

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """Run a system call, or C code that releases the GIL, away from the event loop."""
        ...

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        """`offload` for long work that nobody waits for: whoever serves clients has the processor first."""
        ...
