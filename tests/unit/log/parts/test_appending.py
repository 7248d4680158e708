"""What a follower takes over, which batches fit one segment, what stands when the disk gives out."""

import errno
import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from odradek.core.errors import ErrorCode, ExhaustedError, KafkaError, StorageError
from odradek.core.types import Buffer
from odradek.log.log import AppendInfo, Log
from odradek.log.parts.appending import _addressable_runs
from odradek.log.producers.rules import AppendOrigin
from odradek.records.header import MAX_INT32, BatchMeta
from tests.unit.log.support import (
    NOW_MS,
    FaultyDisk,
    LogRuntime,
    append,
    batch,
    idempotent,
    marker,
    merged,
    offsets,
    open_log,
    transactional,
)
from tests.unit.records.produce_cases import legacy_entry


def test_a_follower_refuses_batches_that_overlap(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    first = bytes(batch(3, base_offset=0).buffer)
    for base_offset in (0, 1, 2):
        with pytest.raises(KafkaError) as refused:
            log.append_as_follower(first + bytes(batch(base_offset=base_offset).buffer))
        assert refused.value.code == ErrorCode.OFFSET_OUT_OF_RANGE
    info = log.append_as_follower(first + bytes(batch(base_offset=3).buffer))
    assert info == AppendInfo(0, 3, -1, 0, duplicate=False)
    assert log.appended_bytes == len(first) + len(batch().buffer)


def test_a_follower_knows_producer_0_too(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    log.append_as_follower(bytes(idempotent(0, producer_id=0).buffer))
    assert list(log.producers.entries) == [0]


def test_the_latest_batch_of_a_fetch_decides_whether_a_segment_is_too_old(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path, changes={"segment_ms": 1_000})
    log.append_as_follower(bytes(batch().buffer))
    late = bytes(batch(base_offset=1).buffer) + bytes(batch(base_offset=2, timestamp=NOW_MS + 1_001).buffer)
    log.append_as_follower(late)
    assert [segment.base_offset for segment in log.segments.all()] == [0, 1]


def test_records_of_an_old_format_end_what_is_known_of_epochs(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    append(log, batch(), epoch=4)
    assert log.epochs.entries == [(4, 0)]
    log.append_as_follower(legacy_entry(1, b"old", offset=1, timestamp=NOW_MS))
    assert log.epochs.entries == []
    log.append_as_follower(legacy_entry(1, b"old", offset=2, timestamp=NOW_MS))
    assert log.log_end_offset == 3


def at(base_offset: int, last_offset: int, *, magic: int = 2, codec: int = 0) -> BatchMeta:
    (found,) = batch().batches
    return found._replace(
        base_offset=base_offset, last_offset_delta=last_offset - base_offset, magic=magic, attributes=codec
    )


def runs(batches: list[BatchMeta], log_end_offset: int = 0) -> list[tuple[int, list[int]]]:
    return [
        (first, [b.last_offset for b in run]) for first, run in _addressable_runs(batches, log_end_offset)
    ]


def test_batches_within_reach_of_the_first_are_one_run() -> None:
    near = [at(5, 6), at(7, 7), at(100, 5 + MAX_INT32)]
    assert runs(near) == [(5, [6, 7, 5 + MAX_INT32])]


def test_a_batch_out_of_reach_begins_another_run() -> None:
    far = 6 + MAX_INT32
    assert runs([at(5, 6), at(far, far), at(far + 1, far + 1)]) == [(5, [6]), (far, [far, far + 1])]


def test_a_run_that_begins_with_a_wrapper_reaches_as_far_below_as_an_index_can() -> None:
    """It has the offset of its last record, and does not say how many it holds."""
    assert runs([at(50, 50, magic=1, codec=1)], 10) == [(10, [50])]
    far = 20 + MAX_INT32
    assert runs([at(far, far, magic=1, codec=1)], 10) == [(20, [far])]
    assert runs([at(10, 12), at(far, far, magic=1, codec=1)], 10) == [(10, [12]), (20, [far])]
    near = 14 + MAX_INT32
    assert runs([at(10, 17), at(near, near, magic=1, codec=1)], 10) == [(10, [17]), (18, [near])]
    assert runs([at(50, 50, magic=1)], 10) == [(50, [50])], "an entry that is not compressed is one record"


class LimitedDisk(FaultyDisk):
    """Takes so many writes to segments, and fails those that follow."""

    __slots__ = ("code", "left")

    def __init__(self, left: int, code: int) -> None:
        super().__init__()
        self.left = left
        self.code = code

    def _count(self, fd: int) -> None:
        if os.readlink(f"/proc/self/fd/{fd}").endswith(".log"):
            if self.left == 0:
                raise OSError(self.code, os.strerror(self.code))
            self.left -= 1

    def pwrite(self, fd: int, data: Buffer, offset: int) -> int:
        self._count(fd)
        return super().pwrite(fd, data, offset)

    def pwritev(self, fd: int, buffers: Sequence[Buffer], offset: int) -> int:
        self._count(fd)
        return super().pwritev(fd, buffers, offset)


def limited(runtime: LogRuntime, tmp_path: Path, left: int, code: int) -> tuple[Log, LimitedDisk]:
    """A log whose segments hold one batch each."""
    disk = runtime.disk = LimitedDisk(left, code)
    return open_log(runtime, tmp_path, changes={"segment_bytes": len(batch().buffer)}), disk


def test_what_was_written_before_descriptors_ran_out_stands(runtime: LogRuntime, tmp_path: Path) -> None:
    log, disk = limited(runtime, tmp_path, 2, errno.EMFILE)
    results = log.append_as_leader([batch(), batch(), batch(), batch()], 0, AppendOrigin.CLIENT)
    assert results[:2] == [AppendInfo(0, 0, -1, 0, False), AppendInfo(1, 1, -1, 0, False)]
    assert [type(result) for result in results[2:]] == [ExhaustedError, ExhaustedError]
    assert log.log_end_offset == 2
    disk.left = 99
    append(log, batch())
    assert offsets(log) == [0, 1, 2]


def test_where_nothing_was_written_the_whole_append_fails(runtime: LogRuntime, tmp_path: Path) -> None:
    log, _ = limited(runtime, tmp_path, 0, errno.EMFILE)
    with pytest.raises(ExhaustedError):
        log.append_as_leader([batch(), batch()], 0, AppendOrigin.CLIENT)
    assert log.log_end_offset == 0


def test_a_disk_that_fails_takes_the_log_with_it_whatever_was_written(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log, _ = limited(runtime, tmp_path, 1, errno.EIO)
    with pytest.raises(StorageError):
        log.append_as_leader([batch(), batch()], 0, AppendOrigin.CLIENT)
    assert log.failure is not None


def test_the_first_aborted_transaction_of_a_segment_is_a_new_file_to_sync(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    log = open_log(runtime, tmp_path)
    changes = log.partition_dir.changes
    append(log, transactional(0))
    append(log, marker(committed=True), origin=AppendOrigin.COORDINATOR)
    assert log.partition_dir.changes == changes
    append(log, transactional(1))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    assert log.partition_dir.changes == changes + 1
    append(log, transactional(2))
    append(log, marker(committed=False), origin=AppendOrigin.COORDINATOR)
    assert log.partition_dir.changes == changes + 1, "it is there already"


def test_every_batch_of_a_set_is_noted_at_its_own_offset(runtime: LogRuntime, tmp_path: Path) -> None:
    log = open_log(runtime, tmp_path)
    several = merged(batch(2), transactional(0, 3), transactional(3, 2))
    append(log, several, origin=AppendOrigin.COORDINATOR)
    entry = log.producers.entries[7]
    assert (entry.current_txn_first_offset, entry.last_offset, entry.last_sequence) == (2, 6, 4)
