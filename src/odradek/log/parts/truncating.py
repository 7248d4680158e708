"""Truncator: removes the end of a log, durably.

After a crash the removed records must not come back behind newer ones. The same holds for their leader
epochs, and for checkpoints that say they are durable. So a truncation has steps, in this order:

    the bounds change, later segments and their snapshots are unlinked      a sync of the directory
    the active segment and its indexes are cut                              syncs of them, then of the epochs
    the producers are loaded again

What is on the right may run in another thread. Until all is done the log is truncating: it is neither read
nor appended to.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeAlias

from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.log.files import Descriptor, sync_data, write_file
from odradek.log.opening.loader import load_producers
from odradek.log.opening.steps import Steps, run_here
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.compaction import Compaction
from odradek.log.parts.durability import Durability
from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.reading import BatchReader
from odradek.log.parts.settling import Settling
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState
from odradek.runtime.api import Disk
from odradek.runtime.reply import Reply

if TYPE_CHECKING:
    from odradek.log.log import Log

Beside: TypeAlias = "Callable[[Log, Callable[[], Steps[bool]]], Reply[None]]"
"""Runs the steps of a truncation, and with it lowers the checkpoint."""


def _sync(disk: Disk, descriptors: Sequence[Descriptor], epochs: tuple[str, bytes] | None) -> None:
    """Records first: epochs that are missing for records that came back would be wrong."""
    for descriptor in descriptors:
        sync_data(disk, descriptor.fd)
    if epochs is not None:
        write_file(disk, *epochs)


class Truncator:
    """`on_truncated` is called when the recovery point checkpoint may be too high: new records below it would
    count as durable before the next checkpoint. `beside` runs the steps of a truncation in other threads.

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
        "beside",
        "is_truncating",
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
        self.beside: Beside | None = None
        self.is_truncating = False

    def truncate_to(self, offset: int) -> bool:
        """Remove the records at and above an offset, here and now. Returns False if there are none.

        Batches are removed as a whole: the log then ends at the start of the batch that contains the offset.
        An epoch that starts there goes in any case: a leader that wrote nothing may have begun one.
        """
        has_records = offset < self._bounds.log_end_offset
        self._run_here(self.cutting(offset))
        return has_records

    def restart_at(self, offset: int) -> None:
        """Remove all records, here and now. The next record gets the given offset."""
        self._run_here(self.restarting(offset))

    def _run_here(self, steps: Steps[bool]) -> None:
        assert not self.is_truncating, "one truncation at a time"
        try:
            lowered = run_here(steps)
        except OSError as e:
            raise self.failed(e) from e
        self.is_truncating = False
        if lowered and self.on_truncated is not None:
            self.on_truncated(self._dir.topic_partition)

    def failed(self, error: OSError) -> KafkaError:
        """A step has failed: the log is unusable."""
        return self._dir.fail(error, "truncating", halfway=True)

    # --- in steps -------------------------------------------------------------------------------------

    def cutting(self, offset: int) -> Steps[bool]:
        """Remove the records at and above an offset. Returns whether the recovery point checkpoint may be too
        high. The caller then ends `is_truncating`. Raises OSError."""
        bounds, local_log, durability = self._bounds, self._local_log, self._durability
        if offset >= bounds.log_end_offset:
            yield from self._forget_epochs(offset)
            return False
        segment = local_log.segments.floor(offset)
        if segment is None:
            return (yield from self.restarting(offset))
        end = segment.end_if_truncated_to(offset)
        was_durable = durability.restart_offset
        self.is_truncating = True
        local_log.cut_after(offset)
        self._snapshots.remove_outside(min(bounds.log_start_offset, offset), offset)
        durability.marks.remove(durability.marks.beyond(offset))
        self._compaction.discard_swaps()
        self._reader.forget_positions()
        self._compaction.truncated(end)
        bounds.truncate_to(end)
        durability.truncated(end)
        self._settling.truncated(end)
        durability.epoch_file.epochs.truncate_from_end(end)
        yield partial(self._dir.disk.fsync_dir, self._dir.path)
        yield from self._synced(local_log.truncate_active(offset))
        load_producers(self._producers, self._snapshots, local_log.segments, bounds.log_start_offset, end)
        bounds.producers_reloaded()
        assert bounds.log_end_offset == end
        return durability.restart_offset < was_durable

    def _forget_epochs(self, offset: int) -> Steps[None]:
        epochs = self._durability.epoch_file.epochs
        version = epochs.version
        epochs.truncate_from_end(offset)
        if epochs.version != version:
            self.is_truncating = True
            yield from self._synced([])

    def restarting(self, offset: int) -> Steps[bool]:
        """Remove all records. The next record gets the given offset. Returns the same as `cutting`."""
        durability = self._durability
        was_durable = durability.restart_offset
        self.is_truncating = True
        self._local_log.replace_all(offset)
        self._snapshots.remove_outside(offset, offset)
        durability.marks.remove(durability.marks.end_offsets)
        self._compaction.discard_swaps()
        self._reader.forget_positions()
        self._compaction.truncated(offset)
        self._producers.load([], offset)
        self._bounds.restart_at(offset)
        durability.restarted(offset)
        self._settling.restarted(offset)
        self._bounds.producers_reloaded()
        durability.epoch_file.epochs.clear()
        yield partial(self._dir.disk.fsync_dir, self._dir.path)
        yield from self._synced([])
        return durability.restart_offset < was_durable

    def _synced(self, descriptors: Sequence[Descriptor]) -> Steps[None]:
        epoch_file = self._durability.epoch_file
        version = epoch_file.epochs.version
        yield partial(_sync, self._dir.disk, descriptors, epoch_file.to_persist())
        epoch_file.persisted(version)
