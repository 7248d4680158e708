"""Reads a segment file piece by piece: valid batches, and positions without one."""

from collections.abc import Callable, Iterator
from os import O_RDONLY
from typing import Final, NamedTuple

from odradek.log.files import read_fully
from odradek.records.header import LOG_OVERHEAD, BatchMeta
from odradek.records.kernel import BAD_CRC, BAD_LENGTH, BAD_MAGIC, OK, PARTIAL
from odradek.records.scanning import scan
from odradek.runtime.api import Disk

_CHUNK_BYTES: Final = 4 << 20
_MAGIC_AT: Final = 16
_PROBLEMS: Final = {
    BAD_CRC: ("bad CRC", "a batch that matches its CRC"),
    BAD_LENGTH: ("no batch", "a record batch"),
    BAD_MAGIC: ("no batch", "a batch of magic 0, 1 or 2"),
    PARTIAL: ("torn batch", "a whole batch"),
}


class Bad(NamedTuple):
    """A position without a valid batch. `can_go_on`: its length seems right, and batches follow it."""

    position: int
    problem: str
    expected: str
    found: str
    can_go_on: bool


class Piece(NamedTuple):
    """Consecutive valid batches. Their positions are in `data`, which starts at `start` of the file."""

    data: memoryview
    start: int
    batches: list[BatchMeta]
    bad: Bad | None


def pieces(disk: Disk, path: str, on_bytes: Callable[[int], None] = lambda count: None) -> Iterator[Piece]:
    """The pieces of a segment file, up to bytes that are not a batch. `on_bytes` gets the progress."""
    fd = disk.open(path, O_RDONLY)
    try:
        size = disk.size(fd)
        position, wanted = 0, _CHUNK_BYTES
        while position < size:
            data = memoryview(read_fully(disk, fd, min(wanted, size - position), position))
            at = 0
            bad: Bad | None = None
            while at < len(data):
                batches, end, finding = scan(data, at)
                bad = None
                if finding == PARTIAL and position + len(data) < size:
                    finding = OK
                elif finding != OK:
                    bad = _bad(data, position, end, size, finding)
                yield Piece(data, position, batches, bad)
                at = end
                if bad is None or not bad.can_go_on:
                    break
                at += _size_at(data, end)
            if bad is not None and not bad.can_go_on:
                on_bytes(size - position)
                return
            on_bytes(at)
            wanted = _CHUNK_BYTES if at else 2 * wanted
            position += at
    finally:
        disk.close(fd)


def _size_at(data: memoryview, at: int) -> int:
    return int.from_bytes(data[at + 8 : at + 12], "big", signed=True) + LOG_OVERHEAD


def _may_begin(data: memoryview, at: int) -> bool:
    """Whether a batch may start at a position, by its length and magic."""
    return len(data) - at <= _MAGIC_AT or (_size_at(data, at) > LOG_OVERHEAD and data[at + _MAGIC_AT] <= 2)


def _bad(data: memoryview, start: int, at: int, file_size: int, finding: int) -> Bad:
    problem, expected = _PROBLEMS[finding]
    position = start + at
    rest = data[at:]
    if finding == BAD_CRC:
        size = _size_at(data, at)
        return Bad(position, problem, expected, f"{size} bytes that do not", _may_begin(data, at + size))
    if len(rest) >= LOG_OVERHEAD and not any(rest[:4096]):
        return Bad(
            position, "zeros", "a batch, or the end of the file", f"{file_size - position} bytes", False
        )
    if finding == PARTIAL:
        if len(rest) > _MAGIC_AT:
            expected = f"{_size_at(data, at)} bytes"
        return Bad(position, problem, expected, f"{file_size - position} bytes", False)
    if finding == BAD_LENGTH:
        return Bad(position, problem, expected, f"a length of {_size_at(data, at) - LOG_OVERHEAD}", False)
    return Bad(position, problem, expected, f"magic {rest[16]}", False)
