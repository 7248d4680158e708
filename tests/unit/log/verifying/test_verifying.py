"""`log verify` finds nothing in a valid directory, and every injected damage at its position."""

import asyncio
import os
import struct
import uuid
from collections.abc import Callable
from pathlib import Path

import pytest

from odradek.core.types import TopicPartition
from odradek.log.files import read_file
from odradek.log.log import Log
from odradek.log.manager import LogManager
from odradek.log.producers.rules import AppendOrigin
from odradek.log.producers.snapshot import format_snapshot, parse_snapshot
from odradek.log.verifying.directory import (
    check_identity,
    check_partition,
    partition_directories,
    read_log_directory,
)
from odradek.log.verifying.findings import Finding, Findings
from odradek.runtime.real import RealDisk
from tests.unit.log.support import (
    NOW_MS,
    LogRuntime,
    append,
    batch,
    config,
    idempotent,
    marker,
    transactional,
)

NAME = "orders-0"
SEGMENT_BYTES = 2000


def fill(log: Log) -> None:
    """Segments of plain, idempotent and transactional batches under three epochs, times in disorder."""
    for i in range(20):
        append(log, batch(3, timestamp=NOW_MS + (i * 7) % 5), epoch=i // 8)
        append(log, idempotent(2 * i, 2, producer_id=1, timestamp=NOW_MS + i), epoch=i // 8)
        append(log, transactional(i, producer_id=2, timestamp=NOW_MS + i), epoch=i // 8)
        end = marker(committed=i % 3 == 0, producer_id=2, timestamp=NOW_MS + i)
        append(log, end, epoch=i // 8, origin=AppendOrigin.COORDINATOR)


def made(path: Path, *, clean: bool = True, change: Callable[[Log], None] = fill) -> Path:
    """A log directory with one partition."""
    manager = LogManager(LogRuntime(), [str(path)])
    manager.open()

    async def write() -> None:
        manager.load(lambda topic: config())
        small = config(segment_bytes=SEGMENT_BYTES, index_interval_bytes=200)
        change(manager.get_or_create(TopicPartition("orders", 0), uuid.UUID(int=5), small))
        await manager.close(clean=clean)

    asyncio.run(write())
    (path / "meta.properties").write_text(
        "version=1\nnode.id=1\ncluster.id=abc\ndirectory.id=AAAAAAAAAAAAAAAAAAAABQ\n"
    )
    return path


@pytest.fixture
def log_dir(tmp_path: Path) -> Path:
    return made(tmp_path)


def findings(path: Path, *, compacted: bool | None = False) -> list[Finding]:
    disk, into = RealDisk(), Findings()
    directory = read_log_directory(disk, str(path), into)
    check_identity(disk, directory, into)
    for name, tp in partition_directories(disk, str(path)):
        check_partition(disk, directory, name, tp, lambda topic: compacted, into, lambda count: None)
    return into.all()


def only(path: Path, *, compacted: bool | None = False) -> Finding:
    (finding,) = findings(path, compacted=compacted)
    return finding


def segments(path: Path) -> list[Path]:
    return sorted((path / NAME).glob("*.log"))


def flip(path: Path, position: int, bit: int = 0) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << bit
    path.write_bytes(data)


def first_batch_size(path: Path) -> int:
    return struct.unpack_from(">i", path.read_bytes(), 8)[0] + 12


def test_a_good_directory_has_no_finding(log_dir: Path) -> None:
    assert len(segments(log_dir)) == 4
    assert findings(log_dir) == []
    assert findings(log_dir, compacted=None) == []


def test_a_directory_that_was_not_closed_is_told_as_such(tmp_path: Path) -> None:
    finding = only(made(tmp_path, clean=False))
    assert finding.problem == "not closed cleanly"
    assert finding.file.endswith("/.kafka_cleanshutdown")
    assert finding.next_start == "every log is recovered from its recovery point"


def test_every_flipped_bit_of_a_batch_is_found_at_that_batch(log_dir: Path) -> None:
    segment = segments(log_dir)[1]
    data = segment.read_bytes()
    start = first_batch_size(segment)
    size = struct.unpack_from(">i", data, start + 8)[0] + 12
    for position in range(start, start + size):
        flip(segment, position, position % 8)
        found = findings(log_dir, compacted=None)
        assert found, position - start
        positions = {finding.position for finding in found if finding.file == str(segment)}
        # The leader epoch has no checksum, but an order, or else the checkpoint speaks against it.
        expected = {start + 12} if 12 <= position - start < 16 else {start}
        assert positions == expected, (position - start, found)
        segment.write_bytes(data)


def test_a_flip_in_a_sealed_segment_after_a_clean_stop_is_not_noticed_by_a_start(log_dir: Path) -> None:
    segment = segments(log_dir)[1]
    flip(segment, first_batch_size(segment) + 50)
    finding = only(log_dir)
    assert (finding.problem, finding.position) == ("bad CRC", first_batch_size(segment))
    assert finding.next_start == "not noticed: consumers that check CRCs fail here"


def test_a_flip_above_the_recovery_point_is_cut_off(tmp_path: Path) -> None:
    log_dir = made(tmp_path, clean=False)
    segment = segments(log_dir)[1]
    (log_dir / "recovery-point-offset-checkpoint").write_text("0\n0\n")
    flip(segment, 50)
    _, finding = findings(log_dir)
    later = len(segments(log_dir)) - 2
    assert finding.next_start == (
        f"{segment.stat().st_size} bytes are cut off here, and the {later} segments after it are removed"
    )


@pytest.mark.parametrize(
    ("tail", "problem", "found"),
    [
        (bytes(500), "zeros", "500 bytes"),
        (b"nonsense that is no batch", "no batch", "magic 32"),
        (b"\0" * 8 + b"\0\0\0\5" + b"rest", "torn batch", "16 bytes"),
        (b"\0" * 8 + b"\0\0\1\0" + b"\0" * 4 + b"\2" + b"x" * 90, "torn batch", "107 bytes"),
        (b"\1", "torn batch", "1 bytes"),
    ],
)
def test_what_is_appended_to_the_last_segment_is_found(
    log_dir: Path, tail: bytes, problem: str, found: str
) -> None:
    segment = segments(log_dir)[-1]
    good = segment.read_bytes()
    segment.write_bytes(good + tail)
    finding = only(log_dir)
    assert (finding.file, finding.position, finding.problem) == (str(segment), len(good), problem)
    assert found in finding.found
    assert finding.next_start == f"{len(tail)} bytes are cut off here"


def test_a_torn_tail_is_found_at_the_batch_it_tore(log_dir: Path) -> None:
    segment = segments(log_dir)[-1]
    good = segment.read_bytes()
    position = 0
    while position + struct.unpack_from(">i", good, position + 8)[0] + 12 < len(good):
        position += struct.unpack_from(">i", good, position + 8)[0] + 12
    for size in range(position + 1, len(good)):
        segment.write_bytes(good[:size])
        of_log = [finding for finding in findings(log_dir) if finding.file == str(segment)]
        assert [(f.position, f.problem) for f in of_log] == [(position, "torn batch")], size


def test_a_removed_segment_is_a_gap(log_dir: Path) -> None:
    gone, following = segments(log_dir)[2:4]
    for path in (log_dir / NAME).glob(f"{gone.stem}.*"):
        path.unlink()
    gap = next(finding for finding in findings(log_dir) if finding.problem == "gap")
    assert gap.file == str(following)
    assert int(gone.stem) == int(gap.expected.split()[1])
    assert gap.next_start == "reads skip the gap"
    assert not [f for f in findings(log_dir, compacted=True) if f.problem == "gap"]
    (log_dir / ".kafka_cleanshutdown").unlink()
    (log_dir / "recovery-point-offset-checkpoint").unlink()
    (log_dir / NAME / f"{following.stem}.unflushed").write_bytes(b"")
    gap = next(finding for finding in findings(log_dir) if finding.problem == "gap")
    assert gap.next_start == "this segment and those after it are removed"


def test_an_index_without_its_log_is_found(log_dir: Path) -> None:
    segments(log_dir)[2].unlink()
    orphans = [finding for finding in findings(log_dir) if finding.problem == "no log"]
    assert {Path(finding.file).suffix for finding in orphans} >= {".index", ".timeindex"}
    assert {finding.next_start for finding in orphans} == {"removed"}


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_every_flipped_bit_of_an_index_is_found(log_dir: Path, suffix: str) -> None:
    path = segments(log_dir)[1].with_suffix(suffix)
    good = path.read_bytes()
    assert len(good) > 24
    for position in range(len(good)):
        flip(path, position, position % 8)
        assert {finding.file for finding in findings(log_dir)} == {str(path)}, position
        path.write_bytes(good)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_missing_a_torn_and_a_zero_filled_index_are_found(log_dir: Path, suffix: str) -> None:
    path = segments(log_dir)[1].with_suffix(suffix)
    good = path.read_bytes()
    path.write_bytes(good + bytes(4800))
    finding = only(log_dir)
    assert (finding.position, finding.problem, finding.found) == (len(good), "zeros", "4800 bytes of zeros")
    path.write_bytes(good[:-1])
    assert "torn entry" in [finding.problem for finding in findings(log_dir)]
    path.unlink()
    finding = only(log_dir)
    assert (finding.file, finding.problem) == (str(path), "missing")
    assert finding.next_start == "rebuilt from the log when a read finds the error"


def test_every_flipped_bit_of_a_snapshot_is_found(log_dir: Path) -> None:
    path = sorted((log_dir / NAME).glob("*.snapshot"))[1]
    good = path.read_bytes()
    for position in range(len(good)):
        flip(path, position, position % 8)
        finding = only(log_dir)
        assert (finding.file, finding.problem) == (str(path), "unreadable"), position
        path.write_bytes(good)


def test_a_snapshot_that_tells_something_else_than_the_log_is_found(log_dir: Path) -> None:
    path = sorted((log_dir / NAME).glob("*.snapshot"))[1]
    first, second = parse_snapshot(path.read_bytes())
    for entries, expected in (
        ([first._replace(producer_epoch=9), second], "producer epoch 0"),
        ([first._replace(last_timestamp=5), second], "last timestamp"),
        ([first._replace(current_txn_first_offset=1), second], "first offset of its transaction -1"),
        ([first._replace(batches=()), second], "last sequence"),
        ([first._replace(producer_id=99), first, second], "no such producer in the log"),
        ([first], f"of producer {second.producer_id}: its last offset"),
    ):
        path.write_bytes(format_snapshot(entries))
        os.utime(path, (NOW_MS / 1000, NOW_MS / 1000))
        finding = only(log_dir)
        assert (finding.file, finding.problem) == (str(path), "disagrees with the log")
        assert expected in finding.expected
        assert "of producer" in finding.expected


def test_a_snapshot_beyond_the_end_is_found(log_dir: Path) -> None:
    path = sorted((log_dir / NAME).glob("*.snapshot"))[-1]
    beyond = path.with_name("00000000000000009999.snapshot")
    beyond.write_bytes(path.read_bytes())
    finding = only(log_dir)
    assert (finding.file, finding.problem, finding.next_start) == (str(beyond), "beyond the end", "removed")


def test_a_transaction_index_that_tells_something_else_is_found(log_dir: Path) -> None:
    path = sorted((log_dir / NAME).glob("*.txnindex"))[1]
    good = path.read_bytes()
    for position in range(2, len(good)):
        flip(path, position)
        assert {finding.file for finding in findings(log_dir)} == {str(path)}, position
        path.write_bytes(good)
    path.write_bytes(good[:-34])
    assert only(log_dir).problem == "incomplete"
    path.unlink()
    assert only(log_dir).problem == "incomplete"
    path.write_bytes(good[:-1])
    assert only(log_dir).problem == "unreadable"


def test_epochs_that_are_out_of_order_or_not_those_of_the_batches_are_found(log_dir: Path) -> None:
    path = log_dir / NAME / "leader-epoch-checkpoint"
    good = path.read_text()
    assert len(good.splitlines()) == 5
    for bad, problem in (
        ("0\n2\n1 0\n0 5\n", "unreadable"),
        ("", "unreadable"),
        (good.replace("\n1 56", "\n1 57"), "disagrees with the log"),
        ("0\n1\n0 0\n", "disagrees with the log"),
    ):
        path.write_text(bad)
        finding = only(log_dir)
        assert (finding.file, finding.problem) == (str(path), problem), bad
    path.unlink()
    assert only(log_dir).problem == "missing"


@pytest.mark.parametrize(
    "name",
    ["recovery-point-offset-checkpoint", "log-start-offset-checkpoint", "replication-offset-checkpoint"],
)
def test_checkpoints_that_cannot_be_are_found(log_dir: Path, name: str) -> None:
    path = log_dir / name
    path.write_text("0\n1\norders 0 100000\n")
    found = [finding for finding in findings(log_dir) if finding.problem == "beyond the end"]
    assert [finding.file for finding in found] == [str(path)]
    assert "for orders-0 at most" in found[0].expected
    path.write_text("0\n7\norders 0 0\n")
    finding = only(log_dir)
    assert (finding.file, finding.problem) == (str(path), "unreadable")


def test_files_of_identity_are_looked_at(log_dir: Path) -> None:
    (log_dir / NAME / "partition.metadata").write_text("version: 0\n")
    assert only(log_dir).file.endswith("partition.metadata")
    (log_dir / NAME / "partition.metadata").unlink()
    (log_dir / "meta.properties").write_text("version=7\n")
    assert only(log_dir).problem == "unreadable"
    (log_dir / "meta.properties").unlink()
    assert only(log_dir).next_start == "the node refuses to start"


@pytest.mark.parametrize("suffix", [".cleaned", ".swap"])
def test_what_an_interrupted_compaction_left_is_found(log_dir: Path, suffix: str) -> None:
    (log_dir / NAME / f"00000000000000000000.log{suffix}").write_bytes(b"")
    assert only(log_dir).found == "an interrupted compaction"


def test_records_below_the_log_start_explain_what_snapshots_do_not_know(tmp_path: Path) -> None:
    def trimmed(log: Log) -> None:
        fill(log)
        log.increment_log_start_offset(log.log_end_offset - 20)
        log.retain(NOW_MS)
        fill_more = [idempotent(40 + i, producer_id=1, timestamp=NOW_MS) for i in range(3)]
        append(log, *fill_more, epoch=2)
        log.purge_deleted(1 << 60)

    log_dir = made(tmp_path, change=trimmed)
    assert int(segments(log_dir)[0].stem) > 0
    assert findings(log_dir) == []


def test_what_a_recovery_from_the_log_start_on_did_not_see_is_not_missed(tmp_path: Path) -> None:
    def begun_below_the_start(log: Log) -> None:
        append(log, transactional(0, producer_id=2, timestamp=NOW_MS))
        append(log, marker(committed=False, producer_id=2, timestamp=NOW_MS), origin=AppendOrigin.COORDINATOR)
        log.increment_log_start_offset(1)

    made(tmp_path, clean=False, change=begun_below_the_start)
    (tmp_path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 1\n")
    assert made(tmp_path, change=lambda log: None)
    assert "00000000000000000000.txnindex" not in {path.name for path in (tmp_path / NAME).iterdir()}
    assert findings(tmp_path) == []


def test_nothing_is_written(log_dir: Path) -> None:
    def state() -> dict[str, tuple[int, bytes]]:
        return {
            str(p): (p.stat().st_mtime_ns, p.read_bytes()) for p in sorted(log_dir.rglob("*")) if p.is_file()
        }

    flip(segments(log_dir)[1], 30)
    segments(log_dir)[1].with_suffix(".index").unlink()
    before = state()
    assert findings(log_dir)
    assert state() == before


def test_files_are_read_by_descriptor_and_closed(log_dir: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    findings(log_dir)
    assert len(os.listdir("/proc/self/fd")) == before
    assert read_file(RealDisk(), str(segments(log_dir)[0]))


@pytest.mark.parametrize("kind", ["recovery-point", "log-start", "replication"])
def test_a_checkpoint_that_a_clean_stop_must_have_left(log_dir: Path, kind: str) -> None:
    (log_dir / f"{kind}-offset-checkpoint").unlink()
    finding = only(log_dir)
    assert (finding.file, finding.problem) == (f"{log_dir}/{kind}-offset-checkpoint", "missing")


def test_a_snapshot_that_a_clean_stop_must_have_left(log_dir: Path) -> None:
    newest = max((log_dir / NAME).glob("*.snapshot"))
    newest.unlink()
    finding = only(log_dir)
    assert (finding.file, finding.problem) == (str(newest), "missing")


def check_topic(log_dir: Path, topic_id: uuid.UUID | None) -> list[Finding]:
    disk, into = RealDisk(), Findings()
    directory = read_log_directory(disk, str(log_dir), into)
    tp = TopicPartition("orders", 0)
    check_partition(
        disk, directory, NAME, tp, lambda topic: False, into, lambda count: None, topic_id=topic_id
    )
    return into.all()


def test_a_missing_topic_id_is_told_where_the_metadata_has_one(log_dir: Path) -> None:
    (log_dir / NAME / "partition.metadata").unlink()
    (finding,) = check_topic(log_dir, uuid.UUID(int=5))
    assert finding.problem == "missing"
    assert check_topic(log_dir, None) == []  # of a log as old as that nothing else can be told


@pytest.mark.parametrize(
    ("topic_id", "fate"),
    [(uuid.UUID(int=4), "rewritten: only one"), (uuid.UUID(int=1 << 100), "renamed to -stray")],
)
def test_the_id_of_another_topic(log_dir: Path, topic_id: uuid.UUID, fate: str) -> None:
    (finding,) = check_topic(log_dir, topic_id)
    assert finding.problem == "another topic"
    assert finding.next_start.startswith(fate)


def test_a_log_that_was_cleaned_beyond_its_end(log_dir: Path) -> None:
    (log_dir / "cleaner-offset-checkpoint").write_text("0\n1\norders 0 5000\n")
    finding = only(log_dir)
    assert (finding.problem, finding.next_start) == ("beyond the end", "the log is cleaned from its start")


def test_progress_comes_to_the_size_of_the_log(log_dir: Path) -> None:
    told: list[int] = []
    disk = RealDisk()
    directory = read_log_directory(disk, str(log_dir))
    tp = TopicPartition("orders", 0)
    extent = check_partition(disk, directory, NAME, tp, lambda topic: False, Findings(), told.append)
    assert sum(told) == extent.bytes == sum(path.stat().st_size for path in segments(log_dir))
    assert len(told) >= extent.segments
