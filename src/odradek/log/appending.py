"""Putting records into a log: offsets and epochs given, producers checked, segments rolled."""

import logging
from collections.abc import Sequence
from struct import Struct
from typing import Final, NamedTuple

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, is_exhausted
from odradek.core.types import NO_LEADER_EPOCH, NO_TIMESTAMP, Buffer
from odradek.log.durability import DurableLog
from odradek.log.local_log import Position
from odradek.log.producers.entry import ProducerBatch
from odradek.log.producers.markers import read_marker
from odradek.log.producers.state import Staged
from odradek.log.segments.segment import Segment
from odradek.log.segments.txn_index import AbortedTxn
from odradek.records.check import CheckedRecords, Origin
from odradek.records.header import CONTROL_FLAG, LOG_OVERHEAD, MAX_INT32, BatchMeta
from odradek.records.kernel import OK, PARTIAL
from odradek.records.scanning import scan

_log = logging.getLogger(__name__)

# base_offset int64, batch_length int32, partition_leader_epoch int32: the front of a batch, outside its CRC.
_FRONT: Final = Struct(">qii")
_new = tuple.__new__


class AppendInfo(NamedTuple):
    """Where a set of batches stands. A duplicate stands where its first append put it."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class AppendableLog(DurableLog):
    """What is written changes the state, and nothing else does."""

    __slots__ = ()

    def append_as_leader(
        self,
        sets: Sequence[CheckedRecords],
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendInfo | KafkaError]:
        """Give offsets to sets of checked batches and write those that are accepted, all with one call.

        A refused set leaves no trace. Raises StorageError when the disk fails, ExhaustedError when
        descriptors or memory have run out: then none counts as appended.
        """
        if self.failure is not None:
            raise self.failure
        if not self._is_topic_id_durable:
            self.persist_topic_id()
        start = self.log_end_offset
        try:
            results = self._append(sets, leader_epoch, origin, transaction_version)
        except OSError as e:
            raise self.fail(e, "appending records to") from e
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self._count_unflushed(start)
        return results

    def _append(
        self, sets: Sequence[CheckedRecords], leader_epoch: int, origin: Origin, transaction_version: int
    ) -> list[AppendInfo | KafkaError]:
        results: list[AppendInfo | KafkaError] = []
        config = self.config
        segment_bytes = config.segment_bytes
        stamped = config.message_timestamp_type == "LogAppendTime"
        segment = self.segments.active
        next_offset = self.log_end_offset
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, next_offset)
        buffers: list[Buffer] = []
        accepted: list[tuple[int, list[BatchMeta]]] = []
        pending_bytes = 0
        staged: Staged | None = None
        max_size, max_time, max_offset = segment.free_bounds(
            segment_bytes, self._roll_after_ms, sum([len(checked.batches) for checked in sets])
        )
        written = 0  # results that stand, whatever becomes of the rest
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
                    self._roll_after_ms,
                    pending_bytes + size,
                    max_timestamp,
                    last_offset,
                    self._clock,
                ):
                    if buffers:
                        self._commit(segment, buffers, pending_bytes, accepted, staged)
                        buffers, accepted, pending_bytes, staged = [], [], 0, None
                        written = len(results)
                    segment = self._roll_at(first_offset)
                    max_size = -1
                if numbered:
                    if staged is None:
                        staged = Staged(self.producers)
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
                                self.log_start_offset,
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
                        AppendInfo, (first_offset, last_offset, append_time_ms, self.log_start_offset, False)
                    )
                )
            if buffers:
                self._commit(segment, buffers, pending_bytes, accepted, staged)
        except (OSError, ExhaustedError) as e:
            if not written or not is_exhausted(e):
                raise
            left = e if isinstance(e, ExhaustedError) else self.fail(e, "appending records to")
            results[written:] = [left] * (len(sets) - written)
        return results

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self.topic_partition}, "
            f"which exceeds the maximum configured segment size of {self.config.segment_bytes}.",
        )

    def _commit(
        self,
        segment: Segment,
        buffers: Sequence[Buffer],
        size: int,
        accepted: Sequence[tuple[int, Sequence[BatchMeta]]],
        staged: Staged | None,
    ) -> None:
        """Write; only what is written changes the state."""
        if staged is not None and staged.completed:
            segment.prepare_to_abort()
        position = segment.size
        segment.write(buffers, size)
        self.appended_bytes += size
        offset, batches = accepted[0]
        self._newest = _new(Position, (segment, offset, position, batches[0].size))
        for offset, batches in accepted:
            for batch in batches:
                offset += batch.last_offset_delta + 1
                segment.index_batch(offset - 1, batch.max_timestamp, batch.size)
        self.log_end_offset = offset
        if staged is not None:
            self.producers.commit(staged)
            if staged.completed or staged.started:
                self._end_transactions(segment, staged)

    def _end_transactions(self, segment: Segment, staged: Staged) -> None:
        producers = self.producers
        for completed in staged.completed:
            stable = producers.stable_offset_after(completed)
            if completed.aborted:
                self._changes += not segment.has_txn_index
                segment.add_aborted(
                    AbortedTxn(completed.producer_id, completed.first_offset, completed.last_offset, stable)
                )
            producers.complete(completed)
        self._update_unstable_offset()

    def append_as_follower(self, records: Buffer) -> AppendInfo:
        """Take over batches as the leader placed them; a partial one at the end is left out.

        Raises CORRUPT_MESSAGE, OFFSET_OUT_OF_RANGE where they do not follow the log end, StorageError.
        """
        self.check_online()
        if not self._is_topic_id_durable:
            self.persist_topic_id()
        batches, size, finding = scan(records)
        if finding not in (OK, PARTIAL) or not batches:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"No good record batch at {size} of a fetch for {self.topic_partition}",
            )
        start = expected = self.log_end_offset
        for batch in batches:
            if batch.base_offset < expected:
                raise self._out_of_range(batch.base_offset, expected, batch.last_offset)
            expected = batch.last_offset + 1
        runs = _addressable_runs(batches, start)
        try:
            for first_offset, run in runs:
                self._take_over(records, run, first_offset)
        except OSError as e:
            raise self.fail(e, "appending records to") from e
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self._count_unflushed(start)
        first_offset, last_offset = runs[0][0], batches[-1].last_offset
        return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, self.log_start_offset, False)

    def _take_over(self, records: Buffer, batches: list[BatchMeta], first_offset: int) -> None:
        """Write neighbouring batches to a segment whose indexes can address all of them."""
        begin = batches[0].position
        size = batches[-1].position + batches[-1].size - begin
        segment = self.segments.active
        max_timestamp = max(batch.max_timestamp for batch in batches)
        if segment.should_roll(
            self.config.segment_bytes,
            self._roll_after_ms,
            size,
            max_timestamp,
            batches[-1].last_offset,
            self._clock,
        ):
            segment = self._roll_at(first_offset)
        staged = Staged(self.producers)
        for batch in batches:
            if batch.producer_id >= 0:
                marker = read_marker(records, batch) if batch.is_control else None
                staged.add(batch, batch.base_offset, None, marker)
            if batch.magic < 2:
                self._forget_epochs(batch)
            elif batch.partition_leader_epoch not in (self.epochs.latest, NO_LEADER_EPOCH):
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        accepted = [(batch.base_offset, (batch,)) for batch in batches]
        self._commit(segment, [memoryview(records)[begin : begin + size]], size, accepted, staged)

    def _forget_epochs(self, batch: BatchMeta) -> None:
        """Records without an epoch: whoever truncates by epochs from here on would cut at the wrong place."""
        if self.epochs.latest != NO_LEADER_EPOCH:
            _log.warning(
                "%s: records of magic %d at offset %d, though later formats came before: its leader epochs "
                "are forgotten",
                self.path,
                batch.magic,
                batch.last_offset,
            )
            self.epochs.clear()

    def roll(self) -> None:
        """Begin a new segment at the log end."""
        self.check_online()
        self._roll_at(self.log_end_offset)

    def _roll_at(self, base_offset: int) -> Segment:
        """Roll, with a snapshot of the producers where the new segment begins; the old one awaits a flush."""
        before = self.segments.active
        try:
            if before.size or before.base_offset != base_offset:
                # First, so that where it cannot be written there is no new segment either.
                self._take_snapshot(base_offset)
            segment = self._roll(base_offset)
        except OSError as e:
            raise self.fail(e, "rolling") from e
        if segment is not before and self.on_rolled is not None:
            self.on_rolled(self.topic_partition)
        return segment


def _addressable_runs(batches: Sequence[BatchMeta], log_end_offset: int) -> list[tuple[int, list[BatchMeta]]]:
    """The batches in runs that each fit a segment's indexes, with the offset where such a segment begins.

    A leader's compaction may leave offsets so far apart that one fetch brings more than one segment takes.
    """
    runs: list[tuple[int, list[BatchMeta]]] = []
    for batch in batches:
        if runs and batch.last_offset - runs[-1][0] <= MAX_INT32:
            runs[-1][1].append(batch)
            continue
        first_offset = batch.base_offset
        if batch.is_wrapper:
            # Which offsets it holds below its own is not told: as far below as an index allows.
            previous = runs[-1][1][-1].last_offset + 1 if runs else log_end_offset
            first_offset = max(previous, batch.last_offset - MAX_INT32)
        runs.append((first_offset, [batch]))
    return runs


def _stage(
    staged: Staged, checked: CheckedRecords, first_offset: int, origin: Origin, transaction_version: int
) -> ProducerBatch | None:
    """Check a set against its producers, all or nothing; the first append of a set that is here already."""
    stage = Staged(staged)
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
