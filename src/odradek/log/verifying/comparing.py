"""Compares two replicas of a partition batch by batch, independent of their segment boundaries.

Replicas must have the same batches, byte for byte. Offset, length, leader epoch and CRC show whether they do.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.log.names import LOG_SUFFIX, file_name, offset_of
from odradek.log.segments.batch_pieces import pieces
from odradek.records.header import BatchMeta
from odradek.runtime.api import Disk


class Located(NamedTuple):
    """A batch and its position."""

    file: str
    position: int
    batch: BatchMeta


class Unreadable(NamedTuple):
    """A position without a valid batch where one must be."""

    file: str
    position: int
    problem: str


class Difference(NamedTuple):
    """A range of offsets (inclusive) on which two replicas differ, and the first item of each there, if
    any."""

    first_offset: int
    last_offset: int
    what: str
    a: Located | Unreadable | None
    b: Located | Unreadable | None


class Replica:
    """The batches of a partition's directory, and the positions without a valid one."""

    def __init__(self, disk: Disk, path: str, on_bytes: Callable[[int], None]) -> None:
        self._disk = disk
        self._path = path
        self._on_bytes = on_bytes
        self._bases = [
            offset
            for name in disk.listdir(path)
            if name.endswith(LOG_SUFFIX) and (offset := offset_of(name)) is not None
        ]

    def __iter__(self) -> Iterator[Located | Unreadable]:
        for base_offset in self._bases:
            file = f"{self._path}/{file_name(base_offset, LOG_SUFFIX)}"
            for piece in pieces(self._disk, file, self._on_bytes):
                for batch in piece.batches:
                    yield Located(file, piece.start + batch.position, batch)
                if piece.bad is not None:
                    yield Unreadable(file, piece.bad.position, piece.bad.problem)


class _Walk:
    """A position in a replica: the current batch, and what could not be read directly before it."""

    def __init__(self, name: str, replica: Replica) -> None:
        self.name = name
        self.here: Located | None = None
        self.unread: Unreadable | None = None
        self.is_told = False
        self._last_offset = -1
        self._found = iter(replica)

    def advance(self) -> None:
        if self.here is not None:
            self._last_offset = self.here.batch.last_offset
        self.here = self.unread = None
        self.is_told = False
        for found in self._found:
            if isinstance(found, Located):
                self.here = found
                return
            self.unread = self.unread or found

    @property
    def gap(self) -> tuple[int, int]:
        """The offsets of the unreadable part, from its neighbours."""
        first = self._last_offset + 1
        return first, first if self.here is None else max(first, self.here.batch.base_offset - 1)


class _Runs:
    """Collects differences. Consecutive ones of the same kind become one."""

    def __init__(self) -> None:
        self.all: list[Difference] = []
        self._going_on = False

    def agree(self) -> None:
        self._going_on = False

    def add(self, what: str, a: Located | Unreadable | None, b: Located | Unreadable | None) -> None:
        present = [found.batch for found in (a, b) if isinstance(found, Located)]
        first = min(batch.base_offset for batch in present)
        self._add(Difference(first, max(batch.last_offset for batch in present), what, a, b))

    def add_unread(self, walk: _Walk) -> None:
        """Add an unreadable part of one replica that no difference includes yet."""
        if walk.unread is not None and not walk.is_told:
            a, b = (walk.unread, None) if walk.name == "A" else (None, walk.unread)
            self._going_on = False
            self._add(Difference(*walk.gap, _unread(walk), a, b))
            self._going_on = False

    def _add(self, difference: Difference) -> None:
        if self._going_on and self.all[-1].what == difference.what:
            self.all[-1] = self.all[-1]._replace(last_offset=difference.last_offset)
        else:
            self.all.append(difference)
        self._going_on = True


def compare(replica_a: Replica, replica_b: Replica) -> list[Difference]:
    """The differences of two replicas. Batches that only one has at its start or end are named as such."""
    runs = _Runs()
    a, b = _Walk("A", replica_a), _Walk("B", replica_b)
    met = False

    def advance(walk: _Walk) -> None:
        runs.add_unread(walk)
        walk.advance()

    a.advance()
    b.advance()
    while a.here is not None or b.here is not None:
        x, y = a.here, b.here
        if y is None or (x is not None and x.batch.last_offset < y.batch.base_offset):
            runs.add(_alone(a, b, met), x, b.unread)
            advance(a)
        elif x is None or y.batch.last_offset < x.batch.base_offset:
            runs.add(_alone(b, a, met), a.unread, y)
            advance(b)
        else:
            met = True
            what = _difference(x.batch, y.batch)
            if what is None:
                runs.agree()
            else:
                runs.add(what, x, y)
            x_end, y_end = x.batch.last_offset, y.batch.last_offset
            if x_end <= y_end:
                advance(a)
            if y_end <= x_end:
                advance(b)
    runs.add_unread(a)
    runs.add_unread(b)
    return runs.all


def _unread(walk: _Walk) -> str:
    assert walk.unread is not None
    return f"{walk.unread.problem} in {walk.name}"


def _alone(one: _Walk, other: _Walk, met: bool) -> str:
    """Why only one replica has a batch."""
    if other.unread is not None:
        other.is_told = True
        return _unread(other)
    at_end = other.here is None
    if not met and not at_end:
        return f"only {one.name} starts here"
    return f"only {one.name} continues" if at_end else f"only {one.name} has them"


def _difference(x: BatchMeta, y: BatchMeta) -> str | None:
    if (x.base_offset, x.last_offset) != (y.base_offset, y.last_offset):
        return "other batches"
    if x.partition_leader_epoch != y.partition_leader_epoch:
        return "other leader epoch"
    if (x.crc, x.size, x.magic) != (y.crc, y.size, y.magic):
        return "other bytes"
    return None
