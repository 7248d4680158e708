"""SimDisk: a Disk over a Volume, with descriptors, short counts and faults. volume.py has the disk image."""

import errno
import os
import random
from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from odradek.core.types import Buffer
from odradek.runtime.api import FileStat
from odradek.sim.world.process import Process
from odradek.sim.world.trace import Trace
from odradek.sim.world.volume import PAGE_BYTES, Directory, File, Volume

MAX_BUFFERS = 1024
"""IOV_MAX: the maximum number of buffers of one call."""
_UNLIMITED_BYTES = 1 << 40


class DiskFaults:
    """The faults of a host's disk. They may change during the simulation."""

    def __init__(self) -> None:
        self.short_write = 0.0
        self.cold_read = 0.0
        self.stall = 0.0
        self.stall_seconds = 0.05
        self.rules: list[DiskFault] = []


class DiskFault:
    """Fail the named operations on matching paths, with a probability and a maximum number of times."""

    __slots__ = ("code", "operations", "pattern", "probability", "times")

    def __init__(
        self,
        code: int,
        operations: Sequence[str],
        pattern: str = "*",
        probability: float = 1.0,
        times: int = -1,
    ) -> None:
        self.code = code
        self.operations = tuple(operations)
        self.pattern = pattern
        self.probability = probability
        self.times = times

    def strikes(self, operation: str, path: str, rng: random.Random) -> bool:
        if self.times == 0 or operation not in self.operations or not fnmatchcase(path, self.pattern):
            return False
        if self.probability < 1.0 and rng.random() >= self.probability:
            return False
        self.times -= 1
        return True


class _Open(NamedTuple):
    node: File | Directory
    path: str
    readable: bool
    writable: bool


class SimDisk:
    """The descriptors of one process on one volume."""

    def __init__(
        self,
        volume: Volume,
        process: Process,
        faults: DiskFaults,
        rng: random.Random,
        trace: Trace,
        now_ms: Callable[[], int],
        stall: Callable[[float], None],
    ) -> None:
        self.volume = volume
        self.faults = faults
        self._process = process
        self._rng = rng
        self._trace = trace
        self._now_ms = now_ms
        self._stall = stall
        self._open: dict[int, _Open] = {}
        self._locks: dict[int, str] = {}
        self._next_fd = 3

    def open_paths(self) -> list[str]:
        """The open files, for leak checks."""
        return [entry.path for entry in self._open.values()]

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        assert not flags & os.O_APPEND, "positional writes only"
        self._enter("open", path, effect=bool(flags & (os.O_CREAT | os.O_TRUNC)))
        node: File | Directory
        try:
            node = self.volume.find(path)
            if flags & os.O_CREAT and flags & os.O_EXCL:
                raise _error(errno.EEXIST, path)
        except FileNotFoundError:
            if not flags & os.O_CREAT:
                raise
            node = self.volume.create(path)
            node.mtime_ms = self._now_ms()
        access = flags & os.O_ACCMODE
        if isinstance(node, Directory):
            if access != os.O_RDONLY:
                raise _error(errno.EISDIR, path)
        elif flags & os.O_DIRECTORY:
            raise _error(errno.ENOTDIR, path)
        elif flags & os.O_TRUNC and access != os.O_RDONLY:
            node.truncate(0)
        fd = self._next_fd
        self._next_fd += 1
        self._open[fd] = _Open(node, path, access != os.O_WRONLY, access != os.O_RDONLY)
        return fd

    def close(self, fd: int) -> None:
        if not self._process.alive:
            return
        if self._open.pop(fd, None) is None:
            raise _error(errno.EBADF)
        path = self._locks.pop(fd, None)
        if path is not None:
            del self.volume.locks[path]

    def path_of(self, fd: int) -> str | None:
        entry = self._open.get(fd)
        return None if entry is None else entry.path

    def size(self, fd: int) -> int:
        return self._file(fd).data.size

    def pread(self, fd: int, count: int, offset: int, /) -> bytes:
        entry = self._entry(fd)
        self._enter("pread", entry.path, count, offset, is_named=False)
        data = self._file(fd).data
        if not entry.readable:
            raise _error(errno.EBADF)
        return data.read(offset, count)

    def preadv(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int:
        if len(buffers) > MAX_BUFFERS:
            raise _error(errno.EINVAL)
        done = 0
        for buffer in buffers:
            view = memoryview(buffer).cast("B")
            piece = self.pread(fd, len(view), offset + done)
            view[: len(piece)] = piece
            done += len(piece)
            if len(piece) < len(view):
                break
        return done

    def preadv_nowait(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        if self.faults.cold_read and self._rng.random() < self.faults.cold_read:
            raise BlockingIOError(errno.EAGAIN, "not in the page cache")
        return self.preadv(fd, buffers, offset)

    def pwrite(self, fd: int, data: Buffer, offset: int, /) -> int:
        return self.pwritev(fd, (data,), offset)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int, /) -> int:
        entry = self._entry(fd)
        if len(buffers) > MAX_BUFFERS:
            raise _error(errno.EINVAL)
        chunk = b"".join(buffers)
        self._enter("pwrite", entry.path, len(chunk), offset, effect=True, is_named=False)
        file = self._file(fd)
        if not entry.writable:
            raise _error(errno.EBADF)
        faults = self.faults
        if faults.short_write and len(chunk) > 1 and self._rng.random() < faults.short_write:
            chunk = chunk[: self._rng.randrange(1, len(chunk))]
        if self.volume.capacity_bytes is not None:
            growth = offset + len(chunk) - file.data.used_bytes()
            lacking = growth - (self.volume.capacity_bytes - self.volume.used_bytes()) if growth > 0 else 0
            if lacking > 0:
                if lacking >= len(chunk):
                    raise _error(errno.ENOSPC)
                chunk = chunk[: len(chunk) - lacking]
        file.write(offset, chunk)
        file.mtime_ms = self._now_ms()
        return len(chunk)

    def fsync(self, fd: int) -> None:
        entry = self._entry(fd)
        try:
            self._enter("fsync", entry.path, effect=True)
        except OSError:
            if isinstance(entry.node, File):
                entry.node.forget()
            raise
        if isinstance(entry.node, File):
            entry.node.sync()
        else:
            self.volume.sync_directory(entry.node)

    def fdatasync(self, fd: int) -> None:
        self.fsync(fd)

    def ftruncate(self, fd: int, length: int) -> None:
        entry = self._entry(fd)
        self._enter("ftruncate", entry.path, length, effect=True)
        if not entry.writable:
            raise _error(errno.EINVAL, entry.path)
        file = self._file(fd)
        file.truncate(length)
        file.mtime_ms = self._now_ms()

    def fallocate_keep_size(self, fd: int, offset: int, length: int) -> None:
        entry = self._entry(fd)
        self._enter("fallocate", entry.path, offset, length, effect=True)
        _, usable = self._space()
        if offset + length - self._file(fd).data.used_bytes() > usable:
            raise _error(errno.ENOSPC, entry.path)

    def stat(self, path: str) -> FileStat:
        self._enter("stat", path)
        node = self.volume.find(path)
        if isinstance(node, Directory):
            return FileStat(PAGE_BYTES, node.mtime_ms, is_dir=True)
        return FileStat(node.data.size, node.mtime_ms, is_dir=False)

    def exists(self, path: str) -> bool:
        self._process.check()
        try:
            self.volume.find(path)
        except OSError:
            return False
        return True

    def listdir(self, path: str) -> list[str]:
        self._enter("listdir", path)
        return sorted(self.volume.find_directory(path).entries)

    def mkdir(self, path: str) -> None:
        self._enter("mkdir", path, effect=True)
        self.volume.mkdir(path)

    def makedirs(self, path: str) -> None:
        parts = [part for part in path.split("/") if part]
        for depth in range(1, len(parts) + 1):
            prefix = "/" + "/".join(parts[:depth])
            if not self.exists(prefix):
                self.mkdir(prefix)
        self.volume.find_directory(path)

    def rmdir(self, path: str) -> None:
        self._enter("rmdir", path, effect=True)
        self.volume.rmdir(path)

    def unlink(self, path: str) -> None:
        self._enter("unlink", path, effect=True)
        self.volume.unlink(path)

    def rename(self, old: str, new: str) -> None:
        self._enter("rename", old, new, effect=True)
        self.volume.rename(old, new)

    def set_mtime(self, path: str, mtime_ms: int) -> None:
        self._enter("utime", path, mtime_ms, effect=True)
        self.volume.find(path).mtime_ms = mtime_ms

    def fsync_dir(self, path: str) -> None:
        self._enter("fsync", path, effect=True)
        self.volume.sync_directory(self.volume.find_directory(path))

    def lock(self, path: str) -> int:
        owner = self.volume.locks.get(path)
        if owner is not None and owner.alive:
            raise BlockingIOError(errno.EAGAIN, "locked by another node", path)
        fd = self.open(path, os.O_RDWR | os.O_CREAT)
        self.volume.locks[path] = self._process
        self._locks[fd] = path
        return fd

    def usage(self, path: str) -> tuple[int, int]:
        self.volume.find(path)
        return self._space()

    def _space(self) -> tuple[int, int]:
        if self.volume.capacity_bytes is None:
            return _UNLIMITED_BYTES, _UNLIMITED_BYTES
        capacity = self.volume.capacity_bytes
        return capacity, max(0, capacity - self.volume.used_bytes())

    def _entry(self, fd: int) -> _Open:
        self._process.check()
        entry = self._open.get(fd)
        if entry is None:
            raise _error(errno.EBADF)
        return entry

    def _file(self, fd: int) -> File:
        entry = self._entry(fd)
        if not isinstance(entry.node, File):
            raise _error(errno.EISDIR)
        return entry.node

    def _enter(
        self, operation: str, path: str, *details: object, effect: bool = False, is_named: bool = True
    ) -> None:
        """Called by every system call: the process may die here, and the call may be slow or fail.

        Errors of reads and writes by descriptor do not name the file, as on a real system.
        """
        if effect:
            self._process.check_effect()
        else:
            self._process.check()
        self._trace.event(self._process.name, operation, path, *details)
        faults = self.faults
        if faults.stall and self._rng.random() < faults.stall:
            self._stall(self._rng.random() * faults.stall_seconds)
        for rule in faults.rules:
            if rule.strikes(operation, path, self._rng):
                self._trace.event(self._process.name, "fault", operation, path, errno.errorcode[rule.code])
                raise _error(rule.code, path if is_named else None)


def _error(code: int, path: str | None = None) -> OSError:
    return OSError(code, os.strerror(code), path)
