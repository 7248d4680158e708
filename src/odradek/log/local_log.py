"""A log on this disk: its segments, where it ends and how much of it is durable. Bytes in, bytes out.

Who may append what, and what readers may see, is decided above, in log.py.
"""

import logging
import random
from collections.abc import Callable, Sequence
from os import O_CREAT, O_WRONLY
from typing import TYPE_CHECKING, NamedTuple

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError, is_exhausted
from odradek.core.types import TopicPartition
from odradek.log.files import Descriptor, FilePool, sync_data, sync_file, unlink_if_exists, write_file
from odradek.log.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    UNFLUSHED_SUFFIX,
    file_name,
    offset_of,
)
from odradek.log.segments.segment import Segment, roll_after_ms
from odradek.log.segments.segments import Segments
from odradek.runtime.api import Clock, Disk, Runtime

if TYPE_CHECKING:
    from odradek.core.configs import TopicConfig


_log = logging.getLogger(__name__)


class Position(NamedTuple):
    """A place in a log: the batch at `position` of the segment is the one that holds the asked offset."""

    segment: Segment
    base_offset: int
    position: int
    size: int


class FlushProof(NamedTuple):
    """What is durable once a flush has run: the state of a log as the flush found it."""

    up_to: int
    truncations: int
    changes: int
    epochs: int
    snapshots: Sequence[int] = ()
    indexed: Sequence[Segment] = ()
    marks: Sequence[int] = ()


class FlushJob:
    """What makes a log durable up to an offset. `run` may leave the event loop; the log is told after it."""

    __slots__ = ("_descriptors", "_directories", "_disk", "_drafts", "_paths", "proof")

    def __init__(
        self,
        disk: Disk,
        proof: FlushProof,
        descriptors: Sequence[Descriptor] = (),
        paths: Sequence[str] = (),
        directories: Sequence[str] = (),
        drafts: Sequence[tuple[str, bytes]] = (),
    ) -> None:
        self._disk = disk
        self.proof = proof
        self._descriptors = descriptors
        self._paths = paths
        self._directories = directories
        self._drafts = drafts

    def run(self) -> None:
        """Sync everything, data first; drafts are written only. Raises OSError: then nothing is durable."""
        disk = self._disk
        for descriptor in self._descriptors:
            sync_data(disk, descriptor.fd)
        for path in self._paths:
            try:
                sync_file(disk, path)
            except FileNotFoundError:
                continue  # removed since: a newer snapshot stands for it
        for directory in self._directories:
            disk.fsync_dir(directory)
        for path, content in self._drafts:
            write_file(disk, path, content, sync=False)


class LocalLog:
    """Segments on one disk. After an I/O error nothing is written or read any more: `failure` says why."""

    __slots__ = (
        "_changes",
        "_changes_durable",
        "_clock",
        "_deleted",
        "_disk",
        "_due_from",
        "_due_to",
        "_gaps",
        "_rng",
        "_roll_after_ms",
        "_truncations",
        "_unflushed",
        "_unsynced_indexes",
        "appended_bytes",
        "being_cleaned",
        "cleaned_offset",
        "config",
        "directory",
        "failure",
        "last_flush_ms",
        "log_end_offset",
        "on_failed",
        "on_flush_due",
        "on_rolled",
        "on_settled",
        "on_truncated",
        "path",
        "pool",
        "recovery_point",
        "segments",
        "topic_partition",
    )

    def __init__(
        self,
        runtime: Runtime,
        pool: FilePool,
        path: str,
        topic_partition: TopicPartition,
        config: "TopicConfig",
        segments: Segments,
        log_end_offset: int,
        recovery_point: int,
    ) -> None:
        self._disk = pool.disk
        self._clock: Clock = runtime.clock
        self._rng: random.Random = runtime.rng
        self.pool = pool
        self.path = path
        self.directory = path.rpartition("/")[0]
        """The log directory this log lies in. A log that is renamed stays there."""
        self.topic_partition = topic_partition
        self.config = config
        self._roll_after_ms = roll_after_ms(config)
        self.segments = segments
        self.log_end_offset = log_end_offset
        self.recovery_point = recovery_point
        self.failure: StorageError | None = None
        self.on_failed: Callable[[str, StorageError], None] | None = None
        self.on_rolled: Callable[[TopicPartition], None] | None = None
        self.on_flush_due: Callable[[TopicPartition], None] | None = None
        self.on_settled: Callable[[], None] | None = None
        self.on_truncated: Callable[[TopicPartition], None] | None = None
        self.last_flush_ms = self._clock.steady_ms()
        self.appended_bytes = 0  # since the log was opened
        self.cleaned_offset: int | None = None
        """Below it the log was compacted: keys are unique, and offsets may be missing."""
        self.being_cleaned = False
        self._truncations = 0
        # From `_due_from` on nothing is acknowledged until a flush has come to `_due_to`.
        self._due_from = self._due_to = 0
        # Changes to the directory's entries; whether those before, and its own in the log directory, are
        # durable is not known.
        self._changes = 1
        self._changes_durable = 0
        self._deleted: list[tuple[int, list[str]]] = []
        # Segments that were flushed while they were active, without their indexes and with blocks asked for
        # ahead, and are so no more.
        self._unsynced_indexes: list[Segment] = []
        # Where segments ended that were not durable then: each has a mark in the directory.
        self._unflushed: list[int] = []
        self._gaps: set[int] = set()

    # --- failure --------------------------------------------------------------------------------------

    def fail(self, error: OSError, doing: str, *, halfway: bool = False) -> KafkaError:
        """The disk failed: the log is not used again until a restart looks at what is left.

        Where only descriptors or memory have run out, nothing was done and the log goes on; and where that
        left it `halfway`, this log alone is given up, not its directory.
        """
        message = f"Error while {doing} {self.topic_partition} in {self.path}: {error}"
        if is_exhausted(error):
            _log.warning("Out of descriptors or memory. %s", message)
            if not halfway:
                return ExhaustedError(message)
        failure = StorageError(message)
        failure.__cause__ = error
        if self.failure is None:
            self.failure = failure
            if self.on_failed is not None and not is_exhausted(error):
                self.on_failed(self.directory, failure)
        return failure

    def check_online(self) -> None:
        if self.failure is not None:
            raise self.failure

    def update_config(self, config: "TopicConfig") -> None:
        """Take a topic's new settings; the active segment keeps the index sizes it was made with."""
        self.config = config
        self._roll_after_ms = roll_after_ms(config)

    # --- segments -------------------------------------------------------------------------------------

    @property
    def size_bytes(self) -> int:
        return self.segments.size_bytes

    def _new_segment(self, base_offset: int) -> Segment:
        for suffix in SEGMENT_SUFFIXES:
            unlink_if_exists(self._disk, f"{self.path}/{file_name(base_offset, suffix)}")
        self._changes += 1
        return Segment.create(
            self.pool,
            self.path,
            base_offset,
            self.config,
            self._clock.now_ms(),
            roll_jitter_ms=self._draw_jitter_ms(),
        )

    def _draw_jitter_ms(self) -> int:
        """By how much a segment is rolled early, so that those of many partitions are not rolled at once."""
        most_ms = min(self.config.segment_jitter_ms, self._roll_after_ms)
        return self._rng.randrange(most_ms) if most_ms > 0 else 0

    def _roll(self, base_offset: int) -> Segment:
        """End the active segment and begin a new one."""
        active = self.segments.active
        if active.size == 0 and active.base_offset == base_offset:
            # An index too small for one entry is full from the start: the empty segment is the new one.
            return active
        assert base_offset > active.base_offset, f"roll of {self.path} to {base_offset}"
        active.seal()
        if self.recovery_point < self.log_end_offset:
            self._mark_unflushed()
        segment = self._new_segment(base_offset)
        if self.recovery_point > active.base_offset:
            self._unsynced_indexes.append(active)
        self.segments.add(segment)
        return segment

    def _mark_unflushed(self) -> None:
        """Note where a segment ends that is not durable: a power loss may take its end, not what follows.

        A file system keeps the order of names: where the next segment survives, so does the mark.
        """
        end_offset = self.log_end_offset
        self._disk.close(self._disk.open(self._mark_path(end_offset), O_WRONLY | O_CREAT))
        if end_offset not in self._unflushed:
            self._unflushed.append(end_offset)

    def _unmark(self, end_offsets: Sequence[int]) -> None:
        for end_offset in end_offsets:
            unlink_if_exists(self._disk, self._mark_path(end_offset))
        self._unflushed = [end_offset for end_offset in self._unflushed if end_offset not in end_offsets]

    def _mark_path(self, end_offset: int) -> str:
        return f"{self.path}/{file_name(end_offset, UNFLUSHED_SUFFIX)}"

    def _remove_segments(self, gone: Sequence[Segment], extra_paths: Sequence[str] = ()) -> None:
        """Take segments out of sight now and out of the file system after file.delete.delay.ms."""
        self.segments.remove(gone)
        self._set_aside(gone, extra_paths)

    def _set_aside(self, gone: Sequence[Segment], extra_paths: Sequence[str]) -> None:
        paths = list(extra_paths)
        for segment in gone:
            segment.set_aside()
            paths += segment.deleted_paths()
        self._deleted.append((self._clock.steady_ms() + self.config.file_delete_delay_ms, paths))

    def _swap_in(
        self, base_offset: int, size: int, has_txn_index: bool, gone: Sequence[Segment], extra: Sequence[str]
    ) -> Segment:
        """Put a segment that stands under its .swap names in the place of others."""
        segment = Segment(
            self.pool,
            self.path,
            base_offset,
            self.config,
            self._clock.now_ms(),
            size=size,
            has_txn_index=has_txn_index,
            mark=SWAP_SUFFIX,
        )
        self.segments.replace(gone, segment)
        self._set_aside(gone, extra)
        self._changes += 1
        return segment

    def _void_cleaning(self) -> None:
        """Remove what a cleaning has made of records that are cut off now: after a crash it would take the
        place of those that come. The cleaning, which may be at work on it elsewhere, fails and ends."""
        if self.being_cleaned:
            taken = frozenset(segment.file.path for segment in self.segments.all())
            for name in self._disk.listdir(self.path):
                log_file = file_name(offset_of(name) or 0, LOG_SUFFIX) + SWAP_SUFFIX
                if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) and f"{self.path}/{log_file}" not in taken:
                    unlink_if_exists(self._disk, f"{self.path}/{name}")

    def purge_deleted(self, now_ms: int) -> None:
        """Remove the files whose delay has passed, here and now."""
        for path in self.take_deleted(now_ms):
            unlink_if_exists(self._disk, path)

    def take_deleted(self, now_ms: int) -> list[str]:
        """The files whose delay has passed by the steady clock: they are the caller's to remove, or to give
        back."""
        paths: list[str] = []
        while self._deleted and self._deleted[0][0] <= now_ms:
            paths += self._deleted.pop(0)[1]
        return paths

    def give_back_deleted(self, paths: list[str]) -> None:
        """They could not be removed yet."""
        self._deleted.insert(0, (self._clock.steady_ms(), paths))

    # --- reading --------------------------------------------------------------------------------------

    def _find(self, offset: int) -> Position | None:
        """The batch that holds an offset or, where it is gone, the first one after it."""
        segment = self.segments.floor(offset)
        while segment is not None:
            found = segment.translate(offset)
            if found is not None:
                if segment.base_offset > offset and not self.config.is_compacted:
                    self._tell_gap(segment)
                return Position(segment, *found)
            segment = self.segments.after(segment)
        return None

    def _tell_gap(self, segment: Segment) -> None:
        """No cleaner has been here: somebody removed the segment before this one. Told once."""
        if segment.base_offset not in self._gaps:
            self._gaps.add(segment.base_offset)
            _log.warning("The records before %s are missing: reads go over the gap", segment.file.path)

    def _out_of_range(self, offset: int, start: int, end: int) -> KafkaError:
        return KafkaError(
            ErrorCode.OFFSET_OUT_OF_RANGE,
            f"Received request for offset {offset} for partition {self.topic_partition}, "
            f"but we only have log segments in the range {start} to {end}.",
        )
