"""The parts of a log without the log: each is made of the parts that it needs, on a disk that lists syncs."""

import os
from pathlib import Path

from odradek.core.types import Buffer
from odradek.log.files import FilePool
from odradek.log.parts.bounds import Bounds
from odradek.log.parts.compaction import Compaction
from odradek.log.parts.durability import Durability
from odradek.log.parts.epoch_cache import EpochCache
from odradek.log.parts.epoch_file import LeaderEpochFile
from odradek.log.parts.flush_job import FlushJob
from odradek.log.parts.local_log import LocalLog
from odradek.log.parts.log_config import LogConfig
from odradek.log.parts.partition_dir import PartitionDir
from odradek.log.parts.reading import BatchReader
from odradek.log.parts.rolling import Roller
from odradek.log.parts.settling import Settling
from odradek.log.parts.truncating import Truncator
from odradek.log.parts.unflushed_marks import UnflushedMarks
from odradek.log.producers.snapshot_files import ProducerSnapshotFiles
from odradek.log.producers.state import ProducerState
from odradek.log.segments.segment import Segment
from odradek.log.segments.segments import Segments
from tests.unit.log.support import NOW_MS, TP, FaultyDisk, LogRuntime, batch, config


class ListingDisk(FaultyDisk):
    """Lists the names of what was synced, in order."""

    __slots__ = ("synced",)

    def __init__(self) -> None:
        super().__init__()
        self.synced: list[str] = []

    def _list(self, fd: int) -> None:
        self.synced.append(os.path.basename(os.readlink(f"/proc/self/fd/{fd}")))

    def fdatasync(self, fd: int) -> None:
        super().fdatasync(fd)
        self._list(fd)

    def fsync(self, fd: int) -> None:
        super().fsync(fd)
        self._list(fd)

    def fsync_dir(self, path: str) -> None:
        super().fsync_dir(path)
        self.synced.append(f"{os.path.basename(path)}/")


class Parts:
    """An empty log from offset 0 on, in pieces."""

    def __init__(self, path: Path) -> None:
        self.runtime = LogRuntime()
        self.disk = self.runtime.disk = ListingDisk()
        self.path = path / "data" / str(TP)
        self.path.mkdir(parents=True)
        pool = FilePool(self.disk)
        self.dir = PartitionDir(pool, str(self.path), TP)
        self.config = LogConfig(config())
        self.segments = Segments([Segment.create(pool, str(self.path), 0, self.config.topic, NOW_MS)])
        self.producers = ProducerState()
        self.snapshots = ProducerSnapshotFiles(self.disk, str(self.path))
        self.bounds = Bounds(self.producers, 0, 0, 0)
        self.epochs = EpochCache()
        self.marks = UnflushedMarks(self.dir)
        self.durability = Durability(
            self.dir,
            self.runtime.clock,
            self.segments,
            self.bounds,
            LeaderEpochFile(self.dir, self.epochs),
            self.snapshots,
            self.marks,
            recovery_point=0,
        )
        self.local_log = LocalLog(self.runtime, self.dir, self.config, self.segments)
        self.roller = Roller(
            self.dir, self.local_log, self.bounds, self.durability, self.producers, self.snapshots
        )

        self.settling = Settling(self.config, self.segments, self.bounds, self.durability)
        self.reader = BatchReader(self.dir, self.config, self.segments, self.bounds)
        self.compaction = Compaction(self.dir, self.local_log, self.snapshots, self.reader, None)
        self.truncator = Truncator(
            self.dir,
            self.local_log,
            self.bounds,
            self.durability,
            self.settling,
            self.producers,
            self.snapshots,
            self.reader,
            self.compaction,
        )

    def write(self, count: int = 1) -> None:
        """Put one batch of so many records at the log end, past every check."""
        segment, checked = self.segments.active, batch(count, base_offset=self.bounds.log_end_offset)
        buffers: list[Buffer] = [checked.buffer]
        segment.should_roll(1 << 30, 1 << 60, 0, NOW_MS, self.bounds.log_end_offset, self.runtime.clock)
        segment.write(buffers, len(checked.buffer))
        self.bounds.log_end_offset += count
        segment.index_batch(self.bounds.log_end_offset - 1, NOW_MS, len(checked.buffer))

    def flush(self) -> list[str]:
        """Flush everything; what was synced."""
        job = self.durability.begin_flush(self.bounds.log_end_offset)
        if job is None:
            return []
        self.run(job)
        return self.take_synced()

    def run(self, job: FlushJob) -> None:
        job.run()
        self.durability.finish_flush(job.proof)

    def take_synced(self) -> list[str]:
        synced, self.disk.synced = self.disk.synced, []
        return synced

    def files(self) -> list[str]:
        return sorted(os.listdir(self.path))
