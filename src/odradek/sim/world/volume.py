"""Volume: the disk image of a host: files and directories, what is durable, and what survives a power loss.

Pure state. disk.py has descriptors, faults and processes. The writes of a file are durable after a sync of
the file, the entries of a directory after a sync of the directory. At a power loss each unsynced write
survives completely, not at all, or in some sectors. Changes of directories survive up to a point of their
common journal, in order.
"""

import errno
import os
import random
from typing import NamedTuple, TypeAlias

from odradek.sim.world.process import Process

PAGE_BYTES = 4096
SECTOR_BYTES = 512


class CrashModel(NamedTuple):
    """How a power loss treats unsynced data. The outcome is drawn for each file."""

    keep_all: float = 0.25
    lose_all: float = 0.25
    zero_tail: float = 0.15
    garbage_tail: float = 0.1


class Content:
    """The bytes of a file. Parts that were never written are holes and take no memory."""

    __slots__ = ("_written", "size")

    def __init__(self, data: bytes = b"") -> None:
        self._written = bytearray(data)
        self.size = len(data)

    def copy(self) -> "Content":
        copy = Content(bytes(self._written))
        copy.size = self.size
        return copy

    def to_bytes(self) -> bytes:
        return self.read(0, self.size)

    def used_bytes(self) -> int:
        return len(self._written)

    def read(self, offset: int, count: int) -> bytes:
        data = bytes(self._written[offset : offset + count])
        count = min(count, self.size - offset)
        return data if len(data) >= count else data + bytes(count - len(data))

    def write(self, offset: int, chunk: bytes) -> None:
        written = self._written
        if offset > len(written):
            written.extend(bytes(offset - len(written)))
        written[offset : offset + len(chunk)] = chunk
        self.size = max(self.size, len(written))

    def resize(self, length: int) -> None:
        del self._written[length:]
        self.size = length

    def apply(self, offset: int, chunk: bytes | None) -> None:
        """Apply a write, or without a chunk a truncation."""
        if chunk is None:
            self.resize(offset)
        else:
            self.write(offset, chunk)


class File:
    """The content for readers (`data`), the durable content (`durable`), and the operations between them."""

    __slots__ = ("data", "durable", "mtime_ms", "pending")

    def __init__(self) -> None:
        self.data = Content()
        self.durable = Content()
        self.pending: list[tuple[int, bytes | None]] = []
        """Writes (offset, bytes) and truncations (length, None) since the last sync, in order."""
        self.mtime_ms = 0

    def write(self, offset: int, chunk: bytes) -> None:
        if chunk:
            self.data.write(offset, chunk)
            self.pending.append((offset, chunk))

    def truncate(self, length: int) -> None:
        if length != self.data.size:
            self.data.resize(length)
            self.pending.append((length, None))

    def sync(self) -> None:
        for offset, chunk in self.pending:
            self.durable.apply(offset, chunk)
        self.pending.clear()

    def forget(self) -> None:
        """A failed fsync, as on Linux: dirty pages count as written, but never are."""
        self.pending.clear()

    def crash(self, rng: random.Random, model: CrashModel) -> None:
        if not self.pending:
            # After a failed fsync the two differ without pending operations.
            self.data = self.durable.copy()
            return
        image = self.durable
        fate = rng.random()
        if fate >= model.lose_all:
            kept = len(self.pending)
            if fate >= model.lose_all + model.keep_all:
                kept = rng.randrange(len(self.pending))
            for offset, chunk in self.pending[:kept]:
                image.apply(offset, chunk)
            self._scatter(image, self.pending[kept:], rng)
        self._soil_tail(image, rng, model)
        self.data = image.copy()
        self.pending.clear()

    def _scatter(self, image: Content, ops: list[tuple[int, bytes | None]], rng: random.Random) -> None:
        """Write some sectors of each write, with holes. It ends at a truncation that did not happen."""
        unit = rng.choice((SECTOR_BYTES, PAGE_BYTES))
        likelihood = rng.choice((0.0, 0.5, 0.9))
        for index, (offset, chunk) in enumerate(ops):
            if chunk is None:
                return
            if index > 0 and likelihood == 0.0:
                return
            position = 0
            while position < len(chunk):
                end = min(len(chunk), (offset + position) // unit * unit + unit - offset)
                if likelihood == 0.0:
                    # Written in order up to a point: the tail is missing, without holes.
                    if rng.random() < 0.3:
                        return
                    image.write(offset + position, chunk[position:end])
                elif rng.random() < likelihood:
                    image.write(offset + position, chunk[position:end])
                position = end

    def _soil_tail(self, image: Content, rng: random.Random, model: CrashModel) -> None:
        """The size may be durable before the data: then the end has zeros, or the old content of the
        blocks."""
        largest = max((offset + len(chunk) for offset, chunk in self.pending if chunk is not None), default=0)
        chance = rng.random()
        if largest > image.size and chance < model.zero_tail + model.garbage_tail:
            end = rng.randint(image.size + 1, largest)
            if chance < model.zero_tail:
                image.resize(end)
            else:
                image.write(image.size, rng.randbytes(end - image.size))


class Directory:
    __slots__ = ("durable", "entries", "mtime_ms")

    def __init__(self) -> None:
        self.entries: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}
        self.mtime_ms = 0


Node: TypeAlias = File | Directory
_Change: TypeAlias = tuple[Directory, str, Node | None]


class Volume:
    """One host's file system. It outlives the processes that use it."""

    def __init__(self, capacity_bytes: int | None = None) -> None:
        self.root = Directory()
        self.capacity_bytes = capacity_bytes
        self.locks: dict[str, Process] = {}
        self._journal: list[list[_Change]] = []

    def find(self, path: str) -> Node:
        node: Node = self.root
        for name in _split(path):
            if not isinstance(node, Directory):
                raise _error(errno.ENOTDIR, path)
            child = node.entries.get(name)
            if child is None:
                raise _error(errno.ENOENT, path)
            node = child
        return node

    def find_file(self, path: str) -> File:
        node = self.find(path)
        if isinstance(node, Directory):
            raise _error(errno.EISDIR, path)
        return node

    def find_directory(self, path: str) -> Directory:
        node = self.find(path)
        if not isinstance(node, Directory):
            raise _error(errno.ENOTDIR, path)
        return node

    def create(self, path: str) -> File:
        directory, name = self._parent(path)
        file = File()
        self._change((directory, name, file))
        return file

    def mkdir(self, path: str) -> None:
        directory, name = self._parent(path)
        if name in directory.entries:
            raise _error(errno.EEXIST, path)
        self._change((directory, name, Directory()))

    def unlink(self, path: str) -> None:
        self.find_file(path)
        self._change((*self._parent(path), None))

    def rmdir(self, path: str) -> None:
        if self.find_directory(path).entries:
            raise _error(errno.ENOTEMPTY, path)
        self._change((*self._parent(path), None))

    def rename(self, old: str, new: str) -> None:
        node = self.find(old)
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        replaced = target.entries.get(new_name)
        if replaced is node:
            return
        if isinstance(node, Directory):
            if isinstance(replaced, File):
                raise _error(errno.ENOTDIR, new)
            if replaced is not None and replaced.entries:
                raise _error(errno.ENOTEMPTY, new)
        elif isinstance(replaced, Directory):
            raise _error(errno.EISDIR, new)
        self._change((source, old_name, None), (target, new_name, node))

    def sync_directory(self, directory: Directory) -> None:
        remaining = []
        for changes in self._journal:
            if any(changed is directory for changed, _, _ in changes):
                _make_durable(changes)
            else:
                remaining.append(changes)
        self._journal = remaining

    def sync_all(self) -> None:
        """Sync everything, as a clean shutdown of the machine does."""
        for changes in self._journal:
            _make_durable(changes)
        self._journal.clear()
        for file in self.files().values():
            file.sync()

    def crash(self, rng: random.Random, model: CrashModel) -> None:
        """Power loss: unsynced data survives partly, and the durable content becomes the image."""
        for changes in self._journal[: rng.randint(0, len(self._journal))]:
            _make_durable(changes)
        self._journal.clear()
        self._reload(self.root, rng, model)

    def files(self) -> dict[str, File]:
        """All reachable files by path."""
        found: dict[str, File] = {}
        _collect(self.root, "", found, durable=False)
        return found

    def durable_files(self) -> dict[str, File]:
        """All files that certainly survive a power loss, by their durable path."""
        found: dict[str, File] = {}
        _collect(self.root, "", found, durable=True)
        return found

    def used_bytes(self) -> int:
        return sum(file.data.used_bytes() for file in self.files().values())

    def _parent(self, path: str) -> tuple[Directory, str]:
        *parents, name = _split(path)
        return self.find_directory("/".join(parents)), name

    def _change(self, *changes: _Change) -> None:
        for directory, name, node in changes:
            if node is None:
                del directory.entries[name]
            else:
                directory.entries[name] = node
        self._journal.append(list(changes))

    def _reload(self, directory: Directory, rng: random.Random, model: CrashModel) -> None:
        directory.entries = dict(directory.durable)
        for _, node in sorted(directory.entries.items()):
            if isinstance(node, Directory):
                self._reload(node, rng, model)
            else:
                node.crash(rng, model)


def _make_durable(changes: list[_Change]) -> None:
    for directory, name, node in changes:
        if node is None:
            directory.durable.pop(name, None)
        else:
            directory.durable[name] = node


def _collect(directory: Directory, path: str, found: dict[str, File], *, durable: bool) -> None:
    for name, node in sorted((directory.durable if durable else directory.entries).items()):
        if isinstance(node, Directory):
            _collect(node, f"{path}/{name}", found, durable=durable)
        else:
            found[f"{path}/{name}"] = node


def _split(path: str) -> list[str]:
    return [part for part in path.split("/") if part not in ("", ".")]


def _error(code: int, path: str) -> OSError:
    return OSError(code, os.strerror(code), path)
