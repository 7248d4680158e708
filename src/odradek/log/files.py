"""File access for logs: small files as a whole, large ones through a limited number of descriptors.

This file does not interpret the bytes.
"""

import errno
from collections import deque
from collections.abc import Callable, Sequence
from os import O_CREAT, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY
from typing import Final

from odradek.core.errors import UnsyncedError
from odradek.core.types import Buffer
from odradek.runtime.api import Disk

MAX_DESCRIPTORS: Final = 512
_READ_CHUNK_BYTES: Final = 1 << 20
_SMALL_BYTES: Final = 4096
_CHANCES: Final = 32  # used files to skip in one `open`, so that it does not check all of them
_TOO_MANY_OPEN: Final = (errno.EMFILE, errno.ENFILE)


def named(disk: Disk, error: OSError, fd: int, position: int) -> OSError:
    """The error of a read or write by descriptor, with the missing path and position."""
    if error.filename is not None:
        return error
    return OSError(error.errno, f"{error.strerror}, at byte offset {position}", disk.path_of(fd))


def read_file(disk: Disk, path: str) -> bytes:
    """The content of a small file."""
    fd = disk.open(path, O_RDONLY)
    try:
        pieces = []
        position = 0
        while piece := disk.pread(fd, _READ_CHUNK_BYTES if position else _SMALL_BYTES, position):
            pieces.append(piece)
            position += len(piece)
        return b"".join(pieces)
    except OSError as e:
        raise named(disk, e, fd, position) from None
    finally:
        disk.close(fd)


def write_file(disk: Disk, path: str, data: Buffer, *, sync: bool = True) -> None:
    """Replace a file atomically: after a crash it has either the old content or the new one.

    Without `sync` a crash may still lose or tear the content, until the file is synced.
    """
    temporary = path + ".tmp"
    fd = disk.open(temporary, O_WRONLY | O_CREAT | O_TRUNC)
    try:
        write_fully(disk, fd, data, 0)
        if sync:
            disk.fsync(fd)
    finally:
        disk.close(fd)
    disk.rename(temporary, path)
    if sync:
        disk.fsync_dir(path.rpartition("/")[0])


def overwrite_file(disk: Disk, path: str, data: Buffer) -> None:
    """Write a file whose old content does not matter. A crash may leave any part of it."""
    fd = disk.open(path, O_WRONLY | O_CREAT)
    try:
        write_fully(disk, fd, data, 0)
        disk.ftruncate(fd, len(data))
    finally:
        disk.close(fd)


def sync_file(disk: Disk, path: str) -> None:
    """Make a written file durable. Raises UnsyncedError if the sync itself fails."""
    fd = disk.open(path, O_RDONLY)
    try:
        disk.fsync(fd)
    except OSError as e:
        raise UnsyncedError(e.errno, e.strerror, e.filename or path) from e
    finally:
        disk.close(fd)


def sync_data(disk: Disk, fd: int) -> None:
    """Make records durable. Raises UnsyncedError."""
    try:
        disk.fdatasync(fd)
    except OSError as e:
        raise UnsyncedError(e.errno, e.strerror, e.filename) from e


def write_fully(disk: Disk, fd: int, data: Buffer, position: int) -> None:
    """Write all of the data, with as many writes as needed."""
    written = 0
    try:
        written = disk.pwrite(fd, data, position)
        if written == len(data):
            return
        rest = memoryview(data)
        while written < len(rest):
            written += disk.pwrite(fd, rest[written:], position + written)
    except OSError as e:
        raise named(disk, e, fd, position + written) from None


def write_rest(disk: Disk, fd: int, buffers: Sequence[Buffer], position: int, written: int) -> None:
    """Continue after a short write of buffers, or write more buffers than one call accepts."""
    for buffer in buffers:
        if written >= len(buffer):
            written -= len(buffer)
            position += len(buffer)
            continue
        rest = memoryview(buffer)[written:]
        position += written
        written = 0
        write_fully(disk, fd, rest, position)
        position += len(rest)


def unlink_if_exists(disk: Disk, path: str) -> bool:
    try:
        disk.unlink(path)
    except FileNotFoundError:
        return False
    return True


def remove_tree(disk: Disk, path: str) -> None:
    """Remove a directory with its content, if it exists. Links are not followed."""
    try:
        names = disk.listdir(path)
    except FileNotFoundError:
        return
    for name in names:
        try:
            unlink_if_exists(disk, f"{path}/{name}")
        except IsADirectoryError:
            remove_tree(disk, f"{path}/{name}")
    disk.rmdir(path)


class Descriptor:
    """An open file. It closes with its last reference, so that reads in progress can finish."""

    __slots__ = ("_disk", "_live", "fd")

    def __init__(self, disk: Disk, fd: int, live: set[int] | None = None) -> None:
        """`live` is the set of open descriptors; this one is in it until it closes."""
        self._disk = disk
        self.fd = fd
        self._live = live
        if live is not None:
            live.add(fd)

    def __del__(self) -> None:
        if self._live is not None:
            self._live.discard(self.fd)  # before another file can get the number
        try:
            self._disk.close(self.fd)
        except OSError:
            # No caller could handle it, and everything that must be durable was synced before.
            pass


class FileSlice:
    """A part of a file. The descriptor stays open as long as the slice is alive.

    A truncation of the file may put other bytes at the same place. `cuts` has the positions of all cuts of
    the file, `cuts_seen` counts those before this slice was made. OutputQueue compares them.
    """

    __slots__ = ("_disk", "cuts", "cuts_seen", "fd", "file", "position", "size")

    def __init__(
        self, disk: Disk, file: Descriptor, position: int, size: int, cuts: Sequence[int] = ()
    ) -> None:
        self._disk = disk
        self.file = file
        self.fd = file.fd
        self.position = position
        self.size = size
        self.cuts = cuts
        self.cuts_seen = len(cuts)

    def read(self) -> bytes:
        return read_fully(self._disk, self.fd, self.size, self.position)


def read_fully(disk: Disk, fd: int, count: int, position: int) -> bytes:
    """`count` bytes; fewer only at the end of the file."""
    done = 0
    try:
        data = disk.pread(fd, count, position)
        if len(data) == count or not data:
            return data
        pieces = [data]
        done = len(data)
        while done < count:
            piece = disk.pread(fd, count - done, position + done)
            if not piece:
                break
            pieces.append(piece)
            done += len(piece)
        return b"".join(pieces)
    except OSError as e:
        raise named(disk, e, fd, position + done) from None


class PooledFile:
    """A file of a log by its path. The pool opens and closes its descriptor as needed."""

    __slots__ = ("_pool", "cuts", "handle", "on_spared", "path", "used")

    def __init__(self, pool: "FilePool", path: str) -> None:
        self._pool = pool
        self.path = path
        self.handle: Descriptor | None = None
        self.used = False
        self.on_spared: Callable[[], None] | None = None
        self.cuts: list[int] = []  # see `FileSlice`

    def open(self) -> Descriptor:
        """The descriptor. Opens the file if needed."""
        self.used = True
        handle = self.handle
        return self._pool.open(self) if handle is None else handle

    def close(self) -> None:
        self.handle = None

    def unlink(self) -> bool:
        self.handle = None
        return unlink_if_exists(self._pool.disk, self.path)

    def spare(self) -> bool:
        """Close the descriptor, unless it was used since the last call."""
        if self.used:
            self.used = False
            return False
        self.handle = None
        if self.on_spared is not None:
            self.on_spared()
        return True


class FilePool:
    """Limits the number of open files: it closes the least recently used one, by second chance.

    A file that the pool closed stays open for reads in progress. Up to `max_held` such files are expected.
    Code that holds more of them checks `is_short` first.
    """

    __slots__ = ("_open", "disk", "live", "max_descriptors", "max_held")

    def __init__(
        self, disk: Disk, max_descriptors: int = MAX_DESCRIPTORS, max_held: int = MAX_DESCRIPTORS
    ) -> None:
        self.disk = disk
        self.max_descriptors = max_descriptors
        self.max_held = max_held
        self.live: set[int] = set()
        self._open: deque[PooledFile] = deque()

    @property
    def is_short(self) -> bool:
        """Whether the limit of open files is reached, including those held by reads in progress."""
        return len(self.live) >= self.max_descriptors + self.max_held

    def open(self, file: PooledFile) -> Descriptor:
        file.handle = handle = self._descriptor(file.path, O_RDWR)
        self._open.append(file)
        return handle

    def create(self, path: str, *, empty: bool = True) -> PooledFile:
        """A new empty file, replacing an existing one; without `empty`, a file that the caller overwrites."""
        file = PooledFile(self, path)
        file.handle = self._descriptor(path, O_RDWR | O_CREAT | (O_TRUNC if empty else 0))
        self._open.append(file)
        return file

    def _descriptor(self, path: str, flags: int) -> Descriptor:
        self._shrink_to(self.max_descriptors - 1)
        try:
            return Descriptor(self.disk, self.disk.open(path, flags), self.live)
        except OSError as e:
            if e.errno not in _TOO_MANY_OPEN or not self._open:
                raise
        # Sockets use the descriptors: the disk is fine. Continue with fewer open files.
        self._shrink_to(len(self._open) // 2)
        return Descriptor(self.disk, self.disk.open(path, flags), self.live)

    def _shrink_to(self, count: int) -> None:
        candidates = self._open
        chances = _CHANCES
        while len(candidates) > count:
            file = candidates.popleft()
            if file.handle is None or file.spare():
                continue
            if chances:
                chances -= 1
                candidates.append(file)
            else:
                file.spare()
