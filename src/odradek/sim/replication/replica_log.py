"""ReplicaLog: what a checker knows of the log of one replica, batch by batch. Pure.

It outlives the node: a killed process leaves its records to the kernel. After a power loss nobody knows what
is left until the node has opened its logs again.
"""

from collections.abc import Iterable, Sequence
from enum import Enum
from typing import NamedTuple

from odradek.core.types import NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE


class Batch(NamedTuple):
    """A batch of records, by the fields that identify it. `end` is the offset behind its last record."""

    base: int
    end: int
    crc: int
    epoch: int = 0
    producer_id: int = NO_PRODUCER_ID
    producer_epoch: int = NO_PRODUCER_EPOCH
    sequence: int = NO_SEQUENCE


class Standing(Enum):
    """What a replica may be held to."""

    WHOLE = "whole"
    """It has everything that it ever appended and did not truncate."""
    AWAY = "away"
    """It lost its power or its directory, and has not registered again: nothing is known."""
    BACK = "back"
    """It has registered since, and its log is open: it may have lost records."""


class ReplicaLog:
    """`matched` counts the fixed batches that this log is known to have. `is_excused`: a loss of power or of
    its directory may have cost it any of them."""

    __slots__ = ("crcs", "end", "is_excused", "led_epoch", "log", "matched", "standing", "start")

    def __init__(self) -> None:
        self.log: list[Batch] = []
        self.crcs: dict[int, int] = {}
        self.start = 0
        self.end = 0
        self.matched = 0
        self.standing = Standing.WHOLE
        self.is_excused = False
        self.led_epoch = -1

    @property
    def is_known(self) -> bool:
        return self.standing is not Standing.AWAY

    def lost(self, *, is_excused: bool) -> None:
        """Power or directory were lost: nobody knows what is left."""
        self.standing = Standing.AWAY
        self.is_excused |= is_excused

    def returned(self, batches: Iterable[Batch], start: int, end: int) -> None:
        """The node has opened the log of its disk."""
        self.replace(batches, start, end)
        if self.standing is Standing.AWAY:
            self.standing = Standing.BACK

    def rejoined(self) -> None:
        """It has everything again, and counts as in sync."""
        self.standing = Standing.WHOLE
        self.is_excused = False

    def append(self, batches: Iterable[Batch]) -> None:
        for batch in batches:
            assert batch.base >= self.end, f"{batch} is appended at {self.end}"
            self.log.append(batch)
            self.crcs[batch.base] = batch.crc
            self.end = batch.end

    def replace(self, batches: Iterable[Batch], start: int, end: int) -> None:
        """The log was truncated, or read again from the disk."""
        self.log, self.crcs, self.matched = [], {}, 0
        self.start, self.end = start, 0
        self.append(batches)
        assert self.end <= end
        self.end = end

    def match(self, fixed: Sequence[Batch], *, is_compacted: bool) -> bool:
        """Whether the log has all that is fixed above its start. A compacted log may lack any of it."""
        at, crcs, start, end = self.matched, self.crcs, self.start, self.end
        while at < len(fixed):
            base, behind, crc = fixed[at][:3]
            if behind > start and not (behind <= end if is_compacted else crcs.get(base) == crc):
                break
            at += 1
        self.matched = at
        return at == len(fixed)

    def between(self, start: int, end: int) -> list[Batch]:
        """The batches from an offset that end at another one or before."""
        low = len(self.log)
        while low and self.log[low - 1].end > start:
            low -= 1
        return [batch for batch in self.log[low:] if batch.end <= end]
