"""ProducerState: the producers of a partition and their transactions. Appends are checked against it. Pure.

An append stages its changes first. They take effect when its bytes are written.
"""

from bisect import insort
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Final, NamedTuple

from odradek.core.types import NO_OFFSET
from odradek.log.producers.entry import ProducerBatch, ProducerEntry
from odradek.log.producers.markers import Marker
from odradek.log.producers.rules import AppendOrigin, ExpectedStart, append_data, append_marker, check_start
from odradek.records.header import CONTROL_FLAG, MAX_INT32, BatchMeta

LATE_TRANSACTION_BUFFER_MS: Final = 5 * 60 * 1000
_MAX_STARTS: Final = 10_000
MAX_PRODUCERS: Final = 100_000
"""The maximum per partition. Above it the producers that were silent longest are removed, a tenth at a
time."""


class CompletedTxn(NamedTuple):
    """A transaction that ended with a marker at `last_offset`."""

    producer_id: int
    first_offset: int
    last_offset: int
    aborted: bool


class StagedProducers:
    """The changes of an append that is not written yet. A stage on top of another one sees its changes."""

    __slots__ = ("_known", "completed", "entries", "started", "starts")

    def __init__(self, below: "StagedProducers | ProducerState") -> None:
        self._known = below.get
        self.starts: dict[int, ExpectedStart] = below.starts
        self.entries: dict[int, ProducerEntry] = {}
        self.started: tuple[tuple[int, int], ...] = ()
        self.completed: tuple[CompletedTxn, ...] = ()

    def get(self, producer_id: int) -> ProducerEntry | None:
        return self.entries.get(producer_id) or self._known(producer_id)

    def add(
        self,
        batch: BatchMeta,
        base_offset: int,
        origin: AppendOrigin | None,
        marker: Marker | None = None,
        transaction_version: int = 0,
    ) -> ProducerBatch | None:
        """Check a batch, with its marker if any, and stage its changes. Raises KafkaError.

        A duplicate of a client's batch changes nothing: then the result is its first append.
        """
        producer_id = batch.producer_id
        known = self.entries.get(producer_id) or self._known(producer_id)
        if known is None:
            known = ProducerEntry(producer_id)
            if origin is AppendOrigin.CLIENT and producer_id in self.starts:
                check_start(batch, self.starts[producer_id])
        if not batch.attributes & CONTROL_FLAG:
            if origin is AppendOrigin.CLIENT and known.batches:
                expected = (known.batches[-1].last_sequence + 1) & MAX_INT32
                if batch.base_sequence != expected:
                    duplicate = known.find_duplicate(
                        batch.producer_epoch, batch.base_sequence, batch.last_sequence
                    )
                    if duplicate is not None:
                        return duplicate
            entry = append_data(known, batch, base_offset, origin)
            if entry.current_txn_first_offset != known.current_txn_first_offset:
                self.started += ((base_offset, producer_id),)
        elif marker is None:
            return None
        else:
            entry = append_marker(
                known, batch, marker.end, marker.timestamp, base_offset, origin, transaction_version
            )
            first_offset = known.current_txn_first_offset
            if first_offset != NO_OFFSET:
                aborted = not marker.end.committed
                self.completed += (CompletedTxn(producer_id, first_offset, base_offset, aborted),)
        self.entries[producer_id] = entry
        return None

    def merge(self, above: "StagedProducers") -> None:
        self.entries.update(above.entries)
        self.started += above.started
        self.completed += above.completed


class ProducerState:
    """The producers of a partition, and the transactions that hold back its last stable offset."""

    __slots__ = ("_ongoing", "_unreplicated", "end_offset", "entries", "get", "starts")

    def __init__(self) -> None:
        self.entries: Final[dict[int, ProducerEntry]] = {}
        self.get: Final[Callable[[int], ProducerEntry | None]] = self.entries.get
        self.end_offset = 0
        self.starts: Final[dict[int, ExpectedStart]] = {}
        self._ongoing: dict[int, int] = {}
        self._unreplicated: list[tuple[int, int]] = []

    def load(self, entries: Iterable[ProducerEntry], end_offset: int) -> None:
        """Replace the state with a snapshot at an offset."""
        self.entries.clear()
        self.entries.update((entry.producer_id, entry) for entry in entries)
        open_txns = [
            (entry.current_txn_first_offset, entry.producer_id)
            for entry in self.entries.values()
            if entry.current_txn_first_offset != NO_OFFSET
        ]
        self._ongoing = dict(sorted(open_txns))
        self._unreplicated = []
        self.end_offset = end_offset

    def expect_start(self, producer_id: int, epoch: int, sequence: int) -> None:
        """Require an unknown producer to start at a sequence, or at the smallest of several."""
        start = self.starts.pop(producer_id, None)
        if start is not None and start.epoch == epoch:
            sequence = min(sequence, start.sequence)
        self.starts[producer_id] = ExpectedStart(epoch, sequence)
        if len(self.starts) > _MAX_STARTS:
            del self.starts[next(iter(self.starts))]

    def commit(self, staged: StagedProducers) -> None:
        """Apply the changes of an append. The caller then calls `complete` for each completed transaction."""
        if len(self.entries) > MAX_PRODUCERS // 2:
            self._make_room(staged.entries)
        self.entries.update(staged.entries)
        if self.starts:
            for producer_id in staged.entries:
                self.starts.pop(producer_id, None)
        if staged.started:
            self._ongoing.update(staged.started)

    def replay(self, batch: BatchMeta, marker: Marker | None) -> CompletedTxn | None:
        """Apply a batch from the log. Returns the transaction that it ended, for `complete`."""
        if batch.attributes & CONTROL_FLAG:
            staged = StagedProducers(self)
            staged.add(batch, batch.base_offset, None, marker)
            self.commit(staged)
            return staged.completed[0] if staged.completed else None
        producer_id = batch.producer_id
        known = self.entries.get(producer_id) or ProducerEntry(producer_id)
        if len(self.entries) > MAX_PRODUCERS // 2:
            self._make_room((producer_id,))
        self.entries[producer_id] = entry = append_data(known, batch, batch.base_offset, None)
        if entry.current_txn_first_offset != known.current_txn_first_offset:
            self._ongoing[batch.base_offset] = producer_id
        return None

    def _make_room(self, writers: Iterable[int]) -> None:
        """Keep the entries ordered by their last write, and remove the oldest when there are too many.

        Like expired producers, they may return with any sequence.
        """
        for producer_id in writers:
            self.entries.pop(producer_id, None)
        if len(self.entries) >= MAX_PRODUCERS:
            idle = (e.producer_id for e in self.entries.values() if e.current_txn_first_offset == NO_OFFSET)
            for producer_id in list(islice(idle, MAX_PRODUCERS // 10)):
                del self.entries[producer_id]

    def stable_offset_after(self, completed: CompletedTxn) -> int:
        """The last stable offset after a transaction is complete: the start of the next open one, or its
        end."""
        for first_offset, producer_id in self._ongoing.items():
            if producer_id != completed.producer_id:
                return first_offset
        return completed.last_offset + 1

    def complete(self, completed: CompletedTxn) -> None:
        """A transaction is decided. It stays unstable until the high watermark has passed its marker."""
        del self._ongoing[completed.first_offset]
        insort(self._unreplicated, (completed.first_offset, completed.last_offset))

    @property
    def first_unstable_offset(self) -> int | None:
        """The start of the first transaction that is open, or whose marker is not replicated yet."""
        first = next(iter(self._ongoing), None)
        if not self._unreplicated:
            return first
        decided = self._unreplicated[0][0]
        return decided if first is None else min(first, decided)

    @property
    def has_transactions(self) -> bool:
        return bool(self._ongoing or self._unreplicated)

    def high_watermark_moved(self, high_watermark: int) -> None:
        if self._unreplicated:
            self._unreplicated = [txn for txn in self._unreplicated if txn[1] >= high_watermark]

    def is_fenced(self, producer_id: int, epoch: int) -> bool:
        """Whether the partition has records of a later epoch of the producer."""
        known = self.entries.get(producer_id)
        return known is not None and known.producer_epoch > epoch

    def in_transaction(self, producer_id: int, epoch: int) -> bool:
        """Whether the producer has an open transaction at this epoch."""
        known = self.entries.get(producer_id)
        return (
            known is not None
            and known.producer_epoch == epoch
            and known.current_txn_first_offset != NO_OFFSET
        )

    def has_late_transaction(self, now_ms: int, max_timeout_ms: int) -> bool:
        """Whether a transaction is open longer than any timeout allows: its coordinator must have lost it."""
        latest_ms = now_ms - max_timeout_ms - LATE_TRANSACTION_BUFFER_MS
        return any(
            0 < self.entries[producer_id].last_timestamp < latest_ms for producer_id in self._ongoing.values()
        )

    def expire(self, now_ms: int, expiration_ms: int) -> int:
        """Remove producers that were silent for the expiration time and have no open transaction."""
        silent = [
            entry.producer_id
            for entry in self.entries.values()
            if entry.current_txn_first_offset == NO_OFFSET and now_ms - entry.last_timestamp >= expiration_ms
        ]
        for producer_id in silent:
            del self.entries[producer_id]
        return len(silent)
