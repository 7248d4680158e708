"""The operating system as a Runtime: clocks, files, sockets, random numbers and threads of a real node.

No policy belongs here: each call is the system call of its name. Slow imports happen at the first use,
because a node must answer within a third of a second after its start.
"""

import asyncio
import errno
import fcntl
import os
import random
import resource
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Executor
from typing import TypeVar

from odradek.core.types import Buffer
from odradek.runtime.api import SYSTEM_BUFFER, Clock, Disk, FileStat, ListeningSocket, Net, Socket

T = TypeVar("T")

OFFLOAD_THREADS = 4
BACKGROUND_THREADS = 2
BACKGROUND_NICENESS = 10

# struct flock of 64-bit Linux: type int16 | whence int16 | 4 bytes of padding | start int64 | length int64 |
#                               pid int32 | 4 bytes of padding
_FLOCK = struct.Struct("hh4xqqi4x")
_FALLOC_FL_KEEP_SIZE = 0x01
_UNLIMITED = 1 << 20
_UNSUPPORTED = frozenset({errno.EOPNOTSUPP, errno.ENOSYS, errno.EINVAL})
_fdatasync = os.fdatasync if hasattr(os, "fdatasync") else os.fsync


class RealClock:
    __slots__ = ()

    def now_ms(self) -> int:
        return time.time_ns() // 1_000_000

    def steady_ms(self) -> int:
        return time.monotonic_ns() // 1_000_000


class RealDisk:
    __slots__ = ("_fallocate",)

    open = staticmethod(os.open)
    close = staticmethod(os.close)
    pread = staticmethod(os.pread)
    preadv = staticmethod(os.preadv)
    pwrite = staticmethod(os.pwrite)
    pwritev = staticmethod(os.pwritev)
    exists = staticmethod(os.path.exists)
    mkdir = staticmethod(os.mkdir)
    rmdir = staticmethod(os.rmdir)
    unlink = staticmethod(os.unlink)
    rename = staticmethod(os.replace)

    def __init__(self) -> None:
        self._fallocate: Callable[[int, int, int], None] | None = None

    def path_of(self, fd: int) -> str | None:
        try:
            return os.readlink(f"/proc/self/fd/{fd}")
        except OSError:
            return None

    def fsync(self, fd: int) -> None:
        try:
            os.fsync(fd)
        except OSError as e:
            raise OSError(e.errno, e.strerror, self.path_of(fd)) from e

    def fdatasync(self, fd: int) -> None:
        try:
            _fdatasync(fd)
        except OSError as e:
            raise OSError(e.errno, e.strerror, self.path_of(fd)) from e

    def ftruncate(self, fd: int, length: int) -> None:
        try:
            os.ftruncate(fd, length)
        except OSError as e:
            raise OSError(e.errno, e.strerror, self.path_of(fd)) from e

    def size(self, fd: int) -> int:
        return os.fstat(fd).st_size

    def preadv_nowait(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        try:
            return os.preadv(fd, buffers, offset, os.RWF_NOWAIT)
        except OSError as e:
            if e.errno not in _UNSUPPORTED:
                raise
            return os.preadv(fd, buffers, offset)

    def fallocate_keep_size(self, fd: int, offset: int, length: int) -> None:
        if self._fallocate is None:
            self._fallocate = _load_fallocate()
        self._fallocate(fd, offset, length)

    def stat(self, path: str) -> FileStat:
        status = os.stat(path)
        return FileStat(status.st_size, status.st_mtime_ns // 1_000_000, stat.S_ISDIR(status.st_mode))

    def listdir(self, path: str) -> list[str]:
        return sorted(os.listdir(path))

    def makedirs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        os.utime(path, ns=(mtime_ms * 1_000_000, mtime_ms * 1_000_000))

    def fsync_dir(self, path: str) -> None:
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)

    def lock(self, path: str) -> int:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        try:
            _lock_file(fd)
        except OSError as e:
            os.close(fd)
            if e.errno in (errno.EACCES, errno.EAGAIN):
                raise BlockingIOError(errno.EAGAIN, "locked by another node", path) from e
            raise
        return fd

    def is_locked(self, path: str) -> bool:
        """Whether a node holds the lock. Does not take it, and does not create the file."""
        try:
            fd = os.open(path, os.O_RDONLY)
        except FileNotFoundError:
            return False
        try:
            return _is_locked(fd)
        finally:
            os.close(fd)

    def usage(self, path: str) -> tuple[int, int]:
        volume = os.statvfs(path)
        return volume.f_blocks * volume.f_frsize, volume.f_bavail * volume.f_frsize


def _lock_file(fd: int) -> None:
    """Lock the open file description: this excludes other nodes of this process, and the JVM's fcntl
    locks."""
    if hasattr(fcntl, "F_OFD_SETLK"):
        fcntl.fcntl(fd, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0))
    else:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _is_locked(fd: int) -> bool:
    if hasattr(fcntl, "F_OFD_GETLK"):
        asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0)
        kind: int = _FLOCK.unpack(fcntl.fcntl(fd, fcntl.F_OFD_GETLK, asked))[0]
        return kind != fcntl.F_UNLCK
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _load_fallocate() -> Callable[[int, int, int], None]:
    """fallocate(2), which the os module lacks; a function that does nothing if libc lacks it too."""
    import ctypes

    function = getattr(ctypes.CDLL(None, use_errno=True), "fallocate", None)
    if function is None:
        return lambda fd, offset, length: None
    function.argtypes = [ctypes.c_int, ctypes.c_int, ctypes.c_int64, ctypes.c_int64]

    def fallocate(fd: int, offset: int, length: int) -> None:
        while function(fd, _FALLOC_FL_KEEP_SIZE, offset, length) != 0:
            code = ctypes.get_errno()
            if code == errno.EOPNOTSUPP or code == errno.ENOSYS:
                return
            if code != errno.EINTR:
                raise OSError(code, os.strerror(code))

    return fallocate


UNSENT_BYTES = 512 << 10
"""How much unsent data the kernel buffers for a peer. Without a limit, a thousand peers that do not read
would use up the kernel's memory for TCP. Data in flight does not count, so a peer that reads is not slowed
down."""


class RealSocket:
    """A stream socket without Nagle's delay. The methods are the C socket's own."""

    __slots__ = ("_sock", "close", "fileno", "peer", "recv_into", "send", "sendmsg")

    def __init__(self, sock: socket.socket, peer: tuple[str, int]) -> None:
        sock.setblocking(False)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if hasattr(socket, "TCP_NOTSENT_LOWAT"):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT_BYTES)
        self._sock = sock
        self.peer = peer
        self.fileno: Callable[[], int] = sock.fileno
        self.close: Callable[[], None] = sock.close
        self.recv_into: Callable[[Buffer], int] = sock.recv_into
        self.send: Callable[[Buffer], int] = sock.send
        self.sendmsg: Callable[[Sequence[Buffer]], int] = sock.sendmsg

    def sendfile(self, fd: int, offset: int, count: int) -> int:
        return os.sendfile(self._sock.fileno(), fd, offset, count)


class RealListener:
    __slots__ = ("_sock", "address")

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        host, port = sock.getsockname()[:2]
        self.address: tuple[str, int] = (host, port)

    def fileno(self) -> int:
        return self._sock.fileno()

    def accept(self) -> RealSocket:
        sock, address = self._sock.accept()
        try:
            return RealSocket(sock, address[:2])
        except OSError:
            sock.close()
            raise

    def close(self) -> None:
        self._sock.close()


class RealNet:
    __slots__ = ()

    def listen(self, host: str, port: int, backlog: int = 512) -> RealListener:
        """Listen on one address; an empty host means every IPv4 interface, "::" every interface."""
        family, kind, protocol, _, address = socket.getaddrinfo(
            host or "0.0.0.0", port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            sock.setblocking(False)
            sock.bind(address)
            sock.listen(backlog)
        except OSError:
            sock.close()
            raise
        return RealListener(sock)

    async def resolve(self, host: str) -> str:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM)
        return str(found[0][4][0])

    async def connect(self, host: str, port: int, receive_buffer_bytes: int = SYSTEM_BUFFER) -> RealSocket:
        """Connect to the first address of the host that answers. Raises the last error if none does."""
        loop = asyncio.get_running_loop()
        try:
            addresses = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        except socket.gaierror:
            addresses = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        failure: OSError | None = None
        for family, kind, protocol, _, address in addresses:
            sock = socket.socket(family, kind, protocol)
            try:
                sock.setblocking(False)
                if receive_buffer_bytes != SYSTEM_BUFFER:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
                await loop.sock_connect(sock, address)
                return RealSocket(sock, (str(address[0]), int(address[1])))
            except OSError as e:
                sock.close()
                failure = e
            except BaseException:
                sock.close()
                raise
        assert failure is not None
        raise failure

    def add_reader(self, sock: Socket | ListeningSocket, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_reader(sock.fileno(), callback)

    def remove_reader(self, sock: Socket | ListeningSocket) -> None:
        asyncio.get_running_loop().remove_reader(sock.fileno())

    def add_writer(self, sock: Socket, callback: Callable[[], None]) -> None:
        asyncio.get_running_loop().add_writer(sock.fileno(), callback)

    def remove_writer(self, sock: Socket) -> None:
        asyncio.get_running_loop().remove_writer(sock.fileno())


class RealRuntime:
    """The real runtime of one process. `close` waits for offloaded work and ends its threads."""

    def __init__(self) -> None:
        self.clock: Clock = RealClock()
        self.disk: Disk = RealDisk()
        self.net: Net = RealNet()
        self.rng = random.Random()
        self._pool: Executor | None = None
        self._quorum: Executor | None = None
        self._background: Executor | None = None

    def descriptor_limit(self) -> int:
        soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
        return _UNLIMITED if soft == resource.RLIM_INFINITY else soft

    def offload(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        try:
            pool = self._pool = self._pool or _threads(OFFLOAD_THREADS, "odradek-offload")
        except OSError as e:
            return _failed(e)
        return asyncio.get_running_loop().run_in_executor(pool, work)

    def for_quorum(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        try:
            pool = self._quorum = self._quorum or _threads(1, "odradek-quorum")
        except OSError as e:
            return _failed(e)
        return asyncio.get_running_loop().run_in_executor(pool, work)

    def in_background(self, work: Callable[[], T]) -> "asyncio.Future[T]":
        try:
            pool = self._background = self._background or _threads(
                BACKGROUND_THREADS, "odradek-background", _step_back
            )
        except OSError as e:
            return _failed(e)
        return asyncio.get_running_loop().run_in_executor(pool, work)

    def close(self) -> None:
        for pool in (self._pool, self._quorum, self._background):
            if pool is not None:
                pool.shutdown()
        self._pool = self._quorum = self._background = None


def _threads(count: int, name: str, initializer: Callable[[], None] | None = None) -> Executor:
    """A pool that starts all its threads now. If a thread could not be started later, its work would stay in
    the queue: never done, or done by another thread after it was reported as failed. Raises OSError."""
    from concurrent.futures import ThreadPoolExecutor

    pool = ThreadPoolExecutor(count, name, initializer=initializer)
    together = threading.Barrier(count)
    try:
        for _ in range(count):
            pool.submit(together.wait)
    except RuntimeError as e:
        together.abort()
        pool.shutdown(wait=False)
        raise OSError(errno.ENOMEM, f"cannot start threads: {e}") from e
    return pool


def _failed(error: OSError) -> "asyncio.Future[T]":
    future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    future.set_exception(error)
    return future


def _step_back() -> None:
    """Lower the priority of this thread, if the system has priorities for threads."""
    if sys.platform == "linux":
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), BACKGROUND_NICENESS)
