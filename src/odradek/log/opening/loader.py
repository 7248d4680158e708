"""Opens the log in a partition's directory: cleans up, recovers after an unclean stop, rebuilds the state.

The order is Apache Kafka's: temporary files, swapped segments, segments, recovery above the recovery point,
then offsets, epochs and producers.
"""

import logging
import uuid
from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from odradek.core.errors import KafkaError
from odradek.log.checkpoints import CheckpointError, format_epochs, parse_epochs, parse_partition_metadata
from odradek.log.files import FilePool, read_file, unlink_if_exists, write_file
from odradek.log.names import (
    LEADER_EPOCH_CHECKPOINT,
    LOG_SUFFIX,
    PARTITION_METADATA,
    SNAPSHOT_SUFFIX,
    TXN_INDEX_SUFFIX,
    UNFLUSHED_SUFFIX,
    file_name,
    offset_of,
)
from odradek.log.opening.leftovers import resolve_leftovers
from odradek.log.opening.recovery import recover_segment
from odradek.log.opening.splitting import OffsetOverflowError, split_segment
from odradek.log.opening.steps import Steps
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.producers.markers import read_marker
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState
from odradek.log.segments.index_file import CorruptIndexError
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from odradek.records.header import BatchMeta
from odradek.runtime.api import Disk

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig

_log = logging.getLogger(__name__)


class LoadedLog(NamedTuple):
    """`is_dir_durable`: it was closed cleanly and has records, so every entry of the directory is durable.
    `unflushed`: end offsets of segments that may not be durable. `index_debts`: segments below the recovery
    point whose indexes may not be durable.
    """

    segments: Segments
    log_start_offset: int
    log_end_offset: int
    recovery_point: int
    epochs: EpochCache
    producers: ProducerState
    snapshots: ProducerSnapshotFiles
    topic_id: uuid.UUID | None
    unflushed: list[int]
    index_debts: list[Segment]
    is_dir_durable: bool


def load(
    pool: FilePool,
    path: str,
    config: "TopicConfig",
    now_ms: int,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean_shutdown: bool,
    producer_id_expiration_ms: int | None,
    progress: Callable[[int], None] | None = None,
) -> Steps[LoadedLog]:
    """Load the log. If a segment must be split first, split it and start again."""
    while True:
        try:
            loaded = yield from _load(
                pool,
                path,
                config,
                now_ms,
                recovery_point=recovery_point,
                log_start_offset=log_start_offset,
                clean_shutdown=clean_shutdown,
                producer_id_expiration_ms=producer_id_expiration_ms,
                progress=progress,
            )
            return loaded
        except OffsetOverflowError as e:
            _log.warning("Splitting a segment: %s", e)
            yield partial(split_segment, pool.disk, path, e.base_offset)


def _load(
    pool: FilePool,
    path: str,
    config: "TopicConfig",
    now_ms: int,
    *,
    recovery_point: int,
    log_start_offset: int,
    clean_shutdown: bool,
    producer_id_expiration_ms: int | None,
    progress: Callable[[int], None] | None,
) -> Steps[LoadedLog]:
    disk = pool.disk
    if not disk.exists(path):
        disk.mkdir(path)
        return _begin(pool, path, config, now_ms, log_start_offset, None)
    names = resolve_leftovers(pool, path, disk.listdir(path))
    unflushed = _unflushed(names, recovery_point)
    topic_id = _read_topic_id(disk, path) if PARTITION_METADATA in names else None
    found = _find_segments(pool, path, names, config, now_ms)
    if not found:
        _tell_if_lost(path, log_start_offset, recovery_point)
        _keep_marks(disk, path, names, ())
        snapshots = ProducerSnapshotFiles(disk, path, _snapshot_offsets(names))
        snapshots.remove_outside(log_start_offset, log_start_offset)
        if LEADER_EPOCH_CHECKPOINT in names:
            _store_epochs(disk, path, EpochCache())
        return _begin(pool, path, config, now_ms, log_start_offset, topic_id)
    segments = Segments(found)
    # Older snapshots may have open transactions that ended in deleted records.
    log_start_offset = max(log_start_offset, segments.first.base_offset)
    epochs = EpochCache()
    if LEADER_EPOCH_CHECKPOINT in names or clean_shutdown or recovery_point > segments.first.base_offset:
        epochs = _read_epochs(disk, path, segments, log_start_offset)
    stored_epochs = epochs.entries
    snapshots = ProducerSnapshotFiles(disk, path, _snapshot_offsets(names))
    producers = ProducerState()

    log_end_offset: int | None = None
    recover_from = _broken_txn_index(segments)
    if not clean_shutdown:
        unsure_from = _unsure_from(segments, recovery_point)
        recover_from = unsure_from if recover_from is None else min(unsure_from, recover_from)
    elif recover_from is None:
        log_end_offset, recover_from = _check_end(segments.active, "it was closed cleanly")
    if recover_from is not None:
        log_end_offset = yield from _recover(
            disk,
            path,
            segments,
            epochs,
            producers,
            snapshots,
            log_start_offset,
            recover_from,
            unflushed=unflushed,
            progress=progress,
        )
    assert log_end_offset is not None
    if log_end_offset < log_start_offset:
        _log.warning(
            "%s ends at offset %d, before its log start offset %d: starting with an empty log",
            path,
            log_end_offset,
            log_start_offset,
        )
        for segment in segments.all():
            segment.unlink()
        _keep_marks(disk, path, names, ())
        snapshots.remove_outside(log_start_offset, log_start_offset)
        snapshots.remove_doubted()
        _store_epochs(disk, path, EpochCache())
        return _begin(pool, path, config, now_ms, log_start_offset, topic_id)

    _tell_if_lost(path, log_end_offset, recovery_point)
    epochs.truncate_from_end(log_end_offset)
    if stored_epochs and stored_epochs[-1] not in epochs.entries:
        _store_epochs(disk, path, epochs)
    epochs.truncate_from_start(log_start_offset)
    snapshots.remove_outside(log_start_offset, log_end_offset)
    snapshots.remove_strays(segments.base_offsets)
    if recover_from is None:
        load_producers(producers, snapshots, segments, log_start_offset, log_end_offset)
        if producer_id_expiration_ms is not None:
            producers.expire(now_ms, producer_id_expiration_ms)
    if log_end_offset > (snapshots.offsets[-1] if snapshots.offsets else log_start_offset):
        if recover_from is None:
            _log.warning(
                "%s is missing: rebuilt the producer state from the log", snapshots.path(log_end_offset)
            )
        snapshots.take(producers.entries.values(), log_end_offset)
    snapshots.remove_doubted()
    unflushed = [end_offset for end_offset in unflushed if end_offset <= log_end_offset]
    _keep_marks(disk, path, names, unflushed)
    return LoadedLog(
        segments,
        log_start_offset,
        log_end_offset,
        log_end_offset if recover_from is None else min(recovery_point, log_end_offset),
        epochs,
        producers,
        snapshots,
        topic_id,
        unflushed,
        [] if recover_from is None else _index_debts(segments, recover_from, recovery_point),
        is_dir_durable=recover_from is None and log_end_offset > 0,
    )


def _unflushed(names: list[str], recovery_point: int) -> list[int]:
    """End offsets of segments that may not be durable."""
    ends = [offset_of(name) or 0 for name in names if name.endswith(UNFLUSHED_SUFFIX)]
    return [end_offset for end_offset in ends if end_offset > recovery_point]


def _keep_marks(disk: Disk, path: str, names: list[str], kept: Sequence[int]) -> None:
    """Remove the marks that are obsolete."""
    for name in names:
        if name.endswith(UNFLUSHED_SUFFIX) and (offset_of(name) or 0) not in kept:
            unlink_if_exists(disk, f"{path}/{name}")


def _snapshot_offsets(names: list[str]) -> list[int]:
    return [offset_of(name) or 0 for name in names if name.endswith(SNAPSHOT_SUFFIX)]


def _tell_if_lost(path: str, log_end_offset: int, recovery_point: int) -> None:
    if log_end_offset < recovery_point:
        _log.warning(
            "%s ends at offset %d, but was durable up to %d: records at its end are lost",
            path,
            log_end_offset,
            recovery_point,
        )


def _begin(
    pool: FilePool,
    path: str,
    config: "TopicConfig",
    now_ms: int,
    log_start_offset: int,
    topic_id: uuid.UUID | None,
) -> LoadedLog:
    """An empty log."""
    segment = Segment.create(pool, path, log_start_offset, config, now_ms)
    producers = ProducerState()
    producers.end_offset = log_start_offset
    return LoadedLog(
        Segments([segment]),
        log_start_offset,
        log_start_offset,
        log_start_offset,
        EpochCache(),
        producers,
        ProducerSnapshotFiles(pool.disk, path),
        topic_id,
        [],
        [],
        is_dir_durable=False,
    )


def _read_topic_id(disk: Disk, path: str) -> uuid.UUID | None:
    """A file torn by an unclean stop was never synced, so no flushed record depends on it."""
    try:
        return parse_partition_metadata(read_file(disk, f"{path}/{PARTITION_METADATA}"))
    except CheckpointError as e:
        _log.warning("%s/%s cannot be read: %s", path, PARTITION_METADATA, e)
        return None


def _read_epochs(disk: Disk, path: str, segments: Segments, log_start_offset: int) -> EpochCache:
    """Read the epochs, or rebuild them from the log. The file may be newer than the log start checkpoint:
    then it lacks the epochs of records that came back."""
    try:
        content = read_file(disk, f"{path}/{LEADER_EPOCH_CHECKPOINT}")
        if not content:
            raise CheckpointError("it is empty")
        epochs = EpochCache(parse_epochs(content))
        if not _lacks_epochs(epochs, segments, log_start_offset):
            return epochs
        _log.info("%s/%s starts after the log start offset: rebuilding it", path, LEADER_EPOCH_CHECKPOINT)
    except CheckpointError as e:
        _log.warning("%s/%s cannot be read, rebuilding it from the log: %s", path, LEADER_EPOCH_CHECKPOINT, e)
    except FileNotFoundError:
        if not segments.size_bytes:
            return EpochCache()
        _log.warning("%s/%s is missing, rebuilding it from the log", path, LEADER_EPOCH_CHECKPOINT)
    epochs = EpochCache()
    for segment in segments.all():
        try:
            for batch in segment.scan(0):
                if batch.partition_leader_epoch > epochs.latest:
                    epochs.assign(batch.partition_leader_epoch, batch.base_offset)
        except KafkaError as e:
            _log.warning("%s", e)
            break
    epochs.version += 1
    return epochs


def _lacks_epochs(epochs: EpochCache, segments: Segments, log_start_offset: int) -> bool:
    if epochs.earliest is not None and epochs.earliest[1] <= log_start_offset:
        return False
    segment = segments.floor(log_start_offset)
    if segment is None or not segment.size:
        return False
    try:
        found = segment.translate(log_start_offset)
        first = None if found is None else next(segment.scan(found[1]), None)
    except KafkaError:
        return False  # a read reports it
    if first is None or first.partition_leader_epoch < 0:
        return False
    return epochs.earliest is None or first.base_offset < epochs.earliest[1]


def _store_epochs(disk: Disk, path: str, epochs: EpochCache) -> None:
    """Write the epochs without those of lost records: after another crash they would contradict new
    records."""
    write_file(disk, f"{path}/{LEADER_EPOCH_CHECKPOINT}", format_epochs(epochs.entries))


def _find_segments(
    pool: FilePool, path: str, names: list[str], config: "TopicConfig", now_ms: int
) -> list[Segment]:
    known = frozenset(names)
    segments = []
    for name in names:
        base_offset = offset_of(name) if name.endswith(LOG_SUFFIX) else None
        if base_offset is not None:
            size = pool.disk.stat(f"{path}/{name}").size
            has_txn_index = file_name(base_offset, TXN_INDEX_SUFFIX) in known
            segments.append(
                Segment(pool, path, base_offset, config, now_ms, size=size, has_txn_index=has_txn_index)
            )
    return segments


def _broken_txn_index(segments: Segments) -> int | None:
    """The base offset of the first segment with an invalid transaction index. Recovery rebuilds it."""
    for segment in segments.all():
        if segment.has_txn_index:
            try:
                _ = segment.txn_index.entries
            except CorruptIndexError as e:
                _log.warning("Recovering from offset %d: %s", segment.base_offset, e)
                return segment.base_offset
    return None


def _unsure_from(segments: Segments, recovery_point: int) -> int:
    """The offset to recover from after a crash. A segment that ended at the recovery point may have been
    flushed before it was sealed: then it may not be cut after its last batch, and the time index may lack its
    last entry."""
    segment = segments.floor(recovery_point)
    if segment is None or segment.base_offset != recovery_point:
        return recovery_point
    last = segments.before(segment)
    if last is None or (_check_end(last, "it was flushed")[1] is None and last.is_indexed_to_the_end()):
        return recovery_point
    return last.base_offset


def _index_debts(segments: Segments, recover_from: int, recovery_point: int) -> list[Segment]:
    """The recovered segments below the recovery point, and the segment that ended there: after a kill its
    indexes are valid, but only in the page cache."""
    segment = segments.floor(recovery_point)
    last = None if segment is None or segment.base_offset != recovery_point else segments.before(segment)
    first = recover_from if last is None else min(recover_from, last.base_offset)
    return [s for s in segments.between(first, recovery_point) if s is not segments.active]


def _check_end(segment: Segment, because: str) -> tuple[int | None, int | None]:
    """(end offset, offset to recover from) of a segment that must end with a complete batch. One of them is
    None."""
    try:
        end_offset, end = segment.next_offset()
        if end == segment.size:
            return end_offset, None
        _log.warning("%s: no complete batch at byte offset %d, although %s", segment.file.path, end, because)
    except KafkaError as e:
        _log.warning("%s, although %s", e, because)
    return None, segment.base_offset


def _recover(
    disk: Disk,
    path: str,
    segments: Segments,
    epochs: EpochCache,
    producers: ProducerState,
    snapshots: ProducerSnapshotFiles,
    log_start_offset: int,
    recover_from: int,
    *,
    unflushed: Sequence[int],
    progress: Callable[[int], None] | None,
) -> Steps[int]:
    """Recover the segments from the one that contains an offset. Returns the log end offset.

    Snapshots above its start may include lost records, so they are taken again. Nothing is kept after an
    invalid batch. Missing offsets between valid batches are fine: a cleaner removed them, here or on a
    leader. But a segment that was not durable may have lost its end exactly between two batches. Only its
    .unflushed mark shows this. Then the segments after it are deleted: otherwise a producer could not write
    the lost records again.
    """
    todo = segments.between(recover_from, segments.active.base_offset + 1)
    first = todo[0]
    snapshots.doubt_above(first.base_offset)
    load_producers(producers, snapshots, segments, log_start_offset, first.base_offset)
    next_offset, truncated = first.base_offset, 0
    for index, segment in enumerate(todo):
        if index and segment.base_offset > log_start_offset:
            snapshots.take(producers.entries.values(), segment.base_offset)
        next_offset, truncated = yield from recover_segment(
            disk,
            segment,
            epochs,
            producers,
            next_offset,
            log_start_offset,
            progress=progress,
        )
        later = todo[index + 1 :]
        if later and (truncated or any(next_offset < end <= later[0].base_offset for end in unflushed)):
            _log.warning("Deleting the %d segments after %s", len(later), segment.file.path)
            segments.remove(later)
            for gone in later:
                gone.unlink()
            disk.fsync_dir(path)
            break
    if truncated:
        # The removed bytes must not come back after another crash, behind new batches.
        disk.fdatasync(segments.active.file.open().fd)
    left = segments.between(recover_from, segments.active.base_offset + 1)
    _sync_aborts(disk, path, [segment for segment in left if segment.has_txn_index])
    return next_offset


def _sync_aborts(disk: Disk, path: str, segments: Sequence[Segment]) -> None:
    """Sync the rebuilt transaction indexes, also below the recovery point, where no later recovery rebuilds
    them."""
    for segment in segments:
        for descriptor in segment.to_sync():
            disk.fdatasync(descriptor.fd)
    if segments:
        disk.fsync_dir(path)


def load_producers(
    producers: ProducerState,
    snapshots: ProducerSnapshotFiles,
    segments: Segments,
    log_start_offset: int,
    end_offset: int,
) -> None:
    """Load the producers at an offset: from the newest snapshot before it and the records since then."""
    entries, loaded_offset = snapshots.load_newest(log_start_offset, end_offset)
    producers.load(entries, loaded_offset)
    replay_producers(producers, segments, end_offset)


def replay_producers(producers: ProducerState, segments: Segments, end_offset: int) -> None:
    """Replay batches into the producers, from their end offset up to an offset."""
    start = producers.end_offset
    for segment in segments.between(start, end_offset) if start < end_offset else ():
        try:
            _replay_segment(producers, segment, max(start, segment.base_offset), end_offset)
        except KafkaError as e:
            _log.error("The producer state may be incomplete: %s", e)
    producers.end_offset = end_offset


def _replay_segment(producers: ProducerState, segment: Segment, start: int, end_offset: int) -> None:
    found = segment.translate(start)
    if found is None:
        return
    for batch in segment.scan(found[1]):
        if batch.base_offset >= end_offset:
            break
        if batch.producer_id >= 0:
            marker = None
            if batch.is_control:
                marker = read_marker(segment.read_batch(batch), BatchMeta(0, *batch[1:]))
            completed = producers.replay(batch, marker)
            if completed is not None:
                producers.complete(completed)
