"""Records waiting to be sent, gathered into one batch per partition at a time. Pure: no clock, no loop.

A partition's batches are sent one after the other, so that a retry can never overtake its successor.
"""

from collections import deque
from typing import Any

from odradek.core.types import TopicPartition
from odradek.records.batch import Headers, RecordTuple

RECORD_OVERHEAD_BYTES = 21
"""More than the lengths and deltas of any record take."""


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of a record's bytes in a batch, before compression."""
    size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name) * 3 + len(content or b"")
    return size


class Batch:
    """Some records of one partition. `waiters` has the one to be told about each record, `failure` why the
    last try was in vain."""

    __slots__ = (
        "created_at", "data", "failure", "in_doubt", "not_before", "records", "sequence", "size", "tp",
        "tries", "waiters",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition, created_at: float) -> None:
        self.tp = tp
        self.created_at = created_at
        self.not_before = created_at
        self.records: list[RecordTuple] = []
        self.waiters: list[Any] = []
        self.size = 0
        self.tries = 0
        self.sequence = -1
        self.in_doubt = False
        self.failure: Exception | None = None
        self.data: bytearray | None = None


class PartitionQueue:
    """The batches of one partition: the first may be under way, the last may still grow."""

    __slots__ = ("_batch_bytes", "batches", "in_flight", "next_sequence", "tp")

    def __init__(self, tp: TopicPartition, batch_bytes: int) -> None:
        self.tp = tp
        self.batches: deque[Batch] = deque()
        self.in_flight = False
        self.next_sequence = 0
        self._batch_bytes = batch_bytes

    def add(self, record: RecordTuple, size: int, waiter: Any, now: float) -> None:
        last = self.batches[-1] if self.batches else None
        if last is None or last.data is not None or last.size + size > self._batch_bytes:
            last = Batch(self.tp, now)
            self.batches.append(last)
        last.records.append(record)
        last.waiters.append(waiter)
        last.size += size

    def ready_at(self, linger_s: float) -> float | None:
        """When the first batch may be sent: at once if it is full or was sent before; None if none may."""
        if self.in_flight or not self.batches:
            return None
        first = self.batches[0]
        if first.data is not None or len(self.batches) > 1 or first.size >= self._batch_bytes:
            return first.not_before
        return max(first.not_before, first.created_at + linger_s)

    def delivered(self, batch: Batch) -> None:
        """The broker has it: the next batch takes the sequence that follows."""
        assert self.batches[0] is batch
        self.next_sequence = (self.next_sequence + len(batch.records)) & 0x7FFFFFFF
        self.batches.popleft()

    def dropped(self, batch: Batch) -> None:
        """The broker does not have it and never will."""
        assert self.batches[0] is batch
        self.batches.popleft()
