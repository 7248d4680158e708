"""LocalLog: creates, replaces and removes the segments of a log with their files.

Other parts decide when a segment ends and which segments are removed.
"""

import random
from collections.abc import Sequence

from odradek.log.files import Descriptor, unlink_if_exists
from odradek.log.names import (
    CLEANED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SWAP_SUFFIX,
    file_name,
    offset_of,
)
from odradek.log.parts.log_config import LogConfig
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from odradek.runtime.api import Clock, Runtime


class LocalLog:
    """Every method that touches the disk raises OSError."""

    __slots__ = ("_clock", "_config", "_deleted", "_dir", "_rng", "segments")

    def __init__(
        self, runtime: Runtime, directory: PartitionDir, config: LogConfig, segments: Segments
    ) -> None:
        self._clock: Clock = runtime.clock
        self._rng: random.Random = runtime.rng
        self._dir = directory
        self._config = config
        self.segments = segments
        self._deleted: list[tuple[int, list[str]]] = []
        segments.active.roll_jitter_ms = self._draw_jitter_ms()

    def new_segment(self, base_offset: int) -> Segment:
        """An empty segment that is not part of the log yet. Existing files with its name are removed."""
        directory = self._dir
        for suffix in SEGMENT_SUFFIXES:
            unlink_if_exists(directory.disk, f"{directory.path}/{file_name(base_offset, suffix)}")
        directory.changes += 1
        return Segment.create(
            directory.pool,
            directory.path,
            base_offset,
            self._config.topic,
            self._clock.now_ms(),
            roll_jitter_ms=self._draw_jitter_ms(),
        )

    def _draw_jitter_ms(self) -> int:
        """How much earlier a segment is rolled, so that many partitions do not roll at the same time."""
        most_ms = min(self._config.topic.segment_jitter_ms, self._config.roll_after_ms)
        return self._rng.randrange(most_ms) if most_ms > 0 else 0

    def cut_after(self, offset: int) -> None:
        """Remove the segments that start after an offset, with their files. The newest first: after a crash
        in the middle the log has no hole."""
        gone = [segment for segment in self.segments.all() if segment.base_offset > offset]
        if gone:
            self.segments.remove(gone)
            for segment in reversed(gone):
                segment.unlink()

    def truncate_active(self, offset: int) -> list[Descriptor]:
        """Remove the batch that contains an offset and all after it. Returns what to sync, so that it is
        durable."""
        return self.segments.active.truncate_to(offset, self._clock.now_ms())

    def replace_all(self, base_offset: int) -> None:
        """Replace all segments and their files with an empty segment."""
        for segment in reversed(self.segments.all()):
            segment.unlink()
        self.segments.replace_all(self.new_segment(base_offset))

    def swap_in(
        self, base_offset: int, size: int, has_txn_index: bool, gone: Sequence[Segment], extra: Sequence[str]
    ) -> Segment:
        """Replace segments with one that has .swap names."""
        segment = Segment(
            self._dir.pool,
            self._dir.path,
            base_offset,
            self._config.topic,
            self._clock.now_ms(),
            size=size,
            has_txn_index=has_txn_index,
            mark=SWAP_SUFFIX,
        )
        self.segments.replace(gone, segment)
        self._set_aside(gone, extra)
        self._dir.changes += 1
        return segment

    def discard_swaps(self) -> None:
        """Remove files that a cleaning made of truncated records: after a crash they would replace newer
        records. A cleaning that still writes them fails and ends."""
        disk, path = self._dir.disk, self._dir.path
        taken = frozenset(segment.file.path for segment in self.segments.all())
        for name in disk.listdir(path):
            log_file = file_name(offset_of(name) or 0, LOG_SUFFIX) + SWAP_SUFFIX
            if name.endswith((CLEANED_SUFFIX, SWAP_SUFFIX)) and f"{path}/{log_file}" not in taken:
                unlink_if_exists(disk, f"{path}/{name}")

    # --- files that go later ----------------------------------------------------------------------------

    def remove(self, gone: Sequence[Segment], extra_paths: Sequence[str] = ()) -> None:
        """Remove segments from the log now, and their files after file.delete.delay.ms."""
        self.segments.remove(gone)
        self._set_aside(gone, extra_paths)

    def _set_aside(self, gone: Sequence[Segment], extra_paths: Sequence[str]) -> None:
        paths = list(extra_paths)
        for segment in gone:
            segment.set_aside()
            paths += segment.deleted_paths()
        self._deleted.append((self._clock.steady_ms() + self._config.topic.file_delete_delay_ms, paths))

    def purge_deleted(self, now_ms: int) -> None:
        """Remove the files whose delay has passed, synchronously."""
        for path in self.take_deleted(now_ms):
            unlink_if_exists(self._dir.disk, path)

    def take_deleted(self, now_ms: int) -> list[str]:
        """The files whose delay has passed by the steady clock. The caller removes them, or gives them
        back."""
        paths: list[str] = []
        while self._deleted and self._deleted[0][0] <= now_ms:
            paths += self._deleted.pop(0)[1]
        return paths

    def give_back_deleted(self, paths: list[str]) -> None:
        """The caller could not remove these files: try again later."""
        self._deleted.insert(0, (self._clock.steady_ms(), paths))
