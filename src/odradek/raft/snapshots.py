"""Snapshots of the metadata log as bytes: one control batch in front, data batches, one at the end. No I/O.

control batch   SnapshotHeader, and with kraft.version 1 KRaftVersion and KRaftVoters
data batches    the records that rebuild the state, at offsets counted from 0 inside the file
control batch   SnapshotFooter: without it the file is not a snapshot
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from odradek.core.types import Buffer
from odradek.raft.control import (
    ControlRecord,
    KRaftVersionRecord,
    QuorumFacts,
    SnapshotFooterRecord,
    SnapshotHeaderRecord,
    control_batch,
    read_control_batch,
    voters_record,
)
from odradek.records.batch import BatchMeta, build_batch, iter_batches

SUFFIX = ".checkpoint"
BOOTSTRAP_FILE = "bootstrap.checkpoint"


class SnapshotId(NamedTuple):
    """Everything below an offset, and the epoch of the last record of it. Orders by offset."""

    end_offset: int
    epoch: int

    @property
    def file_name(self) -> str:
        return f"{self.end_offset:020d}-{self.epoch:010d}{SUFFIX}"


def parse_file_name(name: str) -> SnapshotId | None:
    offset, dash, epoch = name.removesuffix(SUFFIX).partition("-")
    if not name.endswith(SUFFIX) or not dash or len(offset) != 20 or len(epoch) != 10:
        return None
    return SnapshotId(int(offset), int(epoch)) if offset.isdecimal() and epoch.isdecimal() else None


class SnapshotError(ValueError):
    """A file that is no whole snapshot."""


class SnapshotBuilder:
    """Collects a snapshot's bytes; `last_timestamp_ms` is that of the last record it stands for."""

    __slots__ = ("_epoch", "_next_offset", "_now_ms", "_pieces")

    def __init__(self, epoch: int, last_timestamp_ms: int, facts: QuorumFacts, now_ms: int) -> None:
        self._epoch = epoch
        self._now_ms = now_ms
        self._next_offset = 0
        self._pieces: list[bytearray] = []
        header: list[ControlRecord] = [SnapshotHeaderRecord(last_contained_log_timestamp=last_timestamp_ms)]
        if facts.kraft_version >= 1:
            assert facts.voters is not None, "kraft.version 1 keeps its voters in the log"
            header.append(KRaftVersionRecord(k_raft_version=facts.kraft_version))
            header.append(voters_record(facts.voters))
        self._control(header)

    def _control(self, records: Sequence[ControlRecord]) -> None:
        batch = control_batch(
            records, base_offset=self._next_offset, epoch=self._epoch, timestamp_ms=self._now_ms
        )
        self._pieces.append(batch)
        self._next_offset += len(records)

    def add(self, values: Sequence[bytes]) -> None:
        """Another batch of records."""
        batch = build_batch(
            [(self._now_ms, None, value, ()) for value in values],
            base_offset=self._next_offset,
            leader_epoch=self._epoch,
        )
        self._pieces.append(batch)
        self._next_offset += len(values)

    def finish(self) -> bytes:
        self._control([SnapshotFooterRecord()])
        return b"".join(self._pieces)


class Snapshot(NamedTuple):
    """What a snapshot says of the quorum; its records were handed out while it was read."""

    facts: QuorumFacts
    last_timestamp_ms: int


def read_snapshot(data: Buffer, on_batch: Callable[[Buffer, BatchMeta], None]) -> Snapshot:
    """Read a whole snapshot, handing each data batch over. SnapshotError where the end is missing."""
    facts = QuorumFacts()
    last_timestamp_ms = -1
    finished = False
    for batch in iter_batches(data):
        if not batch.is_control:
            on_batch(data, batch)
            continue
        records = read_control_batch(data, batch)
        facts = facts.after(records)
        for record in records:
            if isinstance(record, SnapshotHeaderRecord):
                last_timestamp_ms = record.last_contained_log_timestamp
            finished = finished or isinstance(record, SnapshotFooterRecord)
    if not finished:
        raise SnapshotError("the snapshot has no footer")
    return Snapshot(facts, last_timestamp_ms)
