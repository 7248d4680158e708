"""Disks that turn a sound node into a careless one, for proving that the simulator notices."""

import asyncio
from collections.abc import Sequence
from typing import Any

from odradek.core.types import Buffer
from odradek.sim.world.disk import SimDisk
from odradek.sim.world.volume import Content

LATE_SECONDS = 0.2


class NoSync:
    """Says that records are flushed when they are not."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._logs: set[int] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = self._disk.open(path, flags, mode)
        if path.endswith(".log") and "__cluster_metadata" not in path:
            self._logs.add(fd)
        return fd

    def fsync(self, fd: int) -> None:
        if fd not in self._logs:
            self._disk.fsync(fd)

    fdatasync = fsync


class LateWrites:
    """Says that records are written when they are still in the process, as with a buffered file."""

    def __init__(self, disk: SimDisk) -> None:
        self._disk = disk
        self._paths: dict[int, str] = {}
        self._contents: dict[str, Content] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._disk, name)

    def open(self, path: str, flags: int, mode: int = 0o644) -> int:
        fd = self._disk.open(path, flags, mode)
        if path.endswith(".log") and "__cluster_metadata" not in path:
            self._paths[fd] = path
            size = self._disk.size(fd)
            self._contents.setdefault(path, Content(self._disk.pread(fd, size, 0)))
        return fd

    def close(self, fd: int) -> None:
        if fd not in self._paths:
            self._disk.close(fd)

    def size(self, fd: int) -> int:
        content = self._content(fd)
        return self._disk.size(fd) if content is None else content.size

    def pread(self, fd: int, count: int, offset: int) -> bytes:
        content = self._content(fd)
        return self._disk.pread(fd, count, offset) if content is None else content.read(offset, count)

    def preadv_nowait(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        (buffer,) = buffers
        view = memoryview(buffer)
        piece = self.pread(fd, len(view), offset)
        view[: len(piece)] = piece
        return len(piece)

    preadv = preadv_nowait

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        content = self._content(fd)
        if content is None:
            return self._disk.pwritev(fd, buffers, offset)
        data = b"".join(buffers)
        content.write(offset, data)
        asyncio.get_running_loop().call_later(LATE_SECONDS, self._disk.pwrite, fd, data, offset)
        return len(data)

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        return self.pwritev(fd, (data,), offset)

    def ftruncate(self, fd: int, length: int) -> None:
        content = self._content(fd)
        if content is not None:
            content.resize(length)
        self._disk.ftruncate(fd, length)

    def _content(self, fd: int) -> Content | None:
        path = self._paths.get(fd)
        return None if path is None else self._contents[path]
