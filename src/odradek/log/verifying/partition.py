"""Checks all files of one partition's directory. Nothing is written, and no file is trusted."""

from collections.abc import Callable
from typing import NamedTuple
from uuid import UUID

from odradek.core.types import uuid_to_text
from odradek.log.checkpoints import (
    CheckpointError,
    is_damaged_topic_id,
    parse_epochs,
    parse_partition_metadata,
)
from odradek.log.files import read_file
from odradek.log.names import (
    CLEANED_SUFFIX,
    INDEX_SUFFIX,
    INDEX_SUFFIXES,
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TIME_INDEX_SUFFIX,
    TXN_INDEX_SUFFIX,
    UNFLUSHED_SUFFIX,
    file_name,
    offset_of,
)
from odradek.log.producers.snapshot import CorruptSnapshotError, parse_snapshot
from odradek.log.segments.batch_pieces import Piece, pieces
from odradek.log.segments.index_file import CorruptIndexError
from odradek.log.segments.txn_index import ENTRY_BYTES, parse_aborted
from odradek.log.verifying.epochs import EpochCheck
from odradek.log.verifying.fate import GONE_OVER, Fate
from odradek.log.verifying.findings import Findings
from odradek.log.verifying.indexes import OffsetIndexCheck, TimeIndexCheck
from odradek.log.verifying.producers import Replay, check_aborted, check_snapshot
from odradek.records.header import MAX_INT32, BatchMeta
from odradek.runtime.api import Disk


class Circumstances(NamedTuple):
    """What is known about a log. `compacted` and `topic_id` are None if unknown. `has_snapshots`: a clean
    stop writes a snapshot of its producers."""

    clean: bool = False
    recovery_point: int = 0
    log_start_offset: int = 0
    compacted: bool | None = None
    topic_id: UUID | None = None
    has_snapshots: bool = False


class Extent(NamedTuple):
    """The size and offsets of a checked log."""

    segments: int
    bytes: int
    first_offset: int
    end_offset: int


class PartitionCheck:
    def __init__(
        self,
        disk: Disk,
        path: str,
        circumstances: Circumstances,
        into: Findings,
        on_bytes: Callable[[int], None] = lambda count: None,
    ) -> None:
        self._disk = disk
        self._path = path
        self._given = circumstances
        self._into = into
        self._on_bytes = on_bytes
        names = disk.listdir(path)
        self._names = frozenset(names)
        self._bases = [
            offset_of(n) or 0 for n in names if n.endswith(LOG_SUFFIX) and offset_of(n) is not None
        ]
        self._fate = Fate(
            self._bases,
            [offset_of(n) or 0 for n in names if n.endswith(UNFLUSHED_SUFFIX)],
            clean=circumstances.clean,
            recovery_point=circumstances.recovery_point,
        )
        self._snapshots = [offset_of(n) or 0 for n in names if n.endswith(SNAPSHOT_SUFFIX) and offset_of(n)]
        self._first_offset = self._next_offset = self._bases[0] if self._bases else 0
        self._is_torn = False
        self._has_gaps = False
        # The last batch, if it came after a gap: if the next offset is lower, this batch is the wrong one.
        self._suspect: tuple[int, str, int] | None = None
        self._replay = Replay(self._next_offset, (), circumstances.log_start_offset)

    def run(self) -> Extent:
        self._check_leftovers()
        self._check_topic_id()
        epochs = self._epoch_check()
        self._begin_replay()
        size = 0
        for index, base_offset in enumerate(self._bases):
            size += self._disk.stat(self._file(base_offset, LOG_SUFFIX)).size
            self._check_border(index, base_offset)
            self._check_segment(index, base_offset, epochs)
        if epochs is not None:
            epochs.end()
        self._check_snapshots(None)
        self._check_last_snapshot()
        return Extent(len(self._bases), size, self._first_offset, self._next_offset)

    def _file(self, offset: int, suffix: str) -> str:
        return f"{self._path}/{file_name(offset, suffix)}"

    # --- files as a whole -----------------------------------------------------------------------------

    def _check_leftovers(self) -> None:
        for name in sorted(self._names):
            path = f"{self._path}/{name}"
            if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)):
                fate = (
                    "removed"
                    if name.endswith(CLEANED_SUFFIX)
                    else "put in place, or removed if it is incomplete"
                )
                self._into.add(path, None, "left behind", "no such file", "an interrupted compaction", fate)
            elif name.endswith(INDEX_SUFFIXES) and offset_of(name) not in self._bases:
                self._into.add(path, None, "no log", f"a {LOG_SUFFIX} file of this name", "none", "removed")
        for index, base_offset in enumerate(self._bases):
            for suffix in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
                path = self._file(base_offset, suffix)
                if file_name(base_offset, suffix) not in self._names and self._size(base_offset):
                    self._into.add(path, None, "missing", "an index", "no file", self._fate.of_indexes(index))

    def _size(self, base_offset: int) -> int:
        return self._disk.stat(self._file(base_offset, LOG_SUFFIX)).size

    def _check_topic_id(self) -> None:
        path = f"{self._path}/{PARTITION_METADATA}"
        if PARTITION_METADATA not in self._names:
            # Old logs had none, and a log without records need not have one.
            has_records = any(self._size(base_offset) for base_offset in self._bases)
            if has_records and self._given.topic_id is not None:
                self._into.add(path, None, "missing", "the topic id", "no file", "rewritten")
            return
        try:
            topic_id = parse_partition_metadata(read_file(self._disk, path))
        except CheckpointError as e:
            self._into.add(path, 0, "unreadable", "version and topic id", e, "rewritten")
            return
        expected = self._given.topic_id
        if expected is not None and topic_id != expected:
            fate = "renamed to -stray, and a new log is created"
            if is_damaged_topic_id(topic_id, expected):
                fate = "rewritten: only one character is wrong"
            wanted, found = uuid_to_text(expected), uuid_to_text(topic_id)
            self._into.add(path, 0, "another topic", wanted, found, fate)

    def _epoch_check(self) -> EpochCheck | None:
        path = f"{self._path}/{LEADER_EPOCH_CHECKPOINT}"
        recovered_from = None if self._fate.clean else self._fate.recovery_point
        rebuilt = "rebuilt from the log"
        if LEADER_EPOCH_CHECKPOINT not in self._names:
            # There is none before the first flush.
            if (self._fate.clean or self._fate.recovery_point > self._next_offset) and any(
                self._size(base_offset) for base_offset in self._bases
            ):
                self._into.add(path, None, "missing", "the leader epochs", "no file", rebuilt)
            return None
        try:
            content = read_file(self._disk, path)
            if not content:
                raise CheckpointError("nothing")
            return EpochCheck(path, parse_epochs(content), recovered_from, self._into)
        except CheckpointError as e:
            self._into.add(path, 0, "unreadable", "epochs and offsets in ascending order", e, rebuilt)
            return None

    # --- segments -------------------------------------------------------------------------------------

    def _begin_replay(self) -> None:
        """Start with the producers of deleted records, if there is a snapshot."""
        start = self._next_offset
        if start and start in self._snapshots:
            try:
                known = parse_snapshot(read_file(self._disk, self._file(start, SNAPSHOT_SUFFIX)))
                self._replay = Replay(start, known, self._given.log_start_offset)
                self._replay.is_whole = self._given.log_start_offset <= start
            except CorruptSnapshotError:
                pass  # reported by _check_snapshots

    def _check_border(self, index: int, base_offset: int) -> None:
        if index and not self._is_torn and base_offset != self._next_offset:
            path = self._file(base_offset, LOG_SUFFIX)
            if base_offset < self._next_offset:
                self._report(
                    path,
                    None,
                    "overlap",
                    f"a first offset of at least {self._next_offset}",
                    base_offset,
                    index,
                )
            elif not (self._given.compacted or (self._given.compacted is None and self._has_gaps)):
                self._into.add(
                    path,
                    None,
                    "gap",
                    f"offset {self._next_offset} next",
                    f"{base_offset}: {base_offset - self._next_offset} offsets are missing",
                    self._fate.of_border(index, self._next_offset, base_offset),
                )
                self._replay.lost_track()
        self._is_torn = False
        self._suspect = None
        self._next_offset = max(self._next_offset, base_offset)

    def _report(
        self, path: str, position: int | None, problem: str, expected: object, found: object, index: int
    ) -> None:
        """Report a complete batch that is at the wrong place."""
        cut = self._disk.stat(path).size - (position or 0)
        fate = self._fate.of_batches(index, cut, has_structure=True)
        self._into.add(path, position, problem, expected, found, fate)

    def _check_segment(self, index: int, base_offset: int, epochs: EpochCheck | None) -> None:
        path = self._file(base_offset, LOG_SUFFIX)
        last = index == len(self._bases) - 1
        may_have_room = last and not self._fate.clean
        offsets = times = None
        # The first record of an empty segment resets its indexes.
        if self._disk.stat(path).size:
            offsets = self._offset_index(index, base_offset, may_have_room)
            times = self._time_index(index, base_offset, may_have_room)
        fate = self._fate.of_batches(index, 0, has_structure=True)
        for piece in pieces(self._disk, path, self._on_bytes):
            for batch in piece.batches:
                position = piece.start + batch.position
                if not self._check_order(path, index, base_offset, batch, position):
                    self._torn()
                    return
                self._check_snapshots(batch.base_offset)
                if offsets is not None:
                    offsets.take(batch, position)
                if times is not None:
                    times.take(batch)
                # The file has no epochs of records below the log start.
                if epochs is not None and batch.last_offset >= self._given.log_start_offset:
                    epochs.take(batch, path, position, fate)
                self._replay_batch(path, index, piece, batch)
            bad = piece.bad
            if bad is not None:
                cut = self._disk.stat(path).size - bad.position
                fate_of_bad = self._fate.of_batches(index, cut, has_structure=bad.can_go_on)
                self._into.add(path, bad.position, bad.problem, bad.expected, bad.found, fate_of_bad)
                self._torn()
                if not bad.can_go_on:
                    return
                offsets = times = None
        if offsets is not None:
            offsets.end(self._disk.stat(path).size)
        if times is not None:
            times.end(self._next_offset)
        self._check_aborted(base_offset)

    def _torn(self) -> None:
        """The next batches cannot be compared with the previous ones."""
        self._is_torn = True
        self._replay.lost_track()

    def _check_order(self, path: str, index: int, base_offset: int, batch: BatchMeta, position: int) -> bool:
        next_offset = max(self._next_offset, base_offset)
        suspect, self._suspect = self._suspect, None
        if batch.base_offset >= next_offset and batch.last_offset - base_offset > MAX_INT32:
            most = f"{base_offset + MAX_INT32} at most"
            fate = self._fate.of_far_offset(index)
            self._into.add(path, position, "offset too far", most, batch.last_offset, fate)
            return False
        if batch.base_offset < next_offset:
            expected, found = f"{next_offset} or later", batch.base_offset
            if suspect is not None:
                position, expected, found = suspect
            self._report(path, position, "offset out of order", expected, found, index)
            return False
        if batch.base_offset > next_offset and not batch.is_wrapper and not self._is_torn:
            self._suspect = position, str(next_offset), batch.base_offset
            self._has_gaps = True
            if self._given.compacted is False:
                self._into.add(path, position, "gap", f"offset {next_offset}", batch.base_offset, GONE_OVER)
            self._replay.lost_track()
        self._is_torn = False
        self._next_offset = batch.last_offset + 1
        return True

    def _offset_index(self, index: int, base_offset: int, may_have_room: bool) -> OffsetIndexCheck | None:
        if file_name(base_offset, INDEX_SUFFIX) not in self._names:
            return None
        path = self._file(base_offset, INDEX_SUFFIX)
        fate = self._fate.of_indexes(index)
        content = read_file(self._disk, path)
        return OffsetIndexCheck(path, content, base_offset, fate, self._into, may_have_room=may_have_room)

    def _time_index(self, index: int, base_offset: int, may_have_room: bool) -> TimeIndexCheck | None:
        if file_name(base_offset, TIME_INDEX_SUFFIX) not in self._names:
            return None
        path = self._file(base_offset, TIME_INDEX_SUFFIX)
        fate = self._fate.of_indexes(index)
        content = read_file(self._disk, path)
        return TimeIndexCheck(path, content, base_offset, fate, self._into, may_have_room=may_have_room)

    # --- producers ------------------------------------------------------------------------------------

    def _replay_batch(self, path: str, index: int, piece: Piece, batch: BatchMeta) -> None:
        if batch.producer_id >= 0:
            problem = self._replay.take(piece.data, batch)
            if problem is not None:
                position = piece.start + batch.position
                self._report(path, position, "unreadable marker", "a transaction's end", problem, index)

    def _check_aborted(self, base_offset: int) -> None:
        path = self._file(base_offset, TXN_INDEX_SUFFIX)
        indexed = []
        if file_name(base_offset, TXN_INDEX_SUFFIX) in self._names:
            try:
                indexed = parse_aborted(path, read_file(self._disk, path), base_offset)
            except CorruptIndexError as e:
                fate = f"the log is recovered from offset {base_offset}, and the file is rewritten"
                self._into.add(path, None, "unreadable", f"entries of {ENTRY_BYTES} bytes", e, fate)
                self._replay.aborted = []
                return
        check_aborted(path, ENTRY_BYTES, indexed, self._replay, self._into)

    def _check_last_snapshot(self) -> None:
        """A clean stop writes a snapshot at the log end, unless there is one already."""
        start = max(self._first_offset, self._given.log_start_offset)
        if self._given.has_snapshots and self._given.clean and not self._is_torn:
            newest = max(
                (offset_of(n) or 0 for n in self._names if n.endswith(SNAPSHOT_SUFFIX)), default=start
            )
            if self._next_offset > max(newest, start):
                path = self._file(self._next_offset, SNAPSHOT_SUFFIX)
                fate = "rebuilt from the log"
                self._into.add(path, None, "missing", "the producers at the log's end", "no file", fate)

    def _check_snapshots(self, before: int | None) -> None:
        """Check the snapshots up to a batch at this offset; None: up to the log end."""
        while self._snapshots and (before is None or self._snapshots[0] <= before):
            offset = self._snapshots.pop(0)
            path = self._file(offset, SNAPSHOT_SUFFIX)
            if before is None and offset > self._next_offset and not self._is_torn:
                fate = "removed"
                self._into.add(path, None, "beyond the end", f"at most {self._next_offset}", offset, fate)
                continue
            try:
                entries = parse_snapshot(read_file(self._disk, path))
            except CorruptSnapshotError as e:
                fate = "removed when it is needed: an older one, or the log, has the same state"
                self._into.add(path, 0, "unreadable", "a snapshot that matches its CRC", e, fate)
                continue
            if offset >= self._first_offset:  # an older one may include deleted records
                check_snapshot(path, entries, self._disk.stat(path).mtime_ms, self._replay, self._into)
