"""Truncator: removes the end of a log, durably.

After a crash the removed records must not come back behind newer ones. The same holds for their leader
epochs, and for checkpoints that say they are durable.
"""

from collections.abc import Callable

from odradek.core.types import TopicPartition
from odradek.log.opening.loader import load_producers
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.compaction import Compaction
from odradek.log.parts.durability import Durability
from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.reading import BatchReader
from odradek.log.parts.settling import Settling
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState


class Truncator:
    """`on_truncated` is called when the recovery point checkpoint may be too high: new records below it would
    count as durable before the next checkpoint.

    After an error in the middle the log is unusable: every method then raises StorageError.
    """

    __slots__ = (
        "_bounds",
        "_compaction",
        "_dir",
        "_durability",
        "_local_log",
        "_producers",
        "_reader",
        "_settling",
        "_snapshots",
        "on_truncated",
    )

    def __init__(
        self,
        directory: PartitionDir,
        local_log: LocalLog,
        bounds: Bounds,
        durability: Durability,
        settling: Settling,
        producers: ProducerState,
        snapshots: ProducerSnapshotFiles,
        reader: BatchReader,
        compaction: Compaction,
    ) -> None:
        self._dir = directory
        self._local_log = local_log
        self._bounds = bounds
        self._durability = durability
        self._settling = settling
        self._producers = producers
        self._snapshots = snapshots
        self._reader = reader
        self._compaction = compaction
        self.on_truncated: Callable[[TopicPartition], None] | None = None

    def truncate_to(self, offset: int) -> bool:
        """Remove the records at and above an offset. Returns False if there are none.

        Batches are removed as a whole: the log then ends at the start of the batch that contains the offset.
        An epoch that starts there goes in any case: a leader that wrote nothing may have begun one.
        """
        bounds, local_log, durability = self._bounds, self._local_log, self._durability
        if offset >= bounds.log_end_offset:
            self._forget_epochs(offset)
            return False
        if offset < local_log.segments.first.base_offset:
            self.restart_at(offset)
            return True
        was_durable = durability.restart_offset
        try:
            local_log.cut_after(offset)
            self._snapshots.remove_outside(min(bounds.log_start_offset, offset), offset)
            durability.marks.remove(durability.marks.beyond(offset))
            self._compaction.discard_swaps()
            self._dir.disk.fsync_dir(self._dir.path)
            offset = local_log.truncate_active(offset)
            self._reader.forget_positions()
            self._compaction.truncated(offset)
            bounds.truncate_to(offset)
            durability.truncated(offset)
            self._settling.truncated(offset)
            durability.epoch_file.epochs.truncate_from_end(offset)
            durability.epoch_file.persist()
            start = bounds.log_start_offset
            load_producers(self._producers, self._snapshots, local_log.segments, start, offset)
        except OSError as e:
            raise self._dir.fail(e, "truncating", halfway=True) from e
        bounds.producers_reloaded()
        self._report(was_durable)
        return True

    def _forget_epochs(self, offset: int) -> None:
        epochs = self._durability.epoch_file.epochs
        version = epochs.version
        epochs.truncate_from_end(offset)
        if epochs.version != version:
            try:
                self._durability.epoch_file.persist()
            except OSError as e:
                raise self._dir.fail(e, "truncating", halfway=True) from e

    def restart_at(self, offset: int) -> None:
        """Remove all records. The next record gets the given offset."""
        durability = self._durability
        was_durable = durability.restart_offset
        try:
            self._local_log.replace_all(offset)
            self._snapshots.remove_outside(offset, offset)
            durability.marks.remove(durability.marks.end_offsets)
            self._compaction.discard_swaps()
            self._dir.disk.fsync_dir(self._dir.path)
            durability.epoch_file.epochs.clear()
            durability.epoch_file.persist()
        except OSError as e:
            raise self._dir.fail(e, "truncating", halfway=True) from e
        self._reader.forget_positions()
        self._compaction.truncated(offset)
        self._producers.load([], offset)
        self._bounds.restart_at(offset)
        durability.restarted(offset)
        self._settling.restarted(offset)
        self._bounds.producers_reloaded()
        self._report(was_durable)

    def _report(self, was_durable: int) -> None:
        if self.on_truncated is not None and self._durability.restart_offset < was_durable:
            self.on_truncated(self._dir.topic_partition)
