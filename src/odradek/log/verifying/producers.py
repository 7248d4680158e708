"""Replays the producers of a log, and checks snapshots and transaction indexes against them. Pure.

If records are missing, below the log start or after compaction, a snapshot may have more than the replay:
then only common fields are compared. If records below the log start still exist, a snapshot may have less,
because a recovery starts at the log start.
"""

from collections.abc import Iterable, Sequence
from typing import Final

from odradek.core.errors import KafkaError
from odradek.core.types import NO_OFFSET, Buffer
from odradek.log.producers.entry import ProducerEntry
from odradek.log.producers.markers import read_marker
from odradek.log.producers.snapshot import snapshot_fields
from odradek.log.producers.state import ProducerState
from odradek.log.segments.txn_index import AbortedTxn
from odradek.log.verifying.findings import Findings
from odradek.records.header import BatchMeta

_SILENT_MS: Final = 3_600_000
"""A producer that was silent for longer may have expired. `producer.id.expiration.ms` is not known here."""
_FIELDS: Final = (
    "producer epoch",
    "last sequence",
    "last offset",
    "offset delta",
    "last timestamp",
    "coordinator epoch",
    "first offset of its transaction",
)
BELIEVED: Final = (
    "used as it is: it decides which retries are duplicates. Remove the file to rebuild it from the log"
)
TXN_BELIEVED: Final = (
    "used as it is: read_committed consumers depend on it. Remove the file and recover the log"
)


class Replay:
    """The producers before the next batch."""

    def __init__(
        self, start_offset: int, known: Iterable[ProducerEntry] = (), log_start_offset: int = 0
    ) -> None:
        self._state = ProducerState()
        self._state.load(known, start_offset)
        self._recovered = ProducerState()
        self.start_offset = start_offset
        self.log_start_offset = log_start_offset
        self.is_whole = start_offset == 0 and log_start_offset <= start_offset
        self.has_gaps = False
        self.aborted: list[AbortedTxn] = []

    def lost_track(self) -> None:
        """Records are missing or unreadable."""
        self.is_whole = False
        self.has_gaps = True

    def take(self, data: Buffer, batch: BatchMeta) -> str | None:
        """Replay a batch. Returns why it cannot be replayed, or None."""
        try:
            marker = read_marker(data, batch) if batch.is_control else None
            completed = self._state.replay(batch, marker)
        except KafkaError as e:
            self.lost_track()
            return str(e)
        if completed is not None:
            if completed.aborted:
                stable = self._state.stable_offset_after(completed)
                self.aborted.append(
                    AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                )
            self._state.complete(completed)
        if self.log_start_offset > self.start_offset and batch.last_offset >= self.log_start_offset:
            completed = self._recovered.replay(batch, marker)
            if completed is not None:
                self._recovered.complete(completed)
        return None

    def entries(self) -> dict[int, ProducerEntry]:
        return self._state.entries

    def is_as_recovered(self, entry: ProducerEntry) -> bool:
        """Whether this is the result of a replay from the log start."""
        recovered = self._recovered.entries.get(entry.producer_id)
        return recovered is not None and snapshot_fields(recovered) == snapshot_fields(entry)


def check_snapshot(
    file: str, entries: Sequence[ProducerEntry], written_ms: int, replay: Replay, into: Findings
) -> None:
    """Check a snapshot against the replay up to its offset."""
    replayed = replay.entries()
    for entry in entries:
        known = replayed.get(entry.producer_id)
        if known is None:
            if not replay.has_gaps and entry.last_offset >= replay.start_offset:
                _report(
                    into,
                    file,
                    entry.producer_id,
                    "no such producer in the log",
                    f"offset {entry.last_offset}",
                )
        elif replay.is_whole:
            _compare(into, file, snapshot_fields(known), snapshot_fields(entry), entry.producer_id)
        elif known.last_offset >= entry.last_offset and not replay.is_as_recovered(entry):
            _compare(
                into,
                file,
                snapshot_fields(known)[1:3],
                snapshot_fields(entry)[1:3],
                entry.producer_id,
                _FIELDS[1:3],
            )
    if replay.is_whole:
        told = {entry.producer_id for entry in entries}
        for producer_id, known in replayed.items():
            is_open = known.current_txn_first_offset != NO_OFFSET
            if producer_id not in told and (is_open or written_ms - known.last_timestamp < _SILENT_MS):
                _report(into, file, producer_id, f"its last offset {known.last_offset}", "no such producer")


def _compare(
    into: Findings,
    file: str,
    expected: tuple[int, ...],
    found: tuple[int, ...],
    producer_id: int,
    fields: tuple[str, ...] = _FIELDS,
) -> None:
    for name, wanted, got in zip(fields, expected, found, strict=True):
        if wanted != got:
            _report(into, file, producer_id, f"{name} {wanted}", f"{name} {got}")
            return


def _report(into: Findings, file: str, producer_id: int, expected: str, found: str) -> None:
    into.add(file, None, "disagrees with the log", f"of producer {producer_id}: {expected}", found, BELIEVED)


def check_aborted(
    file: str, entry_bytes: int, indexed: Sequence[AbortedTxn], replay: Replay, into: Findings
) -> None:
    """Check the transaction index of a segment against the abort markers in it."""
    replayed, replay.aborted = replay.aborted, []
    if replay.has_gaps:
        return
    expected = {txn.last_offset: txn for txn in replayed}
    for at, txn in enumerate(indexed):
        wanted = expected.pop(txn.last_offset, None)
        if txn.first_offset < replay.start_offset:
            continue  # it began in deleted records
        if wanted is None:
            wanted_text = f"no transaction that ends at {txn.last_offset}"
        elif txn == wanted or (txn[:3] == wanted[:3] and txn.last_stable_offset < replay.start_offset):
            continue
        else:
            wanted_text = _words(wanted)
        into.add(file, at * entry_bytes, "disagrees with the log", wanted_text, _words(txn), TXN_BELIEVED)
    for txn in expected.values():
        if txn.first_offset < replay.log_start_offset:
            continue  # its records are deleted
        into.add(file, None, "incomplete", _words(txn), "nothing", TXN_BELIEVED)


def _words(txn: AbortedTxn) -> str:
    return (
        f"producer {txn.producer_id} aborted {txn.first_offset} to {txn.last_offset}, "
        f"stable up to {txn.last_stable_offset}"
    )
