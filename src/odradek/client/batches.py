"""Collects records into batches per partition, and decides which batch is sent next. Pure: no clock, no loop.

An idempotent producer has at most five batches in flight. A retry is sent alone and first, so that later
batches cannot overtake it.
"""

from collections import deque
from enum import Enum
from itertools import islice
from typing import Any

from odradek.core.types import (
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    ProducerIdAndEpoch,
    TopicPartition,
)
from odradek.records.batch import Headers, RecordTuple

RECORD_OVERHEAD_BYTES = 21
"""More than the lengths and deltas of any record take."""

MAX_IN_FLIGHT = 5
"""So many batches of a producer a broker remembers, and recognizes when they come again."""

_SEQUENCE_MASK = 0x7FFFFFFF


NOBODY = ProducerIdAndEpoch(NO_PRODUCER_ID, NO_PRODUCER_EPOCH)


def record_size(key: bytes | None, value: bytes | None, headers: Headers) -> int:
    """An upper bound of a record's bytes in a batch, before compression."""
    size = RECORD_OVERHEAD_BYTES + len(key or b"") + len(value or b"")
    for name, content in headers:
        size += 10 + len(name) * 3 + len(content or b"")
    return size


class Stage(Enum):
    """FRESH has no sequence yet, RETRY has one and waits; LOST is given up with its sequence in doubt, and
    REFUSED with the certainty that no broker has it."""

    FRESH = "fresh"
    IN_FLIGHT = "in flight"
    RETRY = "retry"
    LOST = "lost"
    REFUSED = "refused"


class Batch:
    """Records of one partition. `waiters` has the future of each record, `failure` the error of the last
    attempt. `in_doubt`: a broker may have written it without an answer."""

    __slots__ = (
        "created_at", "data", "failure", "identity", "in_doubt", "not_before", "records", "sequence", "size",
        "stage", "tp", "tries", "waiters",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition, created_at: float) -> None:
        self.tp = tp
        self.created_at = created_at
        self.not_before = created_at
        self.records: list[RecordTuple] = []
        self.waiters: list[Any] = []
        self.size = 0
        self.tries = 0
        self.stage = Stage.FRESH
        self.identity = NOBODY
        self.sequence = NO_SEQUENCE
        self.in_doubt = False
        self.failure: Exception | None = None
        self.data: bytearray | None = None


class PartitionQueue:
    """The batches of one partition, in order: those with a sequence first, the last may still grow.

    A batch that was given up after it got a sequence leaves a gap. It stays until those before it are
    acknowledged; then, unless a later one turns out to be in the log, `restart` gives new sequences to all
    that is left, under a new identity: no late copy of an old one can slip in between.
    """

    __slots__ = (
        "_batch_bytes", "_broken", "_known_id", "_max_in_flight", "batches", "identity", "next_sequence",
        "tp",
    )  # fmt: skip

    def __init__(self, tp: TopicPartition, batch_bytes: int, max_in_flight: int = 1) -> None:
        self.tp = tp
        self.batches: deque[Batch] = deque()
        self.identity = NOBODY
        self.next_sequence = 0
        self._broken = False
        self._known_id = NO_PRODUCER_ID
        self._batch_bytes = batch_bytes
        self._max_in_flight = max_in_flight

    def add(self, record: RecordTuple, size: int, waiter: Any, now: float) -> None:
        last = self.batches[-1] if self.batches else None
        if last is None or last.stage is not Stage.FRESH or last.size + size > self._batch_bytes:
            last = Batch(self.tp, now)
            self.batches.append(last)
        last.records.append(record)
        last.waiters.append(waiter)
        last.size += size

    # What goes next

    def candidate(self) -> Batch | None:
        """The batch that may be sent next, if any may be sent now."""
        if self._broken or (self.batches and self.batches[0].stage is Stage.REFUSED):
            return None
        gaps = under_way = 0
        for batch in self.batches:
            if batch.stage is Stage.IN_FLIGHT:
                under_way += 1
            elif batch.stage is Stage.LOST and not under_way:
                gaps += 1
            elif batch.stage is Stage.RETRY:
                return batch if not under_way else None
            elif batch.stage is Stage.FRESH:
                return batch if not gaps and under_way < self._limit else None
            else:
                return None
        return None

    @property
    def _limit(self) -> int:
        """A leader that does not know a producer takes any sequence for its first: until it has taken the
        right one, nothing else is sent to it."""
        return self._max_in_flight if self._known_id == self.identity.producer_id else 1

    def ready_at(self, linger_s: float) -> float | None:
        """When the next batch may be sent: at once if it is full or was sent before; None if none may."""
        batch = self.candidate()
        if batch is None:
            return None
        if batch.stage is Stage.RETRY or batch is not self.batches[-1] or batch.size >= self._batch_bytes:
            return batch.not_before
        return max(batch.not_before, batch.created_at + linger_s)

    def wants(self, identity: ProducerIdAndEpoch) -> bool:
        """Whether a new batch could be sent with this identity: not while batches of another identity are in
        flight."""
        return self.identity == identity or not any(_has_sequence(batch) for batch in self.batches)

    def take(self, batch: Batch, identity: ProducerIdAndEpoch) -> None:
        """The candidate is being sent; a fresh one gets its sequence."""
        if batch.stage is Stage.FRESH and identity != NOBODY:
            if self.identity != identity:
                assert self.wants(identity)
                self.identity, self.next_sequence = identity, 0
            batch.identity, batch.sequence = identity, self.next_sequence
            self.next_sequence = (self.next_sequence + len(batch.records)) & _SEQUENCE_MASK
        batch.stage = Stage.IN_FLIGHT

    # What became of it

    def delivered(self, batch: Batch) -> None:
        """The broker has it, and so all that was lost from sight before it."""
        at = self.batches.index(batch)
        lost = [before for before in islice(self.batches, at) if before.stage is Stage.LOST]
        for found in (*lost, batch):
            self.batches.remove(found)
        self._known_id = batch.identity.producer_id

    def put_back(self, batch: Batch, not_before: float) -> None:
        """It is to be sent again, with the same sequence."""
        if batch.stage is Stage.IN_FLIGHT:
            batch.stage = Stage.RETRY
        batch.not_before = not_before

    def before(self, batch: Batch) -> list[Batch]:
        """The batches before it that are not acknowledged."""
        return list(islice(self.batches, self.batches.index(batch)))

    def break_off(self) -> None:
        """The broker's idea of the next sequence is another: nothing may be sent before a restart."""
        self._broken = True

    def give_up(self, batch: Batch) -> None:
        """It will not be sent again."""
        following = islice(self.batches, self.batches.index(batch) + 1, None)
        last = not any(_has_sequence(other) for other in following)
        if batch.sequence == NO_SEQUENCE:
            self.batches.remove(batch)
        elif last and not batch.in_doubt:
            self.batches.remove(batch)
            self.next_sequence = batch.sequence
        else:
            batch.stage = Stage.LOST if batch.in_doubt else Stage.REFUSED

    @property
    def in_flight(self) -> bool:
        return any(batch.stage is Stage.IN_FLIGHT for batch in self.batches)

    @property
    def has_gap(self) -> bool:
        """Were sequences given away that no broker may ever see?"""
        return self._broken or any(batch.stage in (Stage.LOST, Stage.REFUSED) for batch in self.batches)

    @property
    def restart_due(self) -> bool:
        """Whether there is a gap at the front with no batch in flight, so that its cause cannot be found
        out."""
        if self.in_flight:
            return False
        if self._broken:
            return True
        if not self.batches or self.batches[0].stage not in (Stage.LOST, Stage.REFUSED):
            return False
        return self.batches[0].stage is Stage.REFUSED or not any(
            batch.stage is Stage.RETRY for batch in self.batches
        )

    def restart(self) -> None:
        """Forget gaps and sequences; what is left takes new ones from the next identity."""
        assert not self.in_flight
        self.batches = deque(b for b in self.batches if b.stage in (Stage.RETRY, Stage.FRESH))
        for batch in self.batches:
            batch.stage, batch.identity, batch.sequence, batch.data = Stage.FRESH, NOBODY, NO_SEQUENCE, None
            batch.in_doubt = False
        self.identity = NOBODY
        self._broken = False


def _has_sequence(batch: Batch) -> bool:
    return batch.stage is not Stage.FRESH
