"""Appender: assigns offsets and leader epochs, checks producers, rolls segments, and writes batches."""

import logging
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, is_exhausted
from odradek.core.types import NO_LEADER_EPOCH, NO_TIMESTAMP, Buffer
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.parts.log_config import LogConfig
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.reading import BatchReader, Position, out_of_range
from odradek.log.parts.rolling import Roller
from odradek.log.producers.entry import ProducerBatch
from odradek.log.producers.markers import read_marker
from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.state import ProducerState, StagedProducers
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.check import CheckedRecords
from odradek.records.header import CONTROL_FLAG, LOG_OVERHEAD, MAX_INT32, BatchMeta
from odradek.records.kernel import OK, PARTIAL
from odradek.records.scanning import scan
from odradek.runtime.api import Clock

_log = logging.getLogger(__name__)

# base_offset int64, batch_length int32, partition_leader_epoch int32: the front of a batch, outside its CRC.
_FRONT: Final = Struct(">qii")
_new = tuple.__new__


class AppendInfo(NamedTuple):
    """The offsets of an appended set of batches. For a duplicate, those of its first append."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class Appender:
    """Assigns offsets to batches and writes them. Only written batches change its state."""

    __slots__ = (
        "_bounds",
        "_clock",
        "_config",
        "_dir",
        "_epochs",
        "_producers",
        "_reader",
        "_roller",
        "_segments",
        "appended_bytes",
    )

    def __init__(
        self,
        directory: PartitionDir,
        clock: Clock,
        config: LogConfig,
        segments: Segments,
        bounds: Bounds,
        epochs: EpochCache,
        producers: ProducerState,
        roller: Roller,
        reader: BatchReader,
    ) -> None:
        self._dir = directory
        self._clock = clock
        self._config = config
        self._segments = segments
        self._bounds = bounds
        self._epochs = epochs
        self._producers = producers
        self._roller = roller
        self._reader = reader
        self.appended_bytes = 0  # since the log was opened

    def append(
        self,
        sets: Sequence[CheckedRecords],
        leader_epoch: int,
        origin: AppendOrigin,
        transaction_version: int,
    ) -> list[AppendInfo | KafkaError]:
        """Raises OSError, StorageError or ExhaustedError: then no set counts as appended."""
        results: list[AppendInfo | KafkaError] = []
        bounds = self._bounds
        config = self._config.topic
        roll_after_ms = self._config.roll_after_ms
        segment_bytes = config.segment_bytes
        stamped = config.message_timestamp_type == "LogAppendTime"
        segment = self._segments.active
        next_offset = bounds.log_end_offset
        if leader_epoch != self._epochs.latest:
            self._epochs.assign(leader_epoch, next_offset)
        buffers: list[Buffer] = []
        accepted: list[tuple[int, list[BatchMeta]]] = []
        pending_bytes = 0
        staged: StagedProducers | None = None
        max_size, max_time, max_offset = segment.free_bounds(
            segment_bytes, roll_after_ms, sum([len(checked.batches) for checked in sets])
        )
        written = 0  # results that are final, even if the rest fails
        try:
            for checked in sets:
                batches = checked.batches
                buffer = checked.buffer
                size = len(buffer)
                first_offset = next_offset
                if len(batches) == 1:
                    batch = batches[0]
                    numbered = batch.producer_id >= 0
                    max_timestamp = batch.max_timestamp
                    last_offset = first_offset + batch.last_offset_delta
                else:
                    numbered = any(batch.producer_id >= 0 for batch in batches)
                    max_timestamp = max(batch.max_timestamp for batch in batches)
                    last_offset = first_offset - 1 + sum(batch.last_offset_delta + 1 for batch in batches)
                if size > segment_bytes:
                    results.append(self._too_large(size))
                    continue
                if (
                    segment.size + pending_bytes + size > max_size
                    or max_timestamp > max_time
                    or last_offset > max_offset
                ) and segment.should_roll(
                    segment_bytes,
                    roll_after_ms,
                    pending_bytes + size,
                    max_timestamp,
                    last_offset,
                    self._clock,
                ):
                    if buffers:
                        self._commit(segment, buffers, pending_bytes, accepted, staged)
                        buffers, accepted, pending_bytes, staged = [], [], 0, None
                        written = len(results)
                    segment = self._roller.roll_at(first_offset)
                    max_size = -1
                if numbered:
                    if staged is None:
                        staged = StagedProducers(self._producers)
                    try:
                        if len(batches) == 1 and not batch.attributes & CONTROL_FLAG:
                            duplicate = staged.add(batch, first_offset, origin)
                        else:
                            duplicate = _stage(staged, checked, first_offset, origin, transaction_version)
                    except KafkaError as refusal:
                        results.append(refusal)
                        continue
                    if duplicate is not None:
                        results.append(
                            AppendInfo(
                                duplicate.first_offset,
                                duplicate.last_offset,
                                duplicate.timestamp,
                                bounds.log_start_offset,
                                True,
                            )
                        )
                        continue
                for batch in batches:
                    _FRONT.pack_into(
                        buffer, batch.position, next_offset, batch.size - LOG_OVERHEAD, leader_epoch
                    )
                    next_offset += batch.last_offset_delta + 1
                buffers.append(buffer)
                accepted.append((first_offset, batches))
                pending_bytes += size
                append_time_ms = max_timestamp if stamped else NO_TIMESTAMP
                results.append(
                    _new(
                        AppendInfo,
                        (first_offset, last_offset, append_time_ms, bounds.log_start_offset, False),
                    )
                )
            if buffers:
                self._commit(segment, buffers, pending_bytes, accepted, staged)
        except (OSError, ExhaustedError) as e:
            if not written or not is_exhausted(e):
                raise
            left = e if isinstance(e, ExhaustedError) else self._dir.fail(e, "appending records to")
            results[written:] = [left] * (len(sets) - written)
        return results

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self._dir.topic_partition}, "
            f"which exceeds the maximum configured segment size of {self._config.topic.segment_bytes}.",
        )

    def _commit(
        self,
        segment: Segment,
        buffers: Sequence[Buffer],
        size: int,
        accepted: Sequence[tuple[int, Sequence[BatchMeta]]],
        staged: StagedProducers | None,
    ) -> None:
        """Write batches, then change the state."""
        if staged is not None and staged.completed:
            segment.prepare_to_abort()
        position = segment.size
        segment.write(buffers, size)
        self.appended_bytes += size
        offset, batches = accepted[0]
        self._reader.newest = _new(Position, (segment, offset, position, batches[0].size))
        for offset, batches in accepted:
            for batch in batches:
                offset += batch.last_offset_delta + 1
                segment.index_batch(offset - 1, batch.max_timestamp, batch.size)
        assert offset > self._bounds.log_end_offset, "an append moves the log end forward"
        self._bounds.log_end_offset = offset
        if staged is not None:
            self._producers.commit(staged)
            if staged.completed or staged.started:
                self._end_transactions(segment, staged)

    def _end_transactions(self, segment: Segment, staged: StagedProducers) -> None:
        producers = self._producers
        for completed in staged.completed:
            stable = producers.stable_offset_after(completed)
            if completed.aborted:
                self._dir.changes += not segment.has_txn_index
                segment.add_aborted(
                    AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                )
            producers.complete(completed)
        self._bounds.transactions_changed()

    def take_over(self, records: Buffer, leader_epoch: int) -> AppendInfo:
        """Append batches with the offsets of the leader. A partial batch at the end is ignored.

        Raises CORRUPT_MESSAGE (also for a batch of a later epoch than the leader's), OFFSET_OUT_OF_RANGE if
        they do not follow the log end, OSError, StorageError, ExhaustedError.
        """
        batches, size, finding = scan(records)
        if finding not in (OK, PARTIAL) or not batches:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"No valid record batch at byte {size} of a fetch for {self._dir.topic_partition}",
            )
        if batches[-1].partition_leader_epoch > leader_epoch:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"A batch of epoch {batches[-1].partition_leader_epoch} in a fetch at epoch {leader_epoch} "
                f"for {self._dir.topic_partition}",
            )
        expected = self._bounds.log_end_offset
        for batch in batches:
            if batch.base_offset < expected:
                raise out_of_range(self._dir.topic_partition, batch.base_offset, expected, batch.last_offset)
            expected = batch.last_offset + 1
        runs = _addressable_runs(batches, self._bounds.log_end_offset)
        for first_offset, run in runs:
            self._take_run(records, run, first_offset)
        first_offset, last_offset = runs[0][0], batches[-1].last_offset
        return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, self._bounds.log_start_offset, False)

    def _take_run(self, records: Buffer, batches: list[BatchMeta], first_offset: int) -> None:
        """Write consecutive batches to a segment whose indexes can address all of them."""
        begin = batches[0].position
        size = batches[-1].position + batches[-1].size - begin
        segment = self._segments.active
        max_timestamp = max(batch.max_timestamp for batch in batches)
        if segment.should_roll(
            self._config.topic.segment_bytes,
            self._config.roll_after_ms,
            size,
            max_timestamp,
            batches[-1].last_offset,
            self._clock,
        ):
            segment = self._roller.roll_at(first_offset)
        staged = StagedProducers(self._producers)
        for batch in batches:
            if batch.producer_id >= 0:
                marker = read_marker(records, batch) if batch.is_control else None
                staged.add(batch, batch.base_offset, None, marker)
            if batch.magic < 2:
                self._forget_epochs(batch)
            elif batch.partition_leader_epoch not in (self._epochs.latest, NO_LEADER_EPOCH):
                self._epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        accepted = [(batch.base_offset, (batch,)) for batch in batches]
        self._commit(segment, [memoryview(records)[begin : begin + size]], size, accepted, staged)

    def _forget_epochs(self, batch: BatchMeta) -> None:
        """Clear the leader epochs: these records have none, so a truncation by epochs would cut at the wrong
        offset."""
        if self._epochs.latest != NO_LEADER_EPOCH:
            _log.warning(
                "%s: records of magic %d at offset %d follow records of a later format: clearing its leader "
                "epochs",
                self._dir.path,
                batch.magic,
                batch.last_offset,
            )
            self._epochs.clear()


def _addressable_runs(batches: Sequence[BatchMeta], log_end_offset: int) -> list[tuple[int, list[BatchMeta]]]:
    """Split batches into runs that fit the indexes of one segment, with the base offset of such a segment.

    After compaction on the leader, the offsets of one fetch may be too far apart for one segment.
    """
    runs: list[tuple[int, list[BatchMeta]]] = []
    for batch in batches:
        if runs and batch.last_offset - runs[-1][0] <= MAX_INT32:
            runs[-1][1].append(batch)
            continue
        first_offset = batch.base_offset
        if batch.is_wrapper:
            # The first offset inside a wrapper is unknown: start as far below its offset as an index allows.
            previous = runs[-1][1][-1].last_offset + 1 if runs else log_end_offset
            first_offset = max(previous, batch.last_offset - MAX_INT32)
        runs.append((first_offset, [batch]))
    return runs


def _stage(
    staged: StagedProducers,
    checked: CheckedRecords,
    first_offset: int,
    origin: AppendOrigin,
    transaction_version: int,
) -> ProducerBatch | None:
    """Check a set against its producers, all or nothing. Returns the first append if the set is a
    duplicate."""
    stage = StagedProducers(staged)
    offset = first_offset
    for batch in checked.batches:
        if batch.producer_id >= 0:
            marker = read_marker(checked.buffer, batch) if batch.is_control else None
            duplicate = stage.add(batch, offset, origin, marker, transaction_version)
            if duplicate is not None:
                return duplicate
        offset += batch.last_offset_delta + 1
    staged.merge(stage)
    return None
