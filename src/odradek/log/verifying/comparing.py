"""Comparing two replicas of a partition, batch by batch, wherever their segments begin and end.

Replicas hold the same batches, byte for byte: offset, length, leader epoch and CRC tell whether they do.
"""

from collections.abc import Callable, Iterator
from typing import NamedTuple

from odradek.log.batch_pieces import pieces
from odradek.log.names import LOG_SUFFIX, file_name, offset_of
from odradek.records.header import BatchMeta
from odradek.runtime.api import Disk


class Located(NamedTuple):
    """A batch and where it stands."""

    file: str
    position: int
    batch: BatchMeta


class Difference(NamedTuple):
    """Offsets on which two replicas do not agree, both included; the first batch of each, if any."""

    first_offset: int
    last_offset: int
    what: str
    a: Located | None
    b: Located | None


class Replica:
    """The batches of a partition's directory. What is no good batch is left out, as if it were not there."""

    def __init__(self, disk: Disk, path: str, on_bytes: Callable[[int], None]) -> None:
        self._disk = disk
        self._path = path
        self._on_bytes = on_bytes
        self._bases = [
            offset
            for name in disk.listdir(path)
            if name.endswith(LOG_SUFFIX) and (offset := offset_of(name)) is not None
        ]

    def __iter__(self) -> Iterator[Located]:
        for base_offset in self._bases:
            file = f"{self._path}/{file_name(base_offset, LOG_SUFFIX)}"
            for piece in pieces(self._disk, file, self._on_bytes):
                for batch in piece.batches:
                    yield Located(file, piece.start + batch.position, batch)


class _Runs:
    """Differences, those of the same kind that follow each other as one."""

    def __init__(self) -> None:
        self.all: list[Difference] = []
        self._going_on = False

    def agree(self) -> None:
        self._going_on = False

    def add(self, what: str, a: Located | None, b: Located | None) -> None:
        present = [located.batch for located in (a, b) if located is not None]
        first = min(batch.base_offset for batch in present)
        last = max(batch.last_offset for batch in present)
        if self._going_on and self.all[-1].what == what:
            self.all[-1] = self.all[-1]._replace(last_offset=last)
        else:
            self.all.append(Difference(first, last, what, a, b))
        self._going_on = True


def compare(a: Replica, b: Replica) -> list[Difference]:
    """Where two replicas differ. What only one of them has at its beginning or end is told as such."""
    runs = _Runs()
    left, right = iter(a), iter(b)
    x, y = next(left, None), next(right, None)
    met = False
    while x is not None or y is not None:
        if y is None or (x is not None and x.batch.last_offset < y.batch.base_offset):
            runs.add(_alone("A", met, y is None), x, None)
            x = next(left, None)
        elif x is None or y.batch.last_offset < x.batch.base_offset:
            runs.add(_alone("B", met, x is None), None, y)
            y = next(right, None)
        else:
            met = True
            what = _difference(x.batch, y.batch)
            if what is None:
                runs.agree()
            else:
                runs.add(what, x, y)
            x_end, y_end = x.batch.last_offset, y.batch.last_offset
            if x_end <= y_end:
                x = next(left, None)
            if y_end <= x_end:
                y = next(right, None)
    return runs.all


def _alone(which: str, met: bool, at_end: bool) -> str:
    if not met and not at_end:
        return f"only {which} begins here"
    return f"only {which} goes on" if at_end else f"only {which} has them"


def _difference(x: BatchMeta, y: BatchMeta) -> str | None:
    if (x.base_offset, x.last_offset) != (y.base_offset, y.last_offset):
        return "other batches"
    if x.partition_leader_epoch != y.partition_leader_epoch:
        return "other leader epoch"
    if (x.crc, x.size, x.magic) != (y.crc, y.size, y.magic):
        return "other bytes"
    return None
