"""The log of one partition: offsets, epochs, producers and watermarks over the segments of local_log.py.

One owner calls it from one thread; only what `begin_flush` gives may run elsewhere.
"""

import uuid
from collections.abc import Callable, Sequence
from enum import IntEnum
from struct import Struct
from typing import TYPE_CHECKING, Final, NamedTuple

from odradek.core.errors import ErrorCode, KafkaError
from odradek.core.types import NO_LEADER_EPOCH, NO_TIMESTAMP, Buffer, TopicPartition
from odradek.log import lookup, retention
from odradek.log.checkpoints import format_epochs, format_partition_metadata
from odradek.log.epoch_cache import EpochCache
from odradek.log.files import FilePool, FileSlice, write_file
from odradek.log.loader import load, load_producers
from odradek.log.local_log import FlushJob, LocalLog, Position
from odradek.log.markers import read_marker
from odradek.log.names import LEADER_EPOCH_CHECKPOINT, PARTITION_METADATA
from odradek.log.producer_entry import ProducerBatch
from odradek.log.producer_state import ProducerState, Staged
from odradek.log.segment import Segment, roll_after_ms
from odradek.log.segments import Segments
from odradek.log.snapshots import SnapshotStore
from odradek.log.txn_index import AbortedTxn
from odradek.records.check import CheckedRecords, Origin
from odradek.records.header import CONTROL_FLAG, LOG_OVERHEAD, BatchMeta
from odradek.records.kernel import OK, PARTIAL, scan_segment
from odradek.runtime.api import Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

# base_offset int64, batch_length int32, partition_leader_epoch int32: the front of a batch, outside its CRC.
_FRONT: Final = Struct(">qii")
_new = tuple.__new__


class Isolation(IntEnum):
    """How far a reader may see."""

    LOG_END = 0
    HIGH_WATERMARK = 1
    TXN_COMMITTED = 2


class AppendInfo(NamedTuple):
    """Where a set of batches stands. A duplicate stands where its first append put it."""

    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class FetchInfo:
    """What a read found. `aborted` is None unless committed data was asked for."""

    __slots__ = ("aborted", "first_offset", "size", "slice")

    def __init__(
        self, first_offset: int, slice: FileSlice | None, aborted: list[tuple[int, int]] | None = None
    ) -> None:
        self.slice = slice
        self.first_offset = first_offset
        self.size = 0 if slice is None else slice.size
        self.aborted = aborted


class Log(LocalLog):
    """A partition's log: log_start_offset <= last_stable_offset <= high_watermark <= log_end_offset."""

    __slots__ = (
        "_bound",
        "_first_unstable_offset",
        "_newest",
        "_stamps_append_time",
        "_topic_id_durable",
        "epochs",
        "high_watermark",
        "log_start_offset",
        "on_rolled",
        "producers",
        "snapshots",
        "topic_id",
    )

    def __init__(
        self,
        runtime: Runtime,
        pool: FilePool,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: "TopicConfig",
        segments: Segments,
        *,
        log_start_offset: int,
        log_end_offset: int,
        recovery_point: int,
        high_watermark: int,
        epochs: EpochCache,
        producers: ProducerState,
        snapshots: SnapshotStore,
    ) -> None:
        super().__init__(
            runtime,
            pool,
            path,
            topic_partition,
            config,
            segments,
            log_end_offset,
            recovery_point,
        )
        self.topic_id = topic_id
        self._topic_id_durable = False
        self.epochs = epochs
        self.producers = producers
        self.snapshots = snapshots
        self.log_start_offset = log_start_offset
        self.high_watermark = min(max(high_watermark, log_start_offset), log_end_offset)
        self.on_rolled: Callable[[Log], None] | None = None
        self._stamps_append_time = config.message_timestamp_type == "LogAppendTime"
        self._first_unstable_offset: int | None = None
        self._bound: Position | None = None
        self._newest: Position | None = None
        self.producers.high_watermark_moved(self.high_watermark)
        self._update_unstable_offset()
        self._check_invariants()

    @classmethod
    def open(
        cls,
        runtime: Runtime,
        path: str,
        topic_partition: TopicPartition,
        topic_id: uuid.UUID | None,
        config: "TopicConfig",
        *,
        recovery_point: int = 0,
        log_start_offset: int = 0,
        high_watermark: int = 0,
        clean_shutdown: bool = False,
        producer_id_expiration_ms: int | None = None,
        pool: FilePool | None = None,
    ) -> "Log":
        """Open the log in a directory, or begin one; an unclean stop is recovered from `recovery_point` on.

        The topic id in the directory counts; the given one is written where there is none. Raises OSError.
        """
        pool = pool or FilePool(runtime.disk)
        loaded = load(
            pool,
            path,
            config,
            runtime.clock.now_ms(),
            recovery_point=recovery_point,
            log_start_offset=log_start_offset,
            clean_shutdown=clean_shutdown,
            producer_id_expiration_ms=producer_id_expiration_ms,
        )
        log = cls(
            runtime,
            pool,
            path,
            topic_partition,
            loaded.topic_id,
            config,
            loaded.segments,
            log_start_offset=loaded.log_start_offset,
            log_end_offset=loaded.log_end_offset,
            recovery_point=loaded.recovery_point,
            high_watermark=high_watermark,
            epochs=loaded.epochs,
            producers=loaded.producers,
            snapshots=loaded.snapshots,
        )
        if loaded.topic_id is None and topic_id is not None:
            log.set_topic_id(topic_id)
        return log

    def set_topic_id(self, topic_id: uuid.UUID) -> None:
        """Bind the directory to a topic. Durable with the first flush: before, there is nothing to lose."""
        assert self.topic_id is None, f"{self.path} belongs to topic {self.topic_id}"
        write_file(
            self._disk, f"{self.path}/{PARTITION_METADATA}", format_partition_metadata(topic_id), sync=False
        )
        self.topic_id = topic_id
        self._topic_id_durable = False

    def update_config(self, config: "TopicConfig") -> None:
        """Take a topic's new settings; the active segment keeps the index sizes it was made with."""
        self.config = config
        self._roll_after_ms = roll_after_ms(config)
        self._stamps_append_time = config.message_timestamp_type == "LogAppendTime"

    def _check_invariants(self) -> None:
        assert (
            self.log_start_offset <= self.last_stable_offset <= self.high_watermark <= self.log_end_offset
        ), (
            f"{self.path}: log start {self.log_start_offset}, last stable {self.last_stable_offset}, "
            f"high watermark {self.high_watermark}, log end {self.log_end_offset}"
        )

    # --- in -------------------------------------------------------------------------------------------

    def append_as_leader(
        self,
        sets: Sequence[CheckedRecords],
        leader_epoch: int,
        origin: Origin = Origin.CLIENT,
        transaction_version: int = 0,
    ) -> list[AppendInfo | KafkaError]:
        """Give offsets to sets of checked batches and write those that are accepted, all with one call.

        A refused set leaves no trace. Raises StorageError when the disk fails: then none counts as appended.
        """
        if self.failure is not None:
            raise self.failure
        results: list[AppendInfo | KafkaError] = []
        config = self.config
        segment = self.segments.active
        next_offset = self.log_end_offset
        if leader_epoch != self.epochs.latest:
            self.epochs.assign(leader_epoch, next_offset)
        buffers: list[Buffer] = []
        accepted: list[tuple[int, list[BatchMeta]]] = []
        pending_bytes = 0
        staged: Staged | None = None
        for checked in sets:
            batches = checked.batches
            buffer = checked.buffer
            size = len(buffer)
            first_offset = next_offset
            if len(batches) == 1:
                batch = batches[0]
                max_timestamp = batch.max_timestamp
                end_offset = first_offset + batch.last_offset_delta + 1
            else:
                max_timestamp = max(batch.max_timestamp for batch in batches)
                end_offset = first_offset + sum(batch.last_offset_delta + 1 for batch in batches)
            if size > config.segment_bytes:
                results.append(self._too_large(size))
                continue
            if self._should_roll(segment, pending_bytes + size, max_timestamp, end_offset - 1):
                if buffers:
                    self._commit(segment, buffers, pending_bytes, accepted, staged)
                    buffers, accepted, pending_bytes, staged = [], [], 0, None
                segment = self._roll_at(first_offset)
            if batches[0].producer_id >= 0:
                if staged is None:
                    staged = Staged(self.producers)
                try:
                    duplicate = self._stage(staged, checked, first_offset, origin, transaction_version)
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
                _FRONT.pack_into(buffer, batch.position, next_offset, batch.size - LOG_OVERHEAD, leader_epoch)
                next_offset += batch.last_offset_delta + 1
            buffers.append(buffer)
            accepted.append((first_offset, batches))
            pending_bytes += size
            append_time_ms = max_timestamp if self._stamps_append_time else NO_TIMESTAMP
            results.append(
                _new(
                    AppendInfo, (first_offset, next_offset - 1, append_time_ms, self.log_start_offset, False)
                )
            )
        if buffers:
            self._commit(segment, buffers, pending_bytes, accepted, staged)
            if self.log_end_offset - self.recovery_point >= config.flush_messages:
                self.flush()
        return results

    def _too_large(self, size: int) -> KafkaError:
        return KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"Message batch size is {size} bytes in append to partition {self.topic_partition}, "
            f"which exceeds the maximum configured segment size of {self.config.segment_bytes}.",
        )

    def _should_roll(self, segment: Segment, size: int, max_timestamp: int, last_offset: int) -> bool:
        try:
            return segment.should_roll(
                self.config.segment_bytes, self._roll_after_ms, size, max_timestamp, last_offset, self._clock
            )
        except OSError as e:
            raise self.fail(e, "reading the active segment of") from e

    def _stage(
        self,
        staged: Staged,
        checked: CheckedRecords,
        first_offset: int,
        origin: Origin,
        transaction_version: int,
    ) -> ProducerBatch | None:
        """Check a set against its producers; gives the first append of a set that is here already."""
        batches = checked.batches
        if len(batches) == 1 and not batches[0].attributes & CONTROL_FLAG:
            return staged.add(batches[0], first_offset, origin)
        stage = Staged(staged)
        offset = first_offset
        for batch in batches:
            if batch.producer_id >= 0:
                marker = read_marker(checked.buffer, batch) if batch.is_control else None
                duplicate = stage.add(batch, offset, origin, marker, transaction_version)
                if duplicate is not None:
                    return duplicate
            offset += batch.last_offset_delta + 1
        staged.merge(stage)
        return None

    def _commit(
        self,
        segment: Segment,
        buffers: Sequence[Buffer],
        size: int,
        accepted: Sequence[tuple[int, Sequence[BatchMeta]]],
        staged: Staged | None,
    ) -> None:
        """Write; only what is written changes the state."""
        position = segment.size
        self._write(segment, buffers, size)
        try:
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
        except OSError as e:
            raise self.fail(e, "indexing") from e

    def _end_transactions(self, segment: Segment, staged: Staged) -> None:
        producers = self.producers
        for completed in staged.completed:
            stable = producers.stable_offset_after(completed)
            if completed.aborted:
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
        batches, size, finding = scan_segment(records, BatchMeta)
        if finding not in (OK, PARTIAL) or not batches:
            raise KafkaError(
                ErrorCode.CORRUPT_MESSAGE,
                f"No good record batch at {size} of a fetch for {self.topic_partition}",
            )
        expected = self.log_end_offset
        for batch in batches:
            if batch.base_offset < expected:
                raise self._out_of_range(batch.base_offset, expected, batch.last_offset)
            expected = batch.last_offset + 1
        first_offset, last_offset = batches[0].base_offset, batches[-1].last_offset
        segment = self.segments.active
        if self._should_roll(segment, size, max(b.max_timestamp for b in batches), last_offset):
            segment = self._roll_at(first_offset)
        staged = Staged(self.producers)
        for batch in batches:
            if batch.producer_id >= 0:
                marker = read_marker(records, batch) if batch.is_control else None
                staged.add(batch, batch.base_offset, None, marker)
            if batch.partition_leader_epoch not in (self.epochs.latest, NO_LEADER_EPOCH):
                self.epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        accepted = [(batch.base_offset, (batch,)) for batch in batches]
        self._commit(segment, [memoryview(records)[:size]], size, accepted, staged)
        if self.log_end_offset - self.recovery_point >= self.config.flush_messages:
            self.flush()
        return AppendInfo(first_offset, last_offset, NO_TIMESTAMP, self.log_start_offset, False)

    def roll(self) -> None:
        """Begin a new segment at the log end."""
        self.check_online()
        self._roll_at(self.log_end_offset)

    def _roll_at(self, base_offset: int) -> Segment:
        """Roll, with a snapshot of the producers where the new segment begins; the old one awaits a flush."""
        before = self.segments.active
        try:
            segment = self._roll(base_offset)
            if segment is not before:
                self._take_snapshot(base_offset)
        except OSError as e:
            raise self.fail(e, "rolling") from e
        if segment is not before and self.on_rolled is not None:
            self.on_rolled(self)
        return segment

    def _take_snapshot(self, offset: int) -> None:
        newest = self.snapshots.offsets[-1] if self.snapshots.offsets else self.log_start_offset
        if offset > newest:
            self.snapshots.take(self.producers.entries.values(), offset)
            self._directory_dirty = True

    # --- out ------------------------------------------------------------------------------------------

    def read(
        self, offset: int, max_bytes: int, isolation: Isolation, min_one_message: bool = True
    ) -> FetchInfo:
        """Batches from the one that holds an offset on, up to what the isolation lets be seen.

        At least one whole batch when `min_one_message`, else perhaps less. Raises OFFSET_OUT_OF_RANGE.
        """
        if self.failure is not None:
            raise self.failure
        end = self.log_end_offset
        if not self.log_start_offset <= offset <= end:
            raise self._out_of_range(offset, self.log_start_offset, end)
        committed = isolation is Isolation.TXN_COMMITTED
        if isolation is Isolation.LOG_END:
            bound = end
        else:
            bound = self.last_stable_offset if committed else self.high_watermark
        if offset >= bound:
            return FetchInfo(offset, None, [] if committed else None)
        try:
            newest = self._newest
            found = newest if newest is not None and newest.base_offset == offset else self._find(offset)
            if found is None:
                return FetchInfo(offset, None, [] if committed else None)
            segment, base_offset, position, batch_size = found
            last_position = self._bound_position(segment, bound)
            size = min(last_position - position, max(max_bytes, batch_size if min_one_message else 0))
            if size <= 0:
                return FetchInfo(offset, None, [] if committed else None)
            aborted = self._aborted(segment, offset, position + size) if committed else None
            return FetchInfo(base_offset, segment.slice(position, size), aborted)
        except OSError as e:
            raise self.fail(e, "reading from") from e

    def bound(self, isolation: Isolation) -> int:
        """The first offset that a reader may not see."""
        if isolation is Isolation.LOG_END:
            return self.log_end_offset
        return self.last_stable_offset if isolation is Isolation.TXN_COMMITTED else self.high_watermark

    def _bound_position(self, segment: Segment, bound: int) -> int:
        """Where in a segment the batches below an offset end."""
        if segment is self.segments.active:
            if bound == self.log_end_offset:
                return segment.size
        else:
            following = self.segments.after(segment)
            if following is None or following.base_offset <= bound:
                return segment.size
        known = self._bound
        if known is None or known.segment is not segment or known.base_offset != bound:
            found = segment.translate(bound)
            position = segment.size if found is None else found[1]
            self._bound = known = Position(segment, bound, position, 0)
        return known.position

    def _aborted(self, segment: Segment, offset: int, end_position: int) -> list[tuple[int, int]]:
        """(producer id, first offset) of the aborted transactions that a read may touch."""
        upper_bound = segment.offset_index.upper_bound(end_position)
        if upper_bound is None:
            following = self.segments.after(segment)
            upper_bound = self.log_end_offset if following is None else following.base_offset
        found: list[tuple[int, int]] = []
        for later in self.segments.between(segment.base_offset, self.log_end_offset + 1):
            if later.collect_aborted(offset, upper_bound, found):
                break
        return found

    @property
    def last_stable_offset(self) -> int:
        """Everything below it is decided and committed."""
        unstable = self._first_unstable_offset
        return self.high_watermark if unstable is None or unstable > self.high_watermark else unstable

    def _update_unstable_offset(self) -> None:
        first = self.producers.first_unstable_offset
        self._first_unstable_offset = None if first is None else max(first, self.log_start_offset)

    def advance_high_watermark(self, offset: int) -> bool:
        """Let readers see further; True when it moved. It never goes back."""
        if offset <= self.high_watermark:
            return False
        assert offset <= self.log_end_offset, f"high watermark {offset} beyond {self.log_end_offset}"
        self._set_high_watermark(offset)
        return True

    def _set_high_watermark(self, offset: int) -> None:
        self.high_watermark = offset
        if self.producers.has_transactions:
            self.producers.high_watermark_moved(offset)
            self._update_unstable_offset()

    def offset_for_timestamp(self, timestamp: int) -> lookup.TimestampOffset | None:
        """The first record at or after a time, or what one of ListOffsets' special timestamps means."""
        self.check_online()
        try:
            return lookup.offset_for_timestamp(self, timestamp)
        except OSError as e:
            raise self.fail(e, "looking up a timestamp in") from e

    # --- epochs ---------------------------------------------------------------------------------------

    @property
    def latest_epoch(self) -> int:
        return self.epochs.latest

    def assign_epoch_start_offset(self, epoch: int, offset: int) -> None:
        self.epochs.assign(epoch, offset)

    def end_offset_for_epoch(self, epoch: int) -> tuple[int, int]:
        """(newest epoch at or before the asked one, where it ends); -1 for both where unknown."""
        return self.epochs.end_offset_for(epoch, self.log_end_offset)

    # --- where the log begins and ends ----------------------------------------------------------------

    def increment_log_start_offset(self, offset: int) -> bool:
        """Records below an offset are gone. Raises OFFSET_OUT_OF_RANGE beyond the high watermark."""
        self.check_online()
        if offset > self.high_watermark:
            raise KafkaError(
                ErrorCode.OFFSET_OUT_OF_RANGE,
                f"Cannot increment the log start offset to {offset} of partition {self.topic_partition} "
                f"since it is larger than the high watermark {self.high_watermark}",
            )
        if offset <= self.log_start_offset:
            return False
        self.log_start_offset = offset
        self.epochs.truncate_from_start(offset)
        self.producers.high_watermark_moved(offset)
        self._update_unstable_offset()
        self._check_invariants()
        return True

    def retain(self, now_ms: int) -> int:
        """Delete the segments that retention.ms, retention.bytes and the log start leave behind; how many."""
        self.check_online()
        try:
            gone = retention.breached(self, now_ms)
            if not gone:
                return 0
            if len(gone) == len(self.segments):
                self._roll_at(self.log_end_offset)
            following = self.segments.after(gone[-1])
            assert following is not None
            self.increment_log_start_offset(following.base_offset)
            snapshots = [self.snapshots.set_aside(segment.base_offset) for segment in gone]
            self._remove_segments(gone, [path for path in snapshots if path is not None])
            return len(gone)
        except OSError as e:
            raise self.fail(e, "deleting old segments of") from e

    def truncate_to(self, offset: int) -> bool:
        """Drop the records at and above an offset, durably; False where there are none.

        What is dropped must not come back after a crash, behind the records that take its place.
        """
        self.check_online()
        if offset >= self.log_end_offset:
            return False
        if offset < self.segments.first.base_offset:
            self.truncate_fully_and_start_at(offset)
            return True
        try:
            gone = [segment for segment in self.segments.all() if segment.base_offset > offset]
            if gone:
                self.segments.remove(gone)
                for segment in gone:
                    segment.unlink()
            self.snapshots.remove_outside(min(self.log_start_offset, offset), offset)
            self._disk.fsync_dir(self.path)
            self.segments.active.truncate_to(offset, self._clock.now_ms())
            self._truncations += 1
            self._bound = self._newest = None
            self.log_end_offset = offset
            self.recovery_point = min(self.recovery_point, offset)
            self.log_start_offset = min(self.log_start_offset, offset)
            self.epochs.truncate_from_end(offset)
            load_producers(self.producers, self.snapshots, self.segments, self.log_start_offset, offset)
        except OSError as e:
            raise self.fail(e, "truncating") from e
        self._set_high_watermark(min(self.high_watermark, offset))
        self._update_unstable_offset()
        self._check_invariants()
        return True

    def truncate_fully_and_start_at(self, offset: int) -> None:
        """Drop everything; the next record gets the offset."""
        self.check_online()
        try:
            gone = self.segments.all()
            for segment in gone:
                segment.unlink()
            self.segments.replace_all(self._new_segment(offset))
            self.snapshots.remove_outside(offset, offset)
            self._disk.fsync_dir(self.path)
        except OSError as e:
            raise self.fail(e, "truncating") from e
        self._truncations += 1
        self._bound = self._newest = None
        self.epochs.clear()
        self.producers.load([], offset)
        self.log_start_offset = self.log_end_offset = self.recovery_point = offset
        self._set_high_watermark(offset)
        self._update_unstable_offset()
        self._check_invariants()

    # --- durability and the end -----------------------------------------------------------------------

    @property
    def is_flush_due(self) -> bool:
        """Whether flush.ms has passed with something to flush."""
        waited_ms = self._clock.now_ms() - self.last_flush_ms
        return self.log_end_offset > self.recovery_point and waited_ms >= self.config.flush_ms

    def begin_flush(self, up_to: int | None = None, *, closing: bool = False) -> FlushJob | None:
        """What to run, here or elsewhere, to make the log durable up to an offset; None where it is already.

        When it has run, `finish_flush` is told; when it raised, `fail`.
        """
        self.check_online()
        up_to = self.log_end_offset if up_to is None else up_to
        if up_to <= self.recovery_point:
            return None
        paths = self.snapshots.unsynced()
        if not self._topic_id_durable and self.topic_id is not None:
            paths.append(f"{self.path}/{PARTITION_METADATA}")
            self._topic_id_durable = True
        try:
            return self._flush_job(up_to, self._epochs_to_write(), paths, closing=closing)
        except OSError as e:
            raise self.fail(e, "flushing") from e

    def _epochs_to_write(self) -> list[tuple[str, bytes]]:
        if not self.epochs.dirty:
            return []
        self.epochs.dirty = False
        return [(f"{self.path}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(self.epochs.entries))]

    def flush(self, up_to: int | None = None) -> None:
        """Make the log durable up to an offset, here and now."""
        job = self.begin_flush(up_to)
        if job is not None:
            self._run(job)

    def _run(self, job: FlushJob) -> None:
        try:
            job.run()
        except OSError as e:
            raise self.fail(e, "flushing") from e
        self.finish_flush(job)

    def begin_close(self) -> FlushJob | None:
        """Prepare a clean stop; gives what is left to write. Nothing may be appended any more."""
        self.check_online()
        try:
            self.segments.active.seal_if_open()
            self._take_snapshot(self.log_end_offset)
        except OSError as e:
            raise self.fail(e, "closing") from e
        job = self.begin_flush(closing=True)
        epochs = self._epochs_to_write()
        if job is None and epochs:
            # No record hangs on these epochs, and a torn file is rebuilt from the log: nothing to sync.
            job = FlushJob(self._disk, self.recovery_point, self._truncations, drafts=epochs)
        return job

    def close(self, clean: bool = True) -> None:
        """Give the files up. Closed cleanly, everything is durable and the next start need not look."""
        if clean and self.failure is None:
            job = self.begin_close()
            if job is not None:
                self._run(job)
        for segment in self.segments.all():
            segment.close()

    def move(self, path: str) -> None:
        """Rename the directory; whoever reads from it reads on."""
        try:
            self._disk.rename(self.path, path)
        except OSError as e:
            raise self.fail(e, "renaming") from e
        self.path = path
        self.snapshots.directory = path
        for segment in self.segments.all():
            segment.moved(path)

    def delete(self) -> None:
        """Remove the directory and everything in it."""
        for segment in self.segments.all():
            segment.close()
        try:
            for name in self._disk.listdir(self.path):
                self._disk.unlink(f"{self.path}/{name}")
            self._disk.rmdir(self.path)
        except OSError as e:
            raise self.fail(e, "deleting") from e
