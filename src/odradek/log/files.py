"""Files of a log: small ones as a whole, large ones through descriptors that are bounded in number.

What the bytes mean is decided elsewhere.
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
_CHANCES: Final = 32  # files that were used and are passed over, lest one open looks at all of them
_TOO_MANY_OPEN: Final = (errno.EMFILE, errno.ENFILE)


def named(disk: Disk, error: OSError, fd: int, position: int) -> OSError:
    """The error of a read or a write by descriptor with what it does not tell: the file and the position."""
    if error.filename is not None:
        return error
    return OSError(error.errno, f"{error.strerror}, at byte offset {position}", disk.path_of(fd))


def read_file(disk: Disk, path: str) -> bytes:
    """The whole of a small file."""
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
    """Replace a file as a whole: after a crash either the old content is there or the new one.

    Without `sync` the content may still be lost or torn by a crash, until the file is synced.
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
    """Write a file where there was none, or none that counts. A crash may leave any part of it."""
    fd = disk.open(path, O_WRONLY | O_CREAT)
    try:
        write_fully(disk, fd, data, 0)
        disk.ftruncate(fd, len(data))
    finally:
        disk.close(fd)


def sync_file(disk: Disk, path: str) -> None:
    """Make a file durable that is written already. Raises UnsyncedError where the sync itself fails."""
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
    """Write all of the data, over as many short writes as it takes."""
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
    """Go on after a short write of buffers from a position on, or write more of them than one call takes."""
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
    """Remove a directory and all that is in it; one that is gone already is fine. Links are not followed."""
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
    """An open file. It closes with the last reference, so that whoever still reads from it can."""

    __slots__ = ("_disk", "_live", "fd")

    def __init__(self, disk: Disk, fd: int, live: set[int] | None = None) -> None:
        """`live` has the descriptors that are open, this one until it closes."""
        self._disk = disk
        self.fd = fd
        self._live = live
        if live is not None:
            live.add(fd)

    def __del__(self) -> None:
        if self._live is not None:
            self._live.discard(self.fd)  # before the number can be another file's
        try:
            self._disk.close(self.fd)
        except OSError:
            # Nobody is left to tell; what had to be durable was synced before.
            pass


class FileSlice:
    """A part of a file. The descriptor stays open as long as the slice is alive."""

    __slots__ = ("_disk", "fd", "file", "position", "size")

    def __init__(self, disk: Disk, file: Descriptor, position: int, size: int) -> None:
        self._disk = disk
        self.file = file
        self.fd = file.fd
        self.position = position
        self.size = size

    def read(self) -> bytes:
        return read_fully(self._disk, self.fd, self.size, self.position)


def read_fully(disk: Disk, fd: int, count: int, position: int) -> bytes:
    """`count` bytes, fewer only where the file ends."""
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
    """A file of a log by its path; its descriptor comes and goes with the pool's needs."""

    __slots__ = ("_pool", "handle", "on_spared", "path", "used")

    def __init__(self, pool: "FilePool", path: str) -> None:
        self._pool = pool
        self.path = path
        self.handle: Descriptor | None = None
        self.used = False
        self.on_spared: Callable[[], None] | None = None

    def open(self) -> Descriptor:
        """The descriptor, opened where it is not."""
        self.used = True
        handle = self.handle
        return self._pool.open(self) if handle is None else handle

    def close(self) -> None:
        self.handle = None

    def unlink(self) -> bool:
        self.handle = None
        return unlink_if_exists(self._pool.disk, self.path)

    def spare(self) -> bool:
        """Give the descriptor up unless it was used since the last time this was asked."""
        if self.used:
            self.used = False
            return False
        self.handle = None
        if self.on_spared is not None:
            self.on_spared()
        return True


class FilePool:
    """Bounds how many files are open: the longest unused is closed first, by second chance.

    A file that was closed here stays open for whoever still reads from it. `max_held` of them are expected;
    whoever makes more of them looks at `is_short` before.
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
        """Whether as many files are open as may be, those that are only held among them."""
        return len(self.live) >= self.max_descriptors + self.max_held

    def open(self, file: PooledFile) -> Descriptor:
        file.handle = handle = self._descriptor(file.path, O_RDWR)
        self._open.append(file)
        return handle

    def create(self, path: str, *, empty: bool = True) -> PooledFile:
        """An empty file, in place of whatever stood there; or one whose content is yet to be overwritten."""
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
        # Sockets have taken the descriptors: that is no fault of the disk. Make do with fewer.
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
