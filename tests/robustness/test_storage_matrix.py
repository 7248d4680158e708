"""Every kind of file of a log directory, damaged in every way: what is said, what follows, what is kept.

Beside the damaged partition lies another one, which must come through without a word. docs/storage.md holds
the same table; each row here is named after its row there.
"""

import asyncio
import logging
import os
import re
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from odradek.core.errors import KafkaError
from odradek.core.types import TopicPartition
from odradek.log.log import AppendInfo, Isolation, Log
from odradek.log.lookup import BatchSearch
from odradek.log.manager import LogManager
from odradek.records.batch import iter_batches
from odradek.records.check import CheckedRecords, Origin
from tests.unit.log.support import (
    NOW_MS,
    FaultyDisk,
    LogRuntime,
    append,
    batch,
    config,
    idempotent,
    marker,
    transactional,
)

DOCUMENT = Path(__file__).parents[2] / "docs/storage.md"
ORDERS, OTHER, TXN = TopicPartition("orders", 0), TopicPartition("other", 0), TopicPartition("txn", 0)
IDS = {ORDERS: uuid.UUID(int=1), OTHER: uuid.UUID(int=2), TXN: uuid.UUID(int=3)}
SIZE = len(batch().buffer)
CONFIG = config(segment_bytes=4 * SIZE, index_interval_bytes=SIZE // 2, segment_index_bytes=480)
ALL = list(range(12))
TXN_CONFIG = config(segment_bytes=600, index_interval_bytes=100)


class Done:
    """The future of work that was done at once."""

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work()

    def add_done_callback(self, callback: Callable[[Any], object]) -> None:
        callback(self)

    def result(self) -> Any:
        return self._work

    def __await__(self) -> Iterator[Any]:
        return iter(())


class UnsyncedDisk(FaultyDisk):
    """A real disk, in no hurry: here nothing loses its power."""

    __slots__ = ()

    def fsync(self, fd: int) -> None:
        pass

    fdatasync = fsync

    def fsync_dir(self, path: str) -> None:
        pass


class Runtime(LogRuntime):
    def __init__(self) -> None:
        super().__init__()
        self.disk = UnsyncedDisk()

    def offload(self, work: Callable[[], Any]) -> Any:
        return Done(work)


class Node:
    """The logs of a log directory, started and stopped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.runtime = Runtime()
        self.start()

    def start(self) -> None:
        self.manager = LogManager(self.runtime, [str(self.path)])
        self.manager.open()
        self.manager.load(lambda topic: TXN_CONFIG if topic == "txn" else CONFIG)
        for tp, topic_id in IDS.items():
            log = self.manager.get_or_create(tp, topic_id, TXN_CONFIG if tp is TXN else CONFIG)
            log.advance_high_watermark(log.log_end_offset)

    def stop(self, *, clean: bool) -> None:
        asyncio.run(self.manager.close(clean=clean))

    def log(self, tp: TopicPartition) -> Log:
        return self.manager.logs[tp]

    def file(self, base: int, suffix: str, tp: TopicPartition = ORDERS) -> Path:
        return self.path / str(tp) / f"{base:020d}{suffix}"


def fill(node: Node) -> None:
    """On a loop: what a roll has flushed is flushed when its turn is over."""
    asyncio.run(_fill(node))


async def _fill(node: Node) -> None:
    for i in range(12):
        for tp in (ORDERS, OTHER):
            append(node.log(tp), batch(timestamp=NOW_MS + i), epoch=i // 6)
    log = node.log(TXN)
    for i in range(8):
        append(log, idempotent(2 * i, 2, producer_id=1))
        append(log, transactional(i, producer_id=2))
        append(log, marker(committed=i % 2 == 0, producer_id=2), origin=Origin.COORDINATOR)


async def _appended(log: Log, *sets: CheckedRecords, **options: Any) -> list[AppendInfo]:
    return append(log, *sets, **options)


@pytest.fixture
def node(tmp_path: Path) -> Node:
    node = Node(tmp_path)
    fill(node)
    return node


CLEAN, KILLED, POWER = "clean stop", "kill", "kill, nothing was durable"
STOPS = (CLEAN, KILLED, POWER)


def stop(node: Node, how: str) -> None:
    """After `POWER` nothing is known to be durable, so that everything is looked at."""
    node.stop(clean=how == CLEAN)
    if how == POWER:
        (node.path / "recovery-point-offset-checkpoint").write_text("0\n0\n")


def flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 1 << (position % 8)
    path.write_bytes(data)


def add(path: Path, tail: bytes) -> None:
    with path.open("ab") as file:
        file.write(tail)


def cut(path: Path, size: int) -> None:
    os.truncate(path, size if size >= 0 else path.stat().st_size + size)


class Image:
    """The files of a directory, to be put back as they were."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.contents = {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}
        self._stats: dict[Path, tuple[int, int]] = {}

    def restore(self) -> None:
        for file in self._path.rglob("*"):
            if file.is_file() and file not in self.contents:
                file.unlink()
        for file, content in self.contents.items():
            if self._stats.get(file) != self._stat(file):
                file.write_bytes(content)
                self._stats[file] = self._stat(file)

    def _stat(self, file: Path) -> tuple[int, int]:
        if not file.exists():
            return -1, -1
        found = file.stat()
        return found.st_mtime_ns, found.st_size


class Damage(NamedTuple):
    """How a file is damaged, what the log says about it, and which records of the partition are left."""

    do: Callable[[Node], None]
    said: str | None
    left: list[int] = ALL
    stops: tuple[str, ...] = STOPS


def path_of(base: int, suffix: str) -> str:
    return re.escape(f"/orders-0/{base:020d}{suffix}")


def checkpoints() -> dict[str, Damage]:
    found = {}
    for name in ("recovery-point", "log-start", "replication"):
        file = f"{name}-offset-checkpoint"
        for how, content in (("nonsense", b"\xff\xfe nonsense"), ("torn", b"0\n3\norders 0 1")):
            found[f"{file}: {how}"] = Damage(
                lambda n, file=file, content=content: (n.path / file).write_bytes(content),  # type: ignore[misc]
                rf"/{file} cannot be read, taking 0 for every offset: .+",
                stops=(CLEAN, KILLED),
            )
        found[f"{file}: missing"] = Damage(
            lambda n, file=file: (n.path / file).unlink(),  # type: ignore[misc]
            rf"/{file} is missing, taking 0 for every offset",
            stops=(CLEAN,),
        )
    return found


DAMAGES: dict[str, Damage] = {
    "segment: torn tail": Damage(
        lambda n: cut(n.file(8, ".log"), -1),
        path_of(8, ".log") + rf"\D+ {3 * SIZE}\b.*",
        ALL[:11],
    ),
    "segment: nonsense appended": Damage(
        lambda n: add(n.file(8, ".log"), b"nonsense " * 20), path_of(8, ".log") + rf"\D+ {4 * SIZE}\b.*"
    ),
    "segment: zeros appended": Damage(
        lambda n: add(n.file(8, ".log"), bytes(5000)), path_of(8, ".log") + rf"\D+ {4 * SIZE}\b.*"
    ),
    "segment: a bit flipped, above the recovery point": Damage(
        lambda n: flip(n.file(8, ".log"), 2 * SIZE + 40),
        path_of(8, ".log") + rf" at byte offset {2 * SIZE}: .*Truncating {2 * SIZE} bytes",
        ALL[:10],
        (KILLED, POWER),
    ),
    "segment: a length flipped, below the recovery point": Damage(
        lambda n: flip(n.file(4, ".log"), SIZE + 9), None, [0, 1, 2, 3, 4], (CLEAN, KILLED)
    ),
    "segment: the last removed": Damage(
        lambda n: n.file(8, ".log").unlink(),
        r"/orders-0 ends at offset 8, though it was durable up to \d+",
        ALL[:8],
        (CLEAN,),
    ),
    "segment: one in the middle removed": Damage(
        lambda n: n.file(4, ".log").unlink(),
        "The records before .*" + path_of(8, ".log") + " are missing",
        [*ALL[:4], *ALL[8:]],
        (CLEAN, KILLED),
    ),
    "segment: one in the middle removed, above the recovery point": Damage(
        lambda n: n.file(4, ".log").unlink(),
        "Dropping the 1 segments after .*" + path_of(0, ".log"),
        ALL[:4],
        (POWER,),
    ),
    "segment: all removed": Damage(
        lambda n: [n.file(base, ".log").unlink() for base in (0, 4, 8)],  # type: ignore[arg-type,return-value]
        r"/orders-0 ends at offset 0, though it was durable up to \d+",
        [],
        (CLEAN, KILLED),
    ),
    "offset index: missing": Damage(
        lambda n: n.file(4, ".index").unlink(),
        "Rebuilding the indexes of .*" + path_of(4, ".log"),
        stops=(CLEAN, KILLED),
    ),
    "offset index: torn": Damage(
        lambda n: cut(n.file(4, ".index"), -1), path_of(4, ".index") + r": \d+ bytes", stops=(CLEAN, KILLED)
    ),
    "offset index: zeros appended": Damage(
        lambda n: add(n.file(4, ".index"), bytes(400)),
        path_of(4, ".index") + ": entry",
        stops=(CLEAN, KILLED),
    ),
    "offset index: nonsense appended": Damage(
        lambda n: add(n.file(4, ".index"), b"\7" * 80),
        "Rebuilding the indexes of .*" + path_of(4, ".log"),
        stops=(CLEAN, KILLED),
    ),
    "time index: missing": Damage(
        lambda n: n.file(4, ".timeindex").unlink(), path_of(4, ".timeindex"), stops=(CLEAN, KILLED)
    ),
    "time index: torn": Damage(
        lambda n: cut(n.file(4, ".timeindex"), -1),
        path_of(4, ".timeindex") + r": \d+ bytes",
        stops=(CLEAN, KILLED),
    ),
    "time index: zeros appended": Damage(
        lambda n: add(n.file(4, ".timeindex"), bytes(1200)),
        path_of(4, ".timeindex") + ": entry",
        stops=(CLEAN, KILLED),
    ),
    "time index: nonsense appended": Damage(
        lambda n: add(n.file(4, ".timeindex"), b"\7" * 12),
        path_of(4, ".timeindex") + r": no batch has the time at byte offset \d+",
        stops=(CLEAN, KILLED),
    ),
    "leader-epoch-checkpoint: nonsense": Damage(
        lambda n: (n.path / "orders-0/leader-epoch-checkpoint").write_bytes(b"\0\1 nonsense"),
        "/orders-0/leader-epoch-checkpoint cannot be read, rebuilding it from the log",
    ),
    "leader-epoch-checkpoint: missing": Damage(
        lambda n: (n.path / "orders-0/leader-epoch-checkpoint").unlink(),
        "/orders-0/leader-epoch-checkpoint is missing, rebuilding it from the log",
        stops=(CLEAN, KILLED),
    ),
    "partition.metadata: torn": Damage(
        lambda n: cut(n.path / "orders-0/partition.metadata", 5),
        "/orders-0/partition.metadata cannot be read",
    ),
    "partition.metadata: missing": Damage(
        lambda n: (n.path / "orders-0/partition.metadata").unlink(), "/orders-0 does not tell its topic"
    ),
    "an index without its segment": Damage(
        lambda n: n.file(77, ".index").write_bytes(bytes(8)), "Removing .*" + path_of(77, ".index")
    ),
    "snapshot: missing": Damage(
        lambda n: [p.unlink() for p in (n.path / "orders-0").glob("*.snapshot")],  # type: ignore[arg-type,return-value]
        path_of(12, ".snapshot") + " is missing",
        stops=(CLEAN,),
    ),
    ".cleaned: left behind": Damage(
        lambda n: n.file(0, ".log.cleaned").write_bytes(b"half a compaction"), None
    ),
    ".deleted: left behind": Damage(lambda n: n.file(0, ".log.deleted").write_bytes(b"?"), None),
    ".swap: damaged, its source still there": Damage(
        lambda n: n.file(0, ".log.swap").write_bytes(n.file(0, ".log").read_bytes()[:-5]),
        path_of(0, ".log.swap") + f" has no good record batch at byte offset {3 * SIZE}",
    ),
    **checkpoints(),
}


def read(log: Log) -> list[int]:
    """The offsets that consumers get, whichever they begin with."""
    found = offsets_until_damage(log, log.log_start_offset)
    for offset in found:
        assert offsets_until_damage(log, offset) == found[found.index(offset) :]
    return found


def offsets_until_damage(log: Log, offset: int) -> list[int]:
    found: list[int] = []
    while True:
        try:
            info = log.read(offset, 1, Isolation.HIGH_WATERMARK)
        except KafkaError:
            return found
        if info.slice is None:
            return found
        for located in iter_batches(info.slice.read()):
            found.append(located.base_offset)
            offset = located.last_offset + 1


def times(log: Log) -> list[int]:
    """Which offset the time of each record leads to."""
    found = []
    for i in ALL:
        answer = log.offset_for_timestamp(NOW_MS + i)
        assert not isinstance(answer, BatchSearch)
        found.append(-1 if answer is None else answer.offset)
    return found


CASES = [(name, how) for name, damage in DAMAGES.items() for how in damage.stops]


@pytest.mark.parametrize(("name", "how"), CASES)
def test_damage_is_told_and_costs_nothing_else(
    node: Node, name: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    damage = DAMAGES[name]
    stop(node, how)
    damage.do(node)
    caplog.set_level(logging.INFO)
    node.start()
    log = node.log(ORDERS)
    left = read(log)
    assert left == damage.left, caplog.text
    if left == ALL:
        assert times(log) == ALL
        assert log.epochs.entries == [(0, 0), (1, 6)]
    if damage.said is not None:
        assert re.search(damage.said, caplog.text), caplog.text
    assert "/other-0" not in caplog.text
    assert read(node.log(OTHER)) == ALL
    (info,) = asyncio.run(_appended(log, batch(), epoch=1))
    assert info.first_offset == log.log_end_offset - 1 >= (left[-1] + 1 if left else 0)
    node.stop(clean=True)
    caplog.clear()
    node.start()
    assert node.log(ORDERS).log_end_offset == info.last_offset + 1
    if "below the recovery point" not in name:
        assert read(node.log(ORDERS)) == [*left, info.first_offset]
        if "middle" not in name:
            assert not [r for r in caplog.records if r.levelno >= logging.WARNING], "told once, then mended"
    node.stop(clean=True)


def test_every_damage_is_in_the_document() -> None:
    rows = [line.split(" | ") for line in DOCUMENT.read_text().splitlines() if line.startswith("| ")]
    for name in DAMAGES:
        file, _, how = name.partition(": ")
        assert any(file in row[0] and how in row[1] for row in rows), name


# --- every byte -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("how", [CLEAN, KILLED])
def test_a_torn_tail_at_every_byte_of_the_last_batch(node: Node, how: str) -> None:
    stop(node, how)
    segment = node.file(8, ".log")
    data = segment.read_bytes()
    image = Image(node.path)
    for size in range(3 * SIZE, 4 * SIZE):
        image.restore()
        segment.write_bytes(data[:size])
        node.start()
        assert read(node.log(ORDERS)) == ALL[:11], size
        assert read(node.log(OTHER)) == ALL
        node.stop(clean=False)


@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
def test_a_bit_flipped_anywhere_in_an_index_costs_no_answer(
    node: Node, suffix: str, caplog: pytest.LogCaptureFixture
) -> None:
    stop(node, CLEAN)
    path = node.file(4, suffix)
    image = Image(node.path)
    noticed = 0
    for position in range(len(image.contents[path])):
        image.restore()
        flip(path, position)
        caplog.clear()
        node.start()
        assert times(node.log(ORDERS)) == ALL, position
        assert read(node.log(ORDERS)) == ALL, position
        if caplog.text:
            noticed += 1
            assert re.search("Rebuilding the indexes of .*" + path_of(4, ".log"), caplog.text)
            assert path.read_bytes() == image.contents[path]
        node.stop(clean=False)
    assert noticed > len(image.contents[path]) // 2


def test_a_bit_flipped_anywhere_in_a_snapshot_costs_no_producer(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    known = dict(node.log(TXN).producers.entries)
    stop(node, CLEAN)
    path = max((node.path / "txn-0").glob("*.snapshot"))
    image = Image(node.path)
    for position in range(len(image.contents[path])):
        image.restore()
        flip(path, position)
        caplog.clear()
        node.start()
        found = node.log(TXN).producers.entries
        assert {i: (e.producer_epoch, e.last_sequence, e.last_offset) for i, e in found.items()} == {
            i: (e.producer_epoch, e.last_sequence, e.last_offset) for i, e in known.items()
        }, position
        assert f"Removing producer snapshot {path}: " in caplog.text
        node.stop(clean=False)


def test_a_bit_flipped_anywhere_in_the_last_batch_ends_the_log_before_it(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    """But for the leader epoch, which Kafka's CRC does not cover."""
    stop(node, KILLED)
    segment = node.file(8, ".log")
    image = Image(node.path)
    for position in [*range(12), *range(16, SIZE)]:
        image.restore()
        flip(segment, 3 * SIZE + position)
        caplog.clear()
        node.start()
        assert read(node.log(ORDERS)) == ALL[:11], position
        assert f"{segment} at byte offset {3 * SIZE}: " in caplog.text
        node.stop(clean=False)


# --- transactions ---------------------------------------------------------------------------------------


def aborted(log: Log) -> list[tuple[int, int]]:
    info = log.read(0, 1 << 20, Isolation.TXN_COMMITTED)
    assert info.aborted is not None
    return info.aborted


@pytest.mark.parametrize("how", [CLEAN, KILLED])
@pytest.mark.parametrize("damage", ["torn", "nonsense appended", "another version"])
def test_a_transaction_index_that_cannot_be_one_is_written_anew(
    node: Node, damage: str, how: str, caplog: pytest.LogCaptureFixture
) -> None:
    wanted = aborted(node.log(TXN))
    assert wanted
    stop(node, how)
    path = min((node.path / "txn-0").glob("*.txnindex"))
    good = path.read_bytes()
    path.write_bytes(
        {"torn": good[:-1], "nonsense appended": good + b"\7" * 34, "another version": b"\1" + good[1:]}[
            damage
        ]
    )
    node.start()
    assert aborted(node.log(TXN)) == wanted
    assert re.search(f"Recovering from \\d+ on: {path}: ", caplog.text)
    assert path.read_bytes() == good


def test_a_removed_transaction_index_is_made_again_above_the_recovery_point(node: Node) -> None:
    wanted = aborted(node.log(TXN))
    stop(node, POWER)
    for path in (node.path / "txn-0").glob("*.txnindex"):
        path.unlink()
    node.start()
    assert aborted(node.log(TXN)) == wanted


# --- what a swap is made of -----------------------------------------------------------------------------


def test_a_damaged_swap_whose_source_is_gone_is_taken_as_far_as_it_is_good(
    node: Node, caplog: pytest.LogCaptureFixture
) -> None:
    stop(node, POWER)
    swap = node.file(0, ".log.swap")
    node.file(0, ".log").rename(swap)
    flip(swap, 2 * SIZE + 50)
    node.start()
    assert f"{swap} has no good record batch at byte offset {2 * SIZE}" in caplog.text
    assert read(node.log(ORDERS)) == [0, 1]


def test_a_swap_without_its_log_leaves_the_segment_readable(node: Node) -> None:
    stop(node, CLEAN)
    node.file(0, ".index.swap").write_bytes(bytes(8))
    node.start()
    assert read(node.log(ORDERS)) == ALL


def test_a_log_start_beyond_the_end_begins_the_log_anew(node: Node, caplog: pytest.LogCaptureFixture) -> None:
    stop(node, CLEAN)
    (node.path / "log-start-offset-checkpoint").write_text("0\n1\norders 0 820\n")
    node.start()
    log = node.log(ORDERS)
    assert (log.log_start_offset, log.log_end_offset) == (820, 820)
    assert "/orders-0 ends at 12, below its log start offset 820: it begins anew, empty" in caplog.text
    assert read(node.log(OTHER)) == ALL
