"""CleaningJob: one cleaning of one log, a piece at a time, outside the event loop.

Its plan is fixed when it is prepared. It reads the old segments and writes new files with its own
descriptors, and returns which segments to replace. It never uses the log itself.
"""

from collections.abc import Generator, Iterator, Sequence
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import Buffer
from odradek.log.cleaning.chunks import Output, SegmentChunks
from odradek.log.cleaning.cleaned_segment import CleanedSegment
from odradek.log.cleaning.grouping import Sized, Source, group
from odradek.log.cleaning.offset_map import OffsetMap
from odradek.log.cleaning.rewriting import (
    Keeping,
    corrupt,
    emptied,
    retain_compressed,
    retain_legacy,
    retain_marker,
)
from odradek.log.cleaning.transactions import CleanedTransactions
from odradek.log.names import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX
from odradek.log.segments.txn_index import AbortedTxn
from odradek.records import kernel
from odradek.records.batch import Record, iter_records, records_of
from odradek.records.control import ControlType, parse_control_key
from odradek.records.header import BatchMeta, crc_matches, iter_batches
from odradek.records.kernel import FULL, LEGACY, NO_ROOM, OK, PARTIAL
from odradek.runtime.api import Disk

_SINGLE_BATCHES: Final = 32  # single batches between two pauses: half a millisecond of Python
_BY_ONE: Final = (kernel.COMPRESSED, kernel.TRANSACTIONAL, LEGACY)


class Limits(NamedTuple):
    """The limits of a segment and of a job."""

    segment_bytes: int
    index_bytes: int
    index_interval_bytes: int
    map_bytes: int
    load_factor: float
    chunk_bytes: int


class CleaningPlan(NamedTuple):
    """The plan of a cleaning. Immutable."""

    directory: str
    sources: tuple[Source, ...]
    first_dirty_offset: int
    end_offset: int
    aborted: tuple[AbortedTxn, ...]
    keeping: Keeping
    limits: Limits
    secret: bytes


class Replacement(NamedTuple):
    """A durable segment with .swap names, and the base offsets of the segments that it replaces."""

    base_offset: int
    size: int
    has_txn_index: bool
    replaced: tuple[int, ...]


class CleaningProgress(NamedTuple):
    """The bytes that a piece of work read and wrote. `breath`: release the interpreter now."""

    moved_bytes: int
    replacement: Replacement | None = None
    breath: bool = False


class CleaningJob:
    """Call `advance` until it returns None. After a replacement, the log must swap it in or refuse it
    first."""

    def __init__(self, disk: Disk, plan: CleaningPlan) -> None:
        self._disk = disk
        self._plan = plan
        self._work = self._run()
        self._cleaned: CleanedSegment | None = None
        self._offsets: OffsetMap
        self.end_offset = plan.first_dirty_offset
        """The log is clean up to this offset when all replacements are in place."""
        self.mapped_bytes = self.read_bytes = self.written_bytes = 0

    def advance(self, budget_bytes: int) -> CleaningProgress | None:
        """Process about `budget_bytes` bytes. None at the end. Raises OSError, KafkaError for a corrupt
        batch."""
        moved_bytes = 0
        for progress in self._work:
            moved_bytes += progress.moved_bytes
            if progress.replacement is not None or progress.breath or moved_bytes >= budget_bytes:
                return progress._replace(moved_bytes=moved_bytes)
        return CleaningProgress(moved_bytes) if moved_bytes else None

    def taken(self) -> None:
        """The log has swapped in the last replacement."""
        self._cleaned = None

    def discard(self) -> None:
        """Remove the files that the log has not swapped in. Raises OSError."""
        cleaned, self._cleaned = self._cleaned, None
        if cleaned is not None:
            cleaned.discard()

    def _run(self) -> Iterator[CleaningProgress]:
        plan, limits = self._plan, self._plan.limits
        yield from self._map_dirty_part()
        if self._offsets.latest_offset < plan.first_dirty_offset:
            return
        end_offset = min(self._offsets.latest_offset + 1, plan.end_offset)
        sources = [source for source in plan.sources if source.base_offset < end_offset]
        transactions = CleanedTransactions(plan.aborted)
        sized = [self._with_index_sizes(source) for source in sources]
        keeps_since_ms = self._legacy_horizon_ms(sources)
        for members in group(sized, limits.segment_bytes, limits.index_bytes):
            yield from self._clean(members, transactions, keeps_since_ms)
        self.end_offset = end_offset

    # --- the keys of the dirty part -------------------------------------------------------------------

    def _map_dirty_part(self) -> Iterator[CleaningProgress]:
        plan, limits = self._plan, self._plan.limits
        start = plan.first_dirty_offset
        self._offsets = OffsetMap.for_range(
            plan.secret, start, plan.end_offset, limits.map_bytes, limits.load_factor
        )
        transactions = CleanedTransactions(txn for txn in plan.aborted if txn.last_offset >= start)
        for source in plan.sources:
            if source.end_offset <= start:
                continue
            full = yield from self._map_source(source, transactions)
            if full:
                return
            self._offsets.reached(source.end_offset - 1)

    def _map_source(
        self, source: Source, transactions: CleanedTransactions
    ) -> Generator[CleaningProgress, None, bool]:
        reader = SegmentChunks(self._disk, source, self._plan.limits.chunk_bytes)
        while chunk := reader.next():
            position, singles = 0, 0
            while True:
                position, finding = self._offsets.put_batches(chunk, position)
                if finding in (OK, PARTIAL):
                    break
                batch = _batch_at(chunk, position, finding, source)
                if finding in _BY_ONE:
                    finding = self._map_batch(chunk, batch, transactions)
                    singles += 1
                    if singles % _SINGLE_BATCHES == 0:
                        yield CleaningProgress(0, breath=True)
                if finding == FULL:
                    if self._offsets.latest_offset >= 0:
                        return True
                    keys = batch.record_count if batch.magic == 2 else len(_records(chunk, batch))
                    self._offsets = self._offsets.grown_for(keys)
                    continue
                self._offsets.reached(batch.last_offset)
                position += batch.size
            reader.consumed(position)
            self.mapped_bytes += position
            yield CleaningProgress(position)
        return False

    def _map_batch(self, chunk: Buffer, batch: BatchMeta, transactions: CleanedTransactions) -> int:
        """Put the keys of one batch into the map, unless it is a marker or aborted. Returns OK or FULL."""
        if batch.magic < 2:
            return self._offsets.put_each(_records(chunk, batch))
        if batch.is_control:
            transactions.on_marker(batch.producer_id, batch.last_offset, _marker_kind(chunk, batch))
            return OK
        if batch.is_transactional and transactions.is_aborted(batch.producer_id, batch.last_offset):
            return OK
        try:
            return self._offsets.put_records(records_of(chunk, batch), batch.record_count, batch.base_offset)
        except ValueError as e:
            raise corrupt(batch, str(e)) from e

    # --- what stays -----------------------------------------------------------------------------------

    def _clean(
        self, sources: Sequence[Source], transactions: CleanedTransactions, keeps_since_ms: int
    ) -> Iterator[CleaningProgress]:
        """Clean a group of segments into one."""
        plan, limits = self._plan, self._plan.limits
        cleaned = CleanedSegment(
            self._disk,
            plan.directory,
            sources[0].base_offset,
            limits.index_interval_bytes,
            limits.index_bytes,
        )
        self._cleaned = cleaned
        output = Output(cleaned, limits.chunk_bytes)
        mtime_ms = 0
        for source in sources:
            mtime_ms = self._disk.stat(source.path).mtime_ms
            cleaning = _SourceCleaning(
                source, output, self._offsets, plan.keeping, transactions, mtime_ms > keeps_since_ms
            )
            reader = SegmentChunks(self._disk, source, limits.chunk_bytes)
            while chunk := reader.next():
                position, written = 0, output.written_bytes
                while position < len(chunk):
                    at, pause = cleaning.run(chunk, position)
                    if at == position:
                        break
                    position = at
                    if pause:
                        yield CleaningProgress(0, breath=True)
                reader.consumed(position)
                self.read_bytes += position
                yield CleaningProgress(position + output.written_bytes - written)
        output.flush()
        cleaned.make_ready(mtime_ms)
        self.written_bytes += cleaned.size
        replaced = tuple(source.base_offset for source in sources)
        yield CleaningProgress(
            0, Replacement(cleaned.base_offset, cleaned.size, cleaned.has_txn_index, replaced)
        )

    def _with_index_sizes(self, source: Source) -> Sized:
        stem = source.path.removesuffix(LOG_SUFFIX)
        return Sized(source, self._size(stem + INDEX_SUFFIX), self._size(stem + TIME_INDEX_SUFFIX))

    def _size(self, path: str) -> int:
        try:
            return self._disk.stat(path).size
        except FileNotFoundError:
            return 0

    def _legacy_horizon_ms(self, sources: Sequence[Source]) -> int:
        """Tombstones of magic 0 and 1 have no delete horizon: the age of their segment decides."""
        clean = [s for s in sources if s.base_offset < self._plan.first_dirty_offset]
        if not clean:
            return 0
        return self._disk.stat(clean[-1].path).mtime_ms - self._plan.keeping.delete_retention_ms


class _SourceCleaning:
    """Cleans the batches of one segment: the kernel handles runs of plain batches, the others go one by
    one."""

    def __init__(
        self,
        source: Source,
        output: Output,
        offsets: OffsetMap,
        keeping: Keeping,
        transactions: CleanedTransactions,
        keep_legacy_tombstones: bool,
    ) -> None:
        self._source = source
        self._output = output
        self._offsets = offsets
        self._keeping = keeping
        self._rules = keeping.rules(offsets)
        self._transactions = transactions
        self._keep_legacy_tombstones = keep_legacy_tombstones

    def run(self, chunk: Buffer, position: int) -> tuple[int, bool]:
        """(position after the processed batches, whether to pause now)."""
        output = self._output
        singles = 0
        while True:
            position, finding, output.filled = kernel.retain_batches(
                chunk, position, output.buffer, output.filled, self._rules, False
            )
            if finding in (OK, PARTIAL):
                return position, False
            if finding == NO_ROOM:
                output.make_room()
                continue
            batch = _batch_at(chunk, position, finding, self._source)
            self._retain(chunk, batch)
            position += batch.size
            singles += 1
            if singles == _SINGLE_BATCHES:
                return position, True

    def _retain(self, chunk: Buffer, batch: BatchMeta) -> None:
        keeping, transactions, output = self._keeping, self._transactions, self._output
        if batch.magic < 2:
            keep = self._keep_legacy_tombstones
            records = _records(chunk, batch)
            output.put(retain_legacy(records, batch, self._offsets, keeping, keep_tombstones=keep))
        elif batch.is_control:
            kind = _marker_kind(chunk, batch)
            verdict = transactions.on_marker(batch.producer_id, batch.last_offset, kind)
            if verdict.aborted is not None:
                output.add_aborted(verdict.aborted)
            output.put(retain_marker(chunk, batch, keeping, spent=verdict.spent))
        elif batch.is_transactional and transactions.is_aborted(batch.producer_id, batch.last_offset):
            output.put(emptied(batch, keeping))
        elif batch.compression:
            output.put(retain_compressed(chunk, batch, self._rules, keeping))
        else:
            self._retain_plain(chunk, batch)

    def _retain_plain(self, chunk: Buffer, batch: BatchMeta) -> None:
        """A batch of a committed transaction."""
        output = self._output
        finding = NO_ROOM
        while finding == NO_ROOM:
            _, finding, output.filled = kernel.retain_batches(
                chunk, batch.position, output.buffer, output.filled, self._rules, True
            )
            if finding == NO_ROOM:
                output.make_room()
        if finding != OK:
            raise corrupt(batch, f"its records cannot be read (finding {finding})")


def _batch_at(chunk: Buffer, position: int, finding: int, source: Source) -> BatchMeta:
    """The batch where the kernel stopped. Raises CORRUPT_MESSAGE if it is not a valid batch."""
    if finding not in (*_BY_ONE, FULL):
        raise KafkaError(
            ErrorCode.CORRUPT_MESSAGE, f"No valid batch in {source.path} (finding {finding} at {position})."
        )
    batch = next(iter_batches(chunk, position))
    if finding == LEGACY and not crc_matches(chunk, batch):
        raise corrupt(batch, "its checksum is wrong")
    return batch


def _records(chunk: Buffer, batch: BatchMeta) -> list[Record]:
    return list(iter_records(chunk, batch))


def _marker_kind(chunk: Buffer, batch: BatchMeta) -> ControlType | None:
    for record in iter_records(chunk, batch):
        return parse_control_key(record.key)
    return None
