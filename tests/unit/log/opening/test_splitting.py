"""A segment whose offsets outgrew its indexes is split, and a crash on the way loses and doubles nothing."""

import random
from pathlib import Path

import pytest

from odradek.log.log import Log
from odradek.records.batch import build_batch
from odradek.records.header import MAX_INT32
from odradek.sim.world.process import ProcessCrashed
from odradek.sim.world.volume import CrashModel, Volume
from tests.unit.log.support import NOW_MS, TP, LogRuntime, VolumeRuntime, config, offsets

FAR = [0, 1, MAX_INT32, MAX_INT32 + 1, 2 * MAX_INT32, 5 * MAX_INT32, 5 * MAX_INT32 + 1]
COMPACTED = config(cleanup_policy=("compact",))
DIRECTORY = "orders-0"
NAME = "00000000000000000000.log"


def segment_bytes() -> bytes:
    """What old compaction could merge into one file."""
    parts = []
    for offset in FAR:
        data = bytearray(build_batch([(NOW_MS, b"%d" % offset, b"v", ())]))
        data[:8] = offset.to_bytes(8, "big")
        parts.append(bytes(data))
    return b"".join(parts)


def reopened(runtime: LogRuntime, path: str) -> Log:
    log = Log.open(runtime, path, TP, None, COMPACTED)
    log.advance_high_watermark(log.log_end_offset)
    return log


def test_every_record_is_kept_in_segments_that_their_indexes_can_address(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY / NAME).write_bytes(segment_bytes())
    log = reopened(runtime, str(tmp_path / DIRECTORY))
    assert offsets(log) == FAR
    assert log.segments.base_offsets == [0, MAX_INT32 + 1, 5 * MAX_INT32]
    for offset in FAR:
        assert offsets(log, offset) == [o for o in FAR if o >= offset]
    assert log.size_bytes == len(segment_bytes())
    assert not [p for p in (tmp_path / DIRECTORY).iterdir() if p.suffix in (".cleaned", ".swap")]
    log.close()
    assert offsets(reopened(runtime, str(tmp_path / DIRECTORY))) == FAR


def test_a_torn_tail_behind_the_far_offsets_is_cut_off_all_the_same(
    runtime: LogRuntime, tmp_path: Path
) -> None:
    (tmp_path / DIRECTORY).mkdir()
    (tmp_path / DIRECTORY / NAME).write_bytes(segment_bytes() + b"\0" * 100)
    log = reopened(runtime, str(tmp_path / DIRECTORY))
    assert offsets(log) == FAR
    assert log.size_bytes == len(segment_bytes())


class Host:
    """A volume with the overflowing segment on it; a crash comes at the n-th call with an effect."""

    def __init__(self) -> None:
        self.volume = Volume()
        disk = self.boot(None).disk
        disk.makedirs(f"/data/{DIRECTORY}")
        fd = disk.open(f"/data/{DIRECTORY}/{NAME}", 0o102)
        disk.pwrite(fd, segment_bytes(), 0)
        self.volume.sync_all()

    def boot(self, fuse: int | None) -> LogRuntime:
        runtime = VolumeRuntime(self.volume)
        process = runtime.process
        process.fuse = fuse

        def burnt() -> None:
            process.alive = False

        process.on_burnt = burnt
        return runtime


@pytest.mark.parametrize("power", [False, True], ids=["kill", "power loss"])
def test_a_crash_at_any_step_loses_and_doubles_nothing(power: bool) -> None:
    crashes = 0
    while True:
        host = Host()
        try:
            reopened(host.boot(crashes), f"/data/{DIRECTORY}")
        except ProcessCrashed:
            if power:
                host.volume.crash(random.Random(crashes), CrashModel())
            log = reopened(host.boot(None), f"/data/{DIRECTORY}")
            assert offsets(log) == FAR, f"after a crash at call {crashes}"
            assert log.segments.base_offsets == [0, MAX_INT32 + 1, 5 * MAX_INT32]
            crashes += 1
        else:
            break
    assert crashes > 15
